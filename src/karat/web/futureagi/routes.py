"""Future AGI's protocol: the paths that their clients ask, in Python and in TypeScript."""

from __future__ import annotations

import re
from asyncio import timeout
from typing import Any
from uuid import uuid4

import msgspec
from litestar import Request, Response, get, post

from karat.web.asking import ask, call_of
from karat.web.futureagi.submissions import Submissions
from karat.web.problems import Refused
from karat.web.tasks import LATER, TOO_EARLY

_Request = Request[Any, Any, Any]
_ID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})([0-9a-f]{8})")
_FORGOTTEN = "no such evaluation was submitted to this server, or it was forgotten"
_LONGEST = 4000
"""Characters of a parameter."""


@get("/sdk/api/v1/get-evals/")
async def get_evals(request: _Request) -> Response[bytes]:
    """All evaluations. They never change, so a worker is asked once: one client waits only 200 ms."""
    state = request.app.state
    if "futureagi_evals" not in state:
        answer = await ask(request, "/sdk/get-evals")
        if answer.status_code != 200:
            return answer
        state.futureagi_evals = answer.content
    return _json(state.futureagi_evals)


@post("/sdk/api/v1/new-eval/")
async def new_eval(request: _Request) -> Response[bytes]:
    """Evaluate, now or later."""
    ids = uuid4().hex[:24]
    return await _computed(request, "/sdk/new-eval", "/sdk/execution", ids, ids=ids)


@get("/sdk/api/v1/new-eval/")
async def get_execution(request: _Request) -> Response[bytes]:
    """The state of one row that was submitted. An unknown one has failed: their clients show the words of that."""
    eval_id = _parameter(request, "eval_id")
    parts = _ID.fullmatch(eval_id)
    ids, row = ("".join(parts.groups()[:5]), int(parts[6], 16)) if parts else ("", 0)
    found = _submissions(request).get((_owner(request), ids))
    if found is None or (found.lines is not None and row >= len(found.lines)):
        state = _failed(eval_id, _FORGOTTEN)
    elif found.lines is not None:
        state = b'"completed","result":' + found.lines[row]
    elif found.problem is not None:
        state = _failed(eval_id, found.problem)
    else:
        state = b'"processing","result":"Evaluation is being processed."'
    return _json(b'{"status":true,"result":{"eval_status":' + state + b"}}")


@post("/sdk/api/v1/evaluate-pipeline/")
async def evaluate_pipeline(request: _Request) -> Response[bytes]:
    """Compute several evaluations as a version of a project."""
    return await _computed(request, "/sdk/evaluate-pipeline", "/sdk/pipeline-run", None, id=str(uuid4()))


@get("/sdk/api/v1/evaluate-pipeline/")
async def get_pipeline(request: _Request) -> Response[bytes]:
    """The summaries of some versions of a project, when all of them are finished."""
    project = _parameter(request, "project_name")
    versions = dict.fromkeys(one.strip() for one in _parameter(request, "versions").split(","))
    found = {one: _submissions(request).get((_owner(request), project, one)) for one in versions}
    problems = [
        f"version {version!r}: {_FORGOTTEN if one is None else one.problem}"
        for version, one in found.items()
        if one is None or one.problem is not None
    ]
    runs = [msgspec.Raw(one.lines[0]) for one in found.values() if one is not None and one.lines is not None]
    if problems:
        result = {"message": "; ".join(problems), "status": "failed", "evaluation_runs": runs}
    elif len(runs) < len(versions):
        result = {"message": "Evaluations are being processed.", "status": "processing"}
    else:
        result = {"message": "All evaluations are completed.", "status": "completed", "evaluation_runs": runs}
    return _json(msgspec.json.encode({"status": True, "result": result}))


async def _computed(request: _Request, task: str, later: str, key: str | None, **more: str) -> Response[bytes]:
    """The answer of a worker. If it is 202, the rest is computed in the background, and the answer is 200."""
    answer = await ask(request, task, **more, **{LATER: ""})
    if answer.status_code == TOO_EARLY:
        answer = await _in_the_background(request, task, **more)
    if answer.status_code != 202:
        return answer
    keys = (key,) if key is not None else _version(answer.content)
    _submissions(request).start((_owner(request), *keys), call_of(request, later, **more), await request.body())
    return _json(answer.content)


async def _in_the_background(request: _Request, task: str, **more: str) -> Response[bytes]:
    """The answer of a worker that calls a language model: one worker is left for other requests."""
    background, seconds = request.app.state.pool.background, request.app.state.settings.limits.seconds
    try:
        async with timeout(seconds):
            await background.acquire()
    except TimeoutError:
        raise Refused(503, f"no worker was free within {seconds:g} seconds", retry_after=2) from None
    try:
        return await ask(request, task, **more, **{LATER: "1"})
    finally:
        background.release()


def _parameter(request: _Request, name: str) -> str:
    value = str(request.query_params.get(name, ""))
    if not 0 < len(value) <= _LONGEST:
        raise Refused(400, f"{name} is missing or too long")
    return value


def _version(accepted: bytes) -> tuple[str, str]:
    result = msgspec.json.decode(accepted)["result"]
    return result["project_name"], result["version"].strip()


def _submissions(request: _Request) -> Submissions:
    state = request.app.state
    if "submissions" not in state:
        state.submissions = Submissions(state.pool, state.settings)
    found: Submissions = state.submissions
    return found


def _owner(request: _Request) -> str:
    """The key that asks: each sees only what it has submitted. Without keys there is one owner."""
    return "" if request.app.state.settings.keys is None else str(request.scope["state"]["client"])


def _failed(eval_id: str, problem: str) -> bytes:
    row = {
        "eval_id": eval_id, "name": "", "reason": problem, "runtime": 0, "model": None, "output_type": "score",
        "value": None, "error_message": problem,
    }  # fmt: skip
    return b'"failed","result":' + msgspec.json.encode(row)


def _json(body: bytes) -> Response[bytes]:
    return Response(body, media_type="application/json", status_code=200)


ROUTES = (get_evals, new_eval, get_execution, evaluate_pipeline, get_pipeline)
