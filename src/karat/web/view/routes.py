"""The addresses of the workbench. Every one is read-only; each screen is rendered by a worker."""

from __future__ import annotations

from asyncio import to_thread
from functools import partial
from typing import Any

from litestar import HttpMethod, Request, Response, get, route
from litestar.response import Redirect

from karat.web.asking import ask
from karat.web.settings import Settings
from karat.web.view.address import link
from karat.web.view.assets import asset
from karat.web.view.folder import WatchedFolder, find_files

Asked = Request[Any, Any, Any]
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip
"""Headers of every answer: only scripts and styles of this server, and no other page around it."""
_page = partial(route, http_method=(HttpMethod.GET, HttpMethod.HEAD))


@_page("/")
async def runs(request: Asked) -> Response[bytes]:
    """The runs of the folder."""
    return await _ask(request, "view_runs")


@_page("/run/{run_id:str}")
async def run(request: Asked) -> Response[bytes]:
    """One run."""
    return await _ask(request, "view_run")


@_page("/run/{run_id:str}/part/{part:str}")
async def run_part(request: Asked) -> Response[bytes]:
    """A section of a run."""
    return await _ask(request, "view_run_part")


@_page("/run/{run_id:str}/opened/{row:int}")
async def opened_query(request: Asked) -> Response[bytes]:
    """One query of a run, as it is opened in the table."""
    return await _ask(request, "view_opened")


@_page("/compare")
async def compare(request: Asked) -> Response[Any]:
    """Runs side by side; those that were chosen in the list are first put in order."""
    given = list(request.query_params.multi_items())
    chosen = [one for name, value in given if name == "runs" for one in value.split(",") if one]
    baseline = request.query_params.get("baseline")
    if baseline is not None or sum(name == "runs" for name, _ in given) > 1:
        settings: Settings = request.app.state.settings
        assert settings.view is not None
        ids = (await to_thread(find_files, settings.view)).oldest_first(chosen, baseline or "")
        rest = [pair for pair in given if pair[0] not in ("runs", "baseline")]
        return Redirect(link("/compare", [("runs", ",".join(ids)), *rest]), status_code=303)
    return await _ask(request, "view_compare")


@_page("/compare/part/{part:str}")
async def compare_part(request: Asked) -> Response[bytes]:
    """A section of a comparison."""
    return await _ask(request, "view_compare_part")


@_page("/query")
async def query(request: Asked) -> Response[bytes]:
    """One query in several runs."""
    return await _ask(request, "view_query")


@get("/state")
async def state(request: Asked) -> dict[str, str]:
    """A digest of the folder, which changes with any run file."""
    watched: WatchedFolder = request.app.state.watched
    return {"state": await watched.state()}


@get("/assets/{name:str}", sync_to_thread=False)
def assets(name: str) -> Response[bytes]:
    """The style and the script of all pages."""
    content_type, content = asset(name)
    return Response(content, media_type=content_type)


ROUTES = (runs, run, run_part, opened_query, compare, compare_part, query, state, assets)


async def _ask(request: Asked, task: str) -> Response[bytes]:
    """The answer of a worker; of a parameter that is repeated, all values with commas between them."""
    given = request.query_params
    return await ask(request, task, **{name: ",".join(given.getall(name)) for name in given if name == "runs"})
