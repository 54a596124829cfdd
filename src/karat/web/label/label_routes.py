"""The addresses of labelling. What is written comes in by POST: as JSON, from a page of this very server."""

from __future__ import annotations

from asyncio import Lock
from hashlib import sha256
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import msgspec
from litestar import Request, Response, get, post
from litestar.response import Redirect

from karat.errors import KaratError
from karat.web.asking import ask, call_of
from karat.web.label.label_desk import Desk, GivenAnswer, GivenUndo, Person, said
from karat.web.problems import Refused
from karat.web.settings import Settings
from karat.web.tasks import read_json
from karat.web.view.routes import assets
from karat.web.worker_pool import WorkerPool

Asked = Request[Any, Any, Any]
T = TypeVar("T")
_YEAR = 365 * 24 * 3600


class Named(msgspec.Struct, forbid_unknown_fields=True):
    """The name that a person has chosen."""

    by: str


class Standing:
    """The latest numbers of the worker; asked for again only after new answers, and by one request at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._at = -1
        self._found: dict[str, Any] = {}

    async def read(self, request: Asked, desk: Desk) -> dict[str, Any]:
        """The numbers for all answers that are stored now."""
        async with self._lock:
            if self._at != desk.changes:
                changes, body = desk.changes, msgspec.json.encode(desk.facts())
                pool: WorkerPool = request.app.state.pool
                settings: Settings = request.app.state.settings
                call = call_of(request, "view_label_standing", **settings.label_files)
                reply, content = await pool.call(call, body, seconds=settings.limits.seconds)
                if reply.status != 200:
                    raise Refused(reply.status, msgspec.json.decode(content).get("detail", "it cannot be computed"))
                self._at, self._found = changes, msgspec.json.decode(content)
            return self._found


@get("/", sync_to_thread=False)
def begin() -> Redirect:
    """The first page."""
    return Redirect("/label", status_code=303)


@get("/label")
async def label(request: Asked) -> Response[bytes]:
    """The labelling page."""
    return await ask(request, "view_label")


@get("/label/disagreements")
async def disagreements(request: Asked) -> Response[bytes]:
    """The page of disagreements."""
    return await ask(request, "view_disagreements")


@get("/label/work")
async def work(request: Asked) -> Response[bytes]:
    """The person, the scale, the guideline, and where the person goes on."""
    desk = _desk(request)
    by = unquote(request.cookies.get(_cookie(request), "")) or desk.by
    about: dict[str, Any] = {
        "by": by, "scale": [{"grade": one.grade, "words": one.words} for one in desk.labels.scale.grades],
        "guideline": desk.guideline, "metric": desk.work.metric, "file": desk.labels.path.name,
        "judged": desk.work.judged, "next": None, "progress": None, "pool": desk.work.pool,
    }  # fmt: skip
    if by:
        person = desk.person(by)
        about |= {"next": person.next(), "progress": person.progress(), "sheets": len(person.sheets)}
    return _json(about)


@get("/label/sheet/{number:int}")
async def sheet(request: Asked, number: int) -> Response[bytes]:
    """The items of a sheet."""
    desk, person = _who(request)
    return _json(desk.sheet(person, number))


@get("/label/sheets")
async def sheets(request: Asked) -> Response[bytes]:
    """Sheets for the list to jump to."""
    desk, person = _who(request)
    given = request.query_params.get("begin", "0")
    return _json(desk.listed(person, int(given) if given.isdecimal() and len(given) < 10 else 0))


@get("/label/search")
async def search(request: Asked) -> Response[bytes]:
    """Items of the pool with the words."""
    desk, person = _who(request)
    return _json(desk.search(person, request.query_params.get("text", "")[:200]))


@get("/label/standing")
async def standing(request: Asked) -> Response[bytes]:
    """Agreement, and how many labels are missing; not which run leads."""
    found = await _standing(request).read(request, _desk(request))
    return _json({"agreement": found["agreement"], "choice": found["choice"]})


@get("/label/estimate")
async def estimate(request: Asked) -> Response[bytes]:
    """The estimated differences, for the panel that a person has opened."""
    found = await _standing(request).read(request, _desk(request))
    return _json({"estimates": found.get("estimates", [])})


@get("/label/differing")
async def differing(request: Asked) -> Response[bytes]:
    """The items to which people gave different grades."""
    return _json({"items": _desk(request).disagreements()})


@post("/label/name", status_code=200)
async def name(request: Asked) -> Response[bytes]:
    """Keep the name of a person in a cookie."""
    person = _desk(request).person((await _body(request, Named)).by)
    age = "" if _desk(request).by else f" Max-Age={_YEAR};"
    cookie = f"{_cookie(request)}={quote(person.by, safe='')}; Path=/;{age} HttpOnly; SameSite=Strict"
    return _json({"by": person.by}, {"Set-Cookie": cookie})


@post("/label/answer", status_code=200)
async def answer(request: Asked) -> Response[bytes]:
    """Store an answer; the reply says that it is on the disk."""
    desk, given = _desk(request), await _body(request, GivenAnswer)
    label = await _stored(desk.answer(given, monotonic()))
    person = desk.person(given.by)
    model = desk.opinion(desk.item(desk.pairs[label.query, label.item]), label)
    at = person.place.get(desk.pairs[label.query, label.item], -1)
    return _json({"label": said(label), "model": model, "progress": person.progress(), "next": person.next(at)})


@post("/label/undo", status_code=200)
async def undo(request: Asked) -> Response[bytes]:
    """Take the last answer of a person back."""
    desk, given = _desk(request), await _body(request, GivenUndo)
    taken = await _stored(desk.undo(given))
    person = desk.person(given.by)
    place = None if taken is None else person.place.get(desk.pairs.get((taken.query, taken.item), (-1, -1)))
    return _json({
        "sheet": place, "item": None if taken is None else taken.item, "progress": person.progress(),
    })  # fmt: skip


@post("/label/settle", status_code=200)
async def settle(request: Asked) -> Response[bytes]:
    """Settle a disagreement."""
    label = await _stored(_desk(request).settle(await _body(request, GivenAnswer)))
    return _json({"settled": {"answer": label.answer, "grade": label.grade}})


ROUTES = (
    begin, label, disagreements, work, sheet, sheets, search, standing, estimate, differing, name, answer, undo, settle,
    assets,
)  # fmt: skip


def _desk(request: Asked) -> Desk:
    settings: Settings = request.app.state.settings
    assert settings.label is not None
    return settings.label


def _standing(request: Asked) -> Standing:
    state = request.app.state
    if not hasattr(state, "standing"):
        state.standing = Standing()
    found: Standing = state.standing
    return found


def _who(request: Asked) -> tuple[Desk, Person]:
    desk = _desk(request)
    return desk, desk.person(request.query_params.get("by", ""))


def _cookie(request: Asked) -> str:
    """The name of the cookie with the name of the person: one per labels file, as cookies do not know ports.

    With `--by` it is one per start, so that this name counts until the person changes it in the page.
    """
    settings: Settings = request.app.state.settings
    desk = _desk(request)
    of = f"{desk.labels.path.resolve()}\0{settings.token if desk.by else ''}"
    return f"karat-by-{sha256(of.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"


async def _body(request: Asked, kind: type[T]) -> T:
    """The body of a POST, which only a script of our own page can send: other origins cannot send JSON unasked."""
    host = request.headers.get("host", "")
    if request.headers.get("origin") != f"http://{host}":
        raise Refused(403, "only the labelling page may write: the header Origin is missing, or another one")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "the body is JSON", hint="Content-Type: application/json")
    found: T = read_json(await request.body(), kind)
    return found


async def _stored(answer: Any) -> Any:
    """The result of a write; a full disk is a failure of the server, and the page sends the answer again."""
    try:
        return await answer
    except KaratError as error:
        status = 507 if error.problem.startswith("cannot write") else 400
        raise Refused(status, error.problem, got=error.got) from error


def _json(value: Any, headers: dict[str, str] | None = None) -> Response[bytes]:
    return Response(msgspec.json.encode(value), media_type="application/json", headers=headers or {})
