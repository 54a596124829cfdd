"""Clients that hold others up, or go away; keys that change; and names of this machine."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from karat.cli import main
from karat.errors import InputError
from karat.web.access_keys import Keys, new_key
from karat.web.arrival import Arrivals
from karat.web.guard import Guard
from karat.web.log import Log
from karat.web.settings import Settings
from support.served import served
from support.waiting import wait_until
from web.test_worker_pool import BODY, busy, stopped, waiting, workers


def test_bodies_without_a_key_hold_nobody_up(tmp_path):
    key = new_key(tmp_path / "keys.json", "team")
    with served("--keys", tmp_path / "keys.json", "--max-body", "1", "--workers", "1") as server:
        port = urlsplit(server.url).port
        slow = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(6)]
        try:
            for one in slow:
                one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 999_990)
            assert server.ask("/v1/evaluate", BODY, Authorization=f"Bearer {key}").status == 200
            assert slow[0].recv(65536).startswith(b"HTTP/1.1 413 ")
        finally:
            for one in slow:
                one.close()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_the_memory_of_bodies_is_free_after_their_answers():
    def memory():
        line = next(one for one in status.read_text().splitlines() if one.startswith("VmRSS"))
        return int(line.split()[1]) // 1024

    with served("--workers", "1") as server:
        status = Path(f"/proc/{server.process.pid}/status")
        large = b'{"samples": [], "metrics": "' + b" " * 20_000_000 + b'"}'
        before = memory()
        for _ in range(10):
            assert server.ask("/v1/evaluate", large).status == 400
        wait_until(lambda: memory() < before + 80)


def test_a_client_that_has_gone_does_not_wait_any_more():
    with served("--workers", "1") as server, ThreadPoolExecutor() as threads:
        with stopped(server):
            asked = threads.submit(server.ask, "/v1/evaluate", BODY)
            wait_until(lambda: busy(server))
            gone = HTTPConnection("127.0.0.1", urlsplit(server.url).port)
            for path in ("/v1/evaluate", "/sdk/api/v1/new-eval/"):
                gone.request("POST", path, b"{}")
                wait_until(lambda: waiting(server) == 1)
                gone.close()
                wait_until(lambda: waiting(server) == 0)
            gone.request("POST", "/v1/evaluate", b"{}", {"Idempotency-Key": "1"})
            wait_until(lambda: waiting(server) == 1)
            gone.close()
            assert waiting(server) == 1
        assert asked.result().status == 200
        assert server.ask("/v1/evaluate", BODY).status == 200


def test_nobody_waits_for_a_worker_for_longer_than_for_an_evaluation():
    with served("--workers", "1", "--max-seconds", "1") as server:
        job = server.ask("/v1/evaluate", BODY, Prefer="respond-async").headers["Location"]
        wait_until(lambda: server.ask(job).json["state"] == "done")
        with stopped(server):
            server.ask("/v1/evaluate", BODY, Prefer="respond-async")
            wait_until(lambda: busy(server))
            answer = server.ask("/v1/evaluate", BODY)
        assert (answer.status, answer.json["detail"]) == (503, "no worker was free within 1 seconds")


def test_a_worker_that_dies_while_nobody_asks_is_replaced():
    with served("--workers", "2") as server:
        wait_until(lambda: server.ask("/readyz").json["workers"] == 2)
        before = workers(server)
        for one in before:
            os.kill(one, signal.SIGKILL)
        wait_until(lambda: "karat_worker_restarts_total 2" in server.ask("/metrics").body.decode())
        assert server.ask("/v1/evaluate", BODY).status == 200
        wait_until(lambda: server.ask("/readyz").json["workers"] == 2)
        assert not set(before) & set(workers(server))


def test_keys_are_read_again_when_they_change(tmp_path):
    path = tmp_path / "keys.json"
    first = new_key(path, "first")
    with served("--keys", path, ready=False) as server:

        def status(key):
            return server.ask("/metrics", Authorization=f"Bearer {key}").status

        assert status(first) == 200
        second = new_key(path, "second")
        assert (status(first), status(second)) == (200, 200)
        third = new_key(path, "first")
        assert (status(first), status(third)) == (403, 200)
        for damage in ("{", None):
            path.write_text(damage) if damage else path.unlink()
            assert (status(first), status(second), status(second)) == (403, 200, 200)
        assert sum("the keys are those from before" in line for line in server.log) == 2


@pytest.mark.parametrize("hashed", ["\u00e9" * 64, "x" * 64, "a" * 63, 1])
def test_a_file_with_other_things_than_hashes_is_refused(tmp_path, hashed):
    path = tmp_path / "keys.json"
    path.write_text(f'{{"a": "{hashed}"}}')
    with pytest.raises(InputError, match="is not a file of keys"):
        Keys.read(path)


def test_an_error_before_the_handlers_is_a_problem(monkeypatch):
    def fail(*args, **named):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(Arrivals, "body", fail)
    sent, file = [], io.StringIO()

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": "GET", "path": "/healthz", "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1), "state": {},
    }  # fmt: skip
    asyncio.run(Guard(fail, Settings(), Log(file))(scope, fail, send))
    assert sent[0]["status"] == 500
    assert b"secret" not in sent[1]["body"]
    assert '"fault":"ZeroDivisionError at ' in file.getvalue()
    assert "guard.py" in file.getvalue()


@pytest.mark.parametrize("host", ["127.0.0.2", "::1", "LOCALHOST"])
def test_every_name_of_this_machine_is_answered(host):
    with served("--host", host, ready=False) as server:
        assert server.ask("/healthz").status == 200
        assert server.ask("/healthz", Host="LocalHost:1").status == 200
        assert server.ask("/healthz", Host="127.0.0.1.example.org").status == 403


def test_load_balancers_ask_in_several_ways(locked):
    server, _ = locked
    for path in ("/healthz", "/healthz/", "/readyz"):
        for method in ("GET", "HEAD"):
            answer = server.ask(path, method=method)
            assert (answer.status, bool(answer.body)) == (200, method == "GET")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-seconds", "inf"], "--max-seconds must be above 0"),
        (["--max-body", "nan"], "--max-body must be above 0"),
        (["--allow-origin", "example.org"], "try  https://example.org"),
        (["--allow-origin", "https://example.org/"], "try  https://example.org"),
        (["--allow-origin", "https://Example.org:443"], "try  https://example.org"),
        (["--allow-origin", "*"], "try  https://example.org"),
        (["--allow-model", "openai("], "expected name"),
    ],
)
def test_options_that_cannot_work_are_refused_at_the_start(options, words, capsys):
    assert main(["serve", "--port", "0", *options]) == 2
    assert words in capsys.readouterr().err.splitlines()[words.startswith("try") * 2]


def test_a_new_key_says_that_it_replaces_another(tmp_path, capsys):
    for replaces in (False, True):
        assert main(["serve", "--keys", str(tmp_path / "keys.json"), "--new-key", "a"]) == 0
        assert ("replaces the key" in capsys.readouterr().err) == replaces
