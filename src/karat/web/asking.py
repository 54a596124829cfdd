"""A request of a handler, given to a worker: kept separate, because every handler uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar import Request, Response

from karat.web.messages import Call, Reply
from karat.web.settings import Settings
from karat.web.worker_pool import Gone, WorkerPool


def call_of(request: Request[Any, Any, Any], task: str, **more: str) -> Call:
    """The call of a request for a task; parameters of the address and of the path are its arguments."""
    settings: Settings = request.app.state.settings
    return Call(
        task,
        request=request.scope["state"]["sent"].request,
        content_type=request.headers.get("content-type", ""),
        accept=request.headers.get("accept", ""),
        arguments={**dict(request.query_params), **{n: str(v) for n, v in request.path_params.items()}, **more},
        store=None if (folder := settings.view or settings.store) is None else str(folder),
        models=settings.models,
        limits=settings.limits,
    )


async def ask(request: Request[Any, Any, Any], task: str, **more: str) -> Response[bytes]:
    """The answer of a worker to a request."""
    pool: WorkerPool = request.app.state.pool
    settings: Settings = request.app.state.settings
    client, body = request.scope["state"]["client"], await request.body()
    call, seconds = call_of(request, task, **more), settings.limits.seconds
    return response_of(request, *await pool.call(call, body, client=client, seconds=seconds, gone=gone(request)))


def gone(request: Request[Any, Any, Any]) -> Gone:
    """A function that waits until the client of a request has gone. Its body has been read before."""

    async def wait() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return wait


def response_of(request: Request[Any, Any, Any], reply: Reply, body: bytes) -> Response[bytes]:
    """A reply of a worker as a response; what failed is in the log."""
    request.scope["state"]["sent"].fault = reply.fault
    headers: Mapping[str, str] = reply.headers
    return Response(body, status_code=reply.status, media_type=reply.content_type, headers=dict(headers))
