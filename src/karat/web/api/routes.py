"""The native API under `/v1`: each handler gives its request to a worker, or to a job."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.response import Redirect

from karat.web.api.docs_page import docs_page
from karat.web.api.idempotency import Answered, Repeats
from karat.web.api.jobs import Job, Jobs
from karat.web.api.listed import Listed
from karat.web.api.openapi import document
from karat.web.asking import ask, call_of, gone, response_of
from karat.web.messages import Reply
from karat.web.problems import Refused
from karat.web.tasks import JOB
from karat.web.worker_pool import WorkerPool

Asked = Request[Any, Any, Any]
_ASYNC = "respond-async"


@post("/v1/evaluate")
async def evaluate(request: Asked) -> Response[bytes]:
    """Evaluate samples."""
    return await _answer(request, "evaluate")


@post("/v1/compare")
async def compare(request: Asked) -> Response[bytes]:
    """Compare runs."""
    return await _answer(request, "compare")


@post("/v1/gate")
async def gate(request: Asked) -> Response[bytes]:
    """Check a run against rules and a baseline."""
    return await _answer(request, "gate")


@post("/v1/diagnose")
async def diagnose(request: Asked) -> Response[bytes]:
    """Find the causes of missed gold items."""
    return await _answer(request, "diagnose")


@get("/v1/runs")
async def runs(request: Asked) -> Response[bytes]:
    """List the stored runs."""
    listed: Listed = request.app.state.listed
    asked = request.scope["query_string"].decode("latin-1")
    return response_of(request, *await listed.page(asked, lambda: _now(request, "runs", b"")))


@get("/v1/runs/{run_id:str}")
async def run(request: Asked) -> Response[bytes]:
    """Show a stored run, or download its file."""
    return await ask(request, "run")


@delete("/v1/runs/{run_id:str}", status_code=200)
async def delete_run(request: Asked) -> Response[bytes]:
    """Delete a stored run."""
    return await ask(request, "delete_run")


@get("/v1/runs/{run_id:str}/table")
async def table(request: Asked) -> Response[bytes]:
    """Show the scores of the queries of a stored run."""
    return await ask(request, "table")


@get("/v1/runs/{run_id:str}/items")
async def items(request: Asked) -> Response[bytes]:
    """Show one query of a stored run."""
    return await ask(request, "items")


@get("/v1/metrics")
async def metrics(request: Asked) -> Response[bytes]:
    """List the metrics."""
    return await ask(request, "metrics")


@get("/v1/judges")
async def judges(request: Asked) -> Response[bytes]:
    """List the judges."""
    return await ask(request, "judges")


@get("/v1/conventions")
async def conventions(request: Asked) -> Response[bytes]:
    """List the conventions."""
    return await ask(request, "conventions")


@get("/v1/jobs/{job_id:str}")
async def job(request: Asked, job_id: str) -> Response[bytes]:
    """Show the state of a job."""
    return response_of(request, *_job_answer(_job(request, job_id), 200))


@get("/v1/jobs/{job_id:str}/result")
async def job_result(request: Asked, job_id: str) -> Response[bytes]:
    """Show the answer of a job: the one that its request would have had."""
    found = _job(request, job_id)
    if found.result is not None:
        return response_of(request, *found.result)
    if found.state == "cancelled":
        raise Refused(410, "the job was cancelled")
    raise Refused(409, "the job has not ended", hint=f"GET /v1/jobs/{found.id}", retry_after=1)


@delete("/v1/jobs/{job_id:str}", status_code=200)
async def cancel_job(request: Asked, job_id: str) -> Response[bytes]:
    """Cancel a job, or forget one that has ended."""
    found = _job(request, job_id)
    await _jobs(request).cancel(found)
    return response_of(request, *_job_answer(found, 200))


@get("/openapi.json", sync_to_thread=False)
def openapi() -> Response[bytes]:
    """The OpenAPI document."""
    return Response(document(), media_type="application/json")


@get("/", sync_to_thread=False)
def start() -> Redirect:
    """The way to the page on the API."""
    return Redirect("/docs")


@get("/docs", sync_to_thread=False)
def docs() -> Response[bytes]:
    """The page on the API."""
    page = docs_page()
    headers = {"Content-Security-Policy": page.policy, "Referrer-Policy": "no-referrer"}
    return Response(page.html, media_type="text/html; charset=utf-8", headers=headers)


ROUTES = (
    start, openapi, docs, evaluate, compare, gate, diagnose, runs, run, delete_run, table, items, metrics, judges,
    conventions, job, job_result, cancel_job,
)  # fmt: skip


async def _answer(request: Asked, task: str) -> Response[bytes]:
    """The answer to a request that may have an idempotency key."""
    key = request.headers.get("idempotency-key")
    body = await request.body()
    if key is None:
        return response_of(request, *await _work(request, task, body))
    repeats: Repeats = request.app.state.repeats
    asked = (task, request.scope["query_string"].decode("latin-1"), *(
        request.headers.get(name, "") for name in ("content-type", "accept", "prefer")
    ))  # fmt: skip
    client = request.scope["state"]["client"]
    jobs = _jobs(request)

    def valid(reply: Reply) -> bool:
        return reply.status != 202 or jobs.has(reply.headers["Location"].rpartition("/")[2])

    answered = await repeats.answer(client, key, asked, body, lambda: _work(request, task, body), valid)
    return response_of(request, *answered)


async def _work(request: Asked, task: str, body: bytes) -> Answered:
    """The answer of a worker; of work that is only done as a job, that job."""
    if _ASYNC in request.headers.get("prefer", "").lower():
        return _start(request, task, body)
    reply, content = await _now(request, task, body)
    return _start(request, task, body) if reply.status == 202 else (reply, content)


async def _now(request: Asked, task: str, body: bytes) -> Answered:
    """The answer of a worker."""
    pool: WorkerPool = request.app.state.pool
    seconds, client = request.app.state.settings.limits.seconds, request.scope["state"]["client"]
    left = None if "idempotency-key" in request.headers else gone(request)  # one with a key comes back
    return await pool.call(call_of(request, task), body, client=client, seconds=seconds, gone=left)


def _start(request: Asked, task: str, body: bytes) -> Answered:
    call = call_of(request, task + JOB)
    return _job_answer(_jobs(request).start(call, body, request.scope["state"]["client"]), 202)


def _job_answer(job: Job, status: int) -> Answered:
    headers = {"Location": f"/v1/jobs/{job.id}"}
    if not job.ended:
        headers["Retry-After"] = "1"
    return Reply(status, headers=headers), msgspec.json.encode(job.shown())


def _jobs(request: Asked) -> Jobs:
    jobs: Jobs = request.app.state.jobs
    return jobs


def _job(request: Asked, wanted: str) -> Job:
    return _jobs(request).find(wanted, request.scope["state"]["client"])
