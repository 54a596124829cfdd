"""Workers that are slow, killed or busy: clear answers, new workers, and an end that waits for running requests."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from karat.web.messages import Call
from karat.web.settings import Settings
from karat.web.worker_pool import WorkerPool
from support.served import served

BODY = {"samples": [{"retrieved": ["a", "b"], "gold": ["b"]}], "metrics": ["rr"]}


def workers(server):
    main = server.process.pid
    return [int(one) for one in Path(f"/proc/{main}/task/{main}/children").read_text().split()]


@contextmanager
def stopped(server):
    """The workers do nothing."""
    found = workers(server)
    for one in found:
        os.kill(one, signal.SIGSTOP)
    try:
        yield found
    finally:
        for one in set(found) & set(workers(server)):
            os.kill(one, signal.SIGCONT)


def until(true):
    """Wait for something that happens soon."""
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def waiting(server):
    return server.ask("/readyz").json["waiting"]


def busy(server):
    return "karat_workers_busy 1" in server.ask("/metrics").body.decode()


def test_a_slow_evaluation_is_ended_and_the_next_one_is_answered():
    with served("--workers", "1", "--max-seconds", "0.5") as server:
        with stopped(server) as before:
            answer = server.ask("/v1/evaluate", BODY)
        assert answer.status == 408
        assert "0.5 seconds" in answer.json["detail"]
        until(lambda: server.ask("/readyz").status == 200)
        assert server.ask("/v1/evaluate", BODY).json["mean"]["rr"] == 0.5
        assert workers(server) != before
        assert "karat_worker_restarts_total 1" in server.ask("/metrics").body.decode()


def test_a_worker_that_is_killed_is_replaced():
    with served("--workers", "1") as server, ThreadPoolExecutor() as threads:
        with stopped(server) as (worker,):
            asked = threads.submit(server.ask, "/v1/evaluate", BODY)
            until(lambda: busy(server))
            os.kill(worker, signal.SIGKILL)
            answer = asked.result()
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert server.ask("/v1/evaluate", BODY).status == 200


def test_only_so_many_wait():
    with served("--workers", "1", "--max-waiting", "2") as server, ThreadPoolExecutor() as threads:
        with stopped(server):
            asked = [threads.submit(server.ask, "/v1/evaluate", BODY)]
            until(lambda: busy(server))
            asked.append(threads.submit(server.ask, "/v1/evaluate", BODY))
            until(lambda: waiting(server) == 1)
            answer = server.ask("/v1/evaluate", BODY)
            assert (answer.status, answer.headers["Retry-After"]) == (429, "2")
            assert server.ask("/healthz").status == 200
        assert [one.result().status for one in asked] == [200, 200]


def test_a_running_request_is_finished_when_the_server_ends():
    with served("--workers", "1") as server, ThreadPoolExecutor() as threads:
        with stopped(server):
            asked = threads.submit(server.ask, "/v1/evaluate", BODY)
            until(lambda: busy(server))
            server.process.terminate()
        assert asked.result().status == 200
        assert server.process.wait(10) == 0
        assert not Path(f"/proc/{server.process.pid}").exists()


def test_large_bodies_at_once_are_limited():
    """A client has three of the largest size; more are refused, and all memory is free again afterwards."""
    with served("--workers", "1", "--max-body", "1") as server, ThreadPoolExecutor(8) as threads:
        large = b'{"samples": [], "metrics": "' + b" " * 900_000 + b'"}'
        with stopped(server):
            asked = [threads.submit(server.ask, "/v1/evaluate", large) for _ in range(8)]
            until(lambda: sum(one.done() for one in asked) >= 5)
        statuses = sorted(one.result().status for one in asked)
        assert statuses[-5:] == [429] * 5
        assert set(statuses[:3]) == {statuses[0]} != {429}
        assert server.ask("/v1/evaluate", large).status == statuses[0]


class Idle:
    """A worker that does nothing."""

    def kill(self):
        pass


def pool_of_two():
    pool, workers = WorkerPool(Settings(workers=2)), [Idle(), Idle()]
    pool._all.update(workers)
    pool._free.extend(workers)
    pool.closing = True
    return pool


def test_one_worker_lists_the_runs_and_other_calls_rather_go_to_the_others():
    async def calls():
        pool = pool_of_two()
        lists, not_lists = pool._worker("", 1, None, lists=True), pool._worker("", 1, None, lists=False)
        async with lists as lister, not_lists as other:
            assert other is not lister
        for _ in range(3):
            async with pool._worker("", 1, None, lists=False) as first:
                assert first is other
                async with pool._worker("", 1, None, lists=True) as again:
                    assert again is lister
                async with pool._worker("", 1, None, lists=False) as second:
                    assert second is lister
                    waits = asyncio.create_task(listed(pool))
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)
            assert await waits is lister

    asyncio.run(calls())


def test_calls_that_list_the_runs():
    assert Call("view_runs").lists
    assert Call("view_run_part", arguments={"part": "chooser"}).lists
    assert not Call("view_run_part", arguments={"part": "slices"}).lists
    assert not Call("view_run", arguments={"part": "chooser"}).lists


def test_a_list_does_not_wait_for_a_worker_that_is_gone():
    async def calls():
        pool = pool_of_two()
        async with pool._worker("", 1, None, lists=True) as lister:
            waits = asyncio.create_task(listed(pool))
            await asyncio.sleep(0.01)
            assert not waits.done()
            pool._replace(lister)
            assert await waits is not lister

    asyncio.run(calls())


async def listed(pool):
    """The worker of a list."""
    async with pool._worker("", 5, None, lists=True) as worker:
        return worker
