"""Jobs: asked for, or because a language model is called; their progress, result, cancelling and limits."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from karat.web.api.jobs import Jobs
from karat.web.messages import Call, Reply
from karat.web.problems import Refused
from karat.web.settings import Limits, Settings
from karat.web.worker_pool import WorkerPool
from support.scripted import script
from support.served import served
from support.server import Server
from support.waiting import wait_until

SAMPLES = [
    {"id": f"q{i}", "query": "Who?", "answer": f"Ada wrote number {i}.", "retrieved": [f"Ada wrote number {i}.", "No."]}
    for i in range(3)
]
PLAIN = {"samples": [{"retrieved": ["a"], "gold": ["a"]}], "metrics": "rr"}
BY_MODEL = {"samples": SAMPLES, "metrics": "recall@1", "judge": "claims(m)"}


class Model(Server):
    """A language model that can be held up."""

    held = False

    def __init__(self):
        super().__init__(lambda call: replace(script(call), delay=60.0 if self.held else 0.0))


@pytest.fixture(scope="module")
def model():
    with Model() as running:
        yield running


@pytest.fixture(scope="module")
def with_model(model, tmp_path_factory):
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    store = tmp_path_factory.mktemp("judged")
    with served("--allow-model", model.model(), "--workers", "2", "--store", store, env=env) as server:
        yield server


def state(server, place):
    return server.ask(place).json["state"]


def test_work_that_is_asked_for_as_a_job(server):
    now = server.ask("/v1/evaluate", PLAIN)
    for body, headers in ((PLAIN, {"Prefer": "respond-async"}), (PLAIN | {"job": True}, {})):
        started = server.ask("/v1/evaluate", body, **headers)
        place = started.headers["Location"]
        assert (started.status, started.json["operation"]) == (202, "evaluate")
        wait_until(lambda place=place: state(server, place) == "done")
        ended = server.ask(place).json
        assert (ended["done"], ended["of"]) == (None, None)  # nothing counts its steps
        assert server.ask(ended["result"]).body == now.body
        assert server.ask(place, method="DELETE").status == 200
        assert server.ask(place).status == 404


def test_a_job_that_fails_has_the_problem_as_its_result(server):
    place = server.ask("/v1/evaluate", PLAIN | {"metrics": "recal@5"}, Prefer="respond-async").headers["Location"]
    wait_until(lambda: state(server, place) == "failed")
    result = server.ask(f"{place}/result")
    assert (result.status, "recall" in result.json["detail"]) == (400, True)


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("compare", {"runs": [PLAIN, PLAIN]}),
        ("gate", {"run": PLAIN, "rules": ["rr >= 0.5"]}),
        ("diagnose", {"run": PLAIN}),
    ],
)
def test_verdicts_as_jobs(server, operation, body):
    now = server.ask(f"/v1/{operation}", body).json
    for asked, headers in ((body, {"Prefer": "respond-async"}), (body | {"job": True}, {})):
        started = server.ask(f"/v1/{operation}", asked, **headers)
        assert (started.status, started.json["operation"]) == (202, operation)
        place = started.headers["Location"]
        wait_until(lambda place=place: state(server, place) == "done")
        assert server.ask(f"{place}/result").json | {"when": ""} == now | {"when": ""}


def test_a_judge_with_a_model_is_always_a_job(with_model, model):
    started = with_model.ask("/v1/evaluate", BY_MODEL | {"store": "judged"})
    assert started.status == 202
    wait_until(lambda: state(with_model, started.headers["Location"]) == "done")
    assert with_model.ask(started.headers["Location"]).json["done"] == 3
    found = with_model.ask(f"{started.headers['Location']}/result").json
    assert (found["mean"], found["judged"]) == ({"recall@1": 1.0}, 3)
    assert found["judge"] == "claims(m)"
    assert model.calls
    file = with_model.ask("/v1/runs/judged", Accept="application/vnd.apache.parquet").body
    assert b"claims(m)" in file
    for content in (file, with_model.ask("/v1/runs/judged").body, with_model.ask("/v1/runs").body):
        assert model.url.encode() not in content
    before = len(model.calls)
    again = with_model.ask("/v1/gate", {"run": BY_MODEL, "rules": ["recall@1 >= 0.5"]})
    assert again.status == 202
    wait_until(lambda: state(with_model, again.headers["Location"]) == "done")
    assert with_model.ask(f"{again.headers['Location']}/result").json["passed"]
    assert len(model.calls) == before  # from the operator's cache
    assert with_model.ask("/v1/evaluate", BY_MODEL | {"judge": "claims(gpt-4o)"}).status == 403


def test_a_job_is_cancelled_and_others_go_on(with_model, model):
    model.held = True
    other = BY_MODEL | {"samples": [sample | {"answer": "Bob sang."} for sample in SAMPLES]}
    running, waiting = (with_model.ask("/v1/evaluate", other).headers["Location"] for _ in range(2))
    wait_until(lambda: state(with_model, running) == "running" and model.under_way)
    assert state(with_model, waiting) == "waiting"
    assert with_model.ask("/v1/evaluate", PLAIN).status == 200
    early = with_model.ask(f"{running}/result")
    assert (early.status, early.headers["Retry-After"]) == (409, "1")
    assert with_model.ask(waiting, method="DELETE").json["state"] == "cancelled"
    assert with_model.ask(running, method="DELETE").json["state"] == "cancelled"
    assert with_model.ask(f"{running}/result").status == 410
    model.held = False
    wait_until(lambda: with_model.ask("/readyz").json["workers"] == 2)
    assert "karat_worker_restarts_total 1" in with_model.ask("/metrics").body.decode()
    again = with_model.ask("/v1/evaluate", other).headers["Location"]
    wait_until(lambda: state(with_model, again) == "done")


class Workers:
    """A pool whose calls end when they are told to."""

    def __init__(self, workers=2):
        self.background = WorkerPool(Settings(workers=workers)).background
        self.go, self.under_way, self.most = asyncio.Event(), 0, 0
        self.answer = None

    async def call(self, call, body, *, client, progress):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        progress(1, 2)
        await self.go.wait()
        self.under_way -= 1
        return Reply(200), body if self.answer is None else self.answer


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("workers", "most"), [(1, 1), (2, 1), (4, 3)])
def test_one_worker_is_left_for_requests(workers, most):
    async def work():
        pool = Workers(workers)
        jobs = Jobs(pool, Settings(workers=workers))
        started = [jobs.start(Call("evaluate_job"), b"body", "me") for _ in range(5)]
        await settle()
        assert [job.state for job in started] == ["running"] * most + ["waiting"] * (5 - most)
        assert (started[0].shown().done, started[0].shown().of) == (1, 2)
        pool.go.set()
        await asyncio.gather(*(job.task for job in started))
        assert ({job.state for job in started}, pool.most) == ({"done"}, most)

    asyncio.run(work())


def test_limits_of_jobs():
    async def work():
        pool = Workers()
        jobs = Jobs(pool, Settings(workers=1, limits=Limits(jobs=2, body=100)))
        first, second = (jobs.start(Call("evaluate_job"), b"", client) for client in ("me", "you"))
        with pytest.raises(Refused, match="too many jobs"):
            jobs.start(Call("evaluate_job"), b"", "another")
        pool.go.set()
        await asyncio.gather(first.task, second.task)
        third = jobs.start(Call("evaluate_job"), b"", "me")
        assert jobs.find(third.id, "me") is third
        for unknown, client in ((first.id, "me"), (third.id, "another"), ("", "me")):
            with pytest.raises(Refused, match="no such job"):
                jobs.find(unknown, client)
        with pytest.raises(Refused, match="too many jobs"):
            jobs.start(Call("evaluate_job"), b"x" * 1001, "another")
        await jobs.close()

    asyncio.run(work())


def test_one_client_has_half_of_the_room():
    async def work():
        pool = Workers()
        jobs = Jobs(pool, Settings(workers=1, limits=Limits(jobs=6, body=100)))
        mine = [jobs.start(Call("evaluate_job"), b"", "me") for _ in range(3)]
        for body in (b"", b"x" * 501):
            with pytest.raises(Refused, match="of your jobs") as refused:
                jobs.start(Call("evaluate_job"), body, "me")
            assert (refused.value.status, refused.value.retry_after) == (429, 10)
        yours = jobs.start(Call("evaluate_job"), b"x" * 400, "you")
        with pytest.raises(Refused, match="of your jobs"):
            jobs.start(Call("evaluate_job"), b"x" * 101, "you")
        pool.go.set()
        await asyncio.gather(*(job.task for job in (*mine, yours)))
        for _ in range(10):  # those that ended make room, first one's own
            await jobs.start(Call("evaluate_job"), b"", "me").task
        assert jobs.find(yours.id, "you") is yours

    asyncio.run(work())


def test_results_of_jobs_are_limited():
    async def work():
        pool = Workers()
        pool.answer = b"x" * 400
        pool.go.set()
        jobs = Jobs(pool, Settings(workers=1, limits=Limits(body=100)))
        done = []
        for _ in range(5):
            done.append(jobs.start(Call("evaluate_job"), b"", "me"))
            await done[-1].task
        assert [jobs.has(job.id) for job in done] == [False, False, False, True, True]
        pool.answer = b"x" * 1001
        large = jobs.start(Call("evaluate_job"), b"", "me")
        await large.task
        assert (large.state, large.result[0].status) == ("failed", 413)
        assert sum(job.bytes for job in (done[-1], large)) < 1000

    asyncio.run(work())


@pytest.mark.parametrize("at_once", [True, False])
def test_the_end_of_the_server_cancels_jobs(at_once):
    async def work():
        jobs = Jobs(Workers(), Settings(workers=1))
        started = [jobs.start(Call("evaluate_job"), b"", "me") for _ in range(2)]
        if not at_once:
            await settle()
        await jobs.close()
        assert [job.state for job in started] == ["cancelled", "cancelled"]
        assert jobs.unfinished == 0

    asyncio.run(work())
