"""The application: its routes, put together, around one pool of workers."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from litestar import HttpMethod, Litestar, Request, Response, get, route
from litestar.exceptions import HTTPException

from karat import __version__
from karat.web.api import routes as native
from karat.web.api.idempotency import Repeats
from karat.web.api.jobs import Jobs
from karat.web.api.listed import Listed
from karat.web.futureagi import routes as futureagi
from karat.web.guard import Guard
from karat.web.log import Log
from karat.web.problems import Refused, reply_to
from karat.web.settings import Settings
from karat.web.view import routes as view
from karat.web.view.folder import WatchedFolder
from karat.web.worker_pool import WorkerPool

if TYPE_CHECKING:
    from litestar.types import ASGIApp, ControllerRouterHandler

_SERVICE: tuple[ControllerRouterHandler, ...] = (*native.ROUTES, *futureagi.ROUTES)
_GET_OR_HEAD = (HttpMethod.GET, HttpMethod.HEAD)


@route("/healthz", http_method=_GET_OR_HEAD, status_code=200, sync_to_thread=False)
def health() -> dict[str, str]:
    """The server runs."""
    return {"status": "ok", "version": __version__}


@route("/readyz", http_method=_GET_OR_HEAD)
async def readiness(request: Request[Any, Any, Any]) -> Response[dict[str, Any]]:
    """The server can evaluate: a worker lives."""
    pool: WorkerPool = request.app.state.pool
    ready = pool.ready > 0 and not pool.closing
    state = {"status": "ready" if ready else "not ready", "workers": pool.ready, "waiting": pool.waiting}
    return Response(state, status_code=200 if ready else 503)


@get("/metrics")
async def prometheus(request: Request[Any, Any, Any]) -> Response[str]:
    """Counters for Prometheus."""
    pool, log, jobs = request.app.state.pool, request.app.state.log, request.app.state.jobs
    gauges = {
        "workers": ("gauge", "Worker processes.", pool.ready),
        "workers_busy": ("gauge", "Worker processes that evaluate.", pool.busy),
        "waiting": ("gauge", "Evaluations that wait for a worker.", pool.waiting),
        "jobs": ("gauge", "Jobs that wait or run.", jobs.unfinished),
        "worker_restarts_total": ("counter", "Worker processes that were replaced.", pool.restarts),
    }
    lines = [
        f"# HELP karat_{name} {about}\n# TYPE karat_{name} {kind}\nkarat_{name} {value}\n"
        for name, (kind, about, value) in gauges.items()
    ]
    return Response("".join(lines) + log.counters(), media_type="text/plain; version=0.0.4")


def application(settings: Settings, log: Log | None = None) -> ASGIApp:
    """The whole application for these settings: the service, the workbench, or labelling."""
    log, pool = log or Log(), WorkerPool(settings)
    jobs = Jobs(pool, settings)

    @asynccontextmanager
    async def workers(app: Litestar) -> AsyncIterator[None]:
        app.state.pool, app.state.log, app.state.settings = pool, log, settings
        app.state.jobs, app.state.repeats, app.state.listed = jobs, Repeats(), Listed(settings.store)
        if settings.view is not None:
            app.state.watched = WatchedFolder(settings.view)
        pool.start()
        gc.collect()
        gc.freeze()
        try:
            yield
        finally:
            await jobs.close()
            await pool.close()

    app = Litestar(
        [health, readiness, prometheus, *_routes(settings)],
        lifespan=[workers],
        exception_handlers={HTTPException: _refused, Exception: _refused},
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,
    )
    return Guard(app, settings, log)


def _routes(settings: Settings) -> tuple[ControllerRouterHandler, ...]:
    """The routes of the service, of the workbench, or of labelling."""
    if settings.label is not None:
        from karat.web.label.label_routes import ROUTES

        return ROUTES
    return _SERVICE if settings.view is None else view.ROUTES


def _refused(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """A problem for anything that a handler raises."""
    headers = {}
    if isinstance(error, HTTPException):
        headers = error.headers or {}
        error = Refused(error.status_code, _words(error.status_code, error.detail))
    sent = request.scope["state"]["sent"]
    accept = request.headers.get("accept", "")
    page = request.app.state.settings.view is not None
    reply, body = reply_to(error, request.scope["path"], accept, sent.request, request.method, page=page)
    sent.fault = reply.fault
    return Response(body, status_code=reply.status, media_type=reply.content_type, headers={**headers, **reply.headers})


def _words(status: int, detail: str) -> str:
    return {404: "there is nothing at this path", 405: "this path does not take this method"}.get(status, detail)
