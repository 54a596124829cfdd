"""Heads of requests that are too long, too slow or no HTTP, and the lines of the log about them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from support.served import served
from web.hostile import answer

_QUICK = """
from karat.web import heads
heads.LimitedHeads.seconds = 0.5
from karat.cli import main
main()
"""


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The port of a server on which a head has half a second."""
    log = tmp_path_factory.mktemp("log") / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", _QUICK, "serve", "--port", "0", "--workers", "1"],
            stdout=subprocess.PIPE, stderr=file, env=os.environ,
        )  # fmt: skip
        try:
            yield urlsplit(process.stdout.readline().decode().strip()).port
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()


def everything(connection):
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", b"HTTP/1.1 408 "),
        (b"\r\n", b"HTTP/1.1 408 "),
        (b"", b""),
    ],
)
def test_a_head_that_does_not_end_is_not_awaited(quick, begin, expected):
    with socket.create_connection(("127.0.0.1", quick), 10) as connection:
        connection.sendall(begin)
        found = everything(connection)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)


def test_neither_is_the_second_head_nor_a_body_after_its_answer(quick):
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    unread = b"POST /healthz HTTP/1.1\r\nHost: example.org\r\nContent-Length: 1000\r\n\r\n"
    for first, second, status in ((whole, b"GET /healthz", b"200"), (unread, b"x", b"403")):
        with socket.create_connection(("127.0.0.1", quick), 10) as connection:
            connection.sendall(first)
            assert connection.recv(65536).startswith(b"HTTP/1.1 " + status)
            connection.sendall(second)
            everything(connection)  # the keep-alive would last longer than the time of this test


def test_a_head_that_is_too_long_is_refused():
    with served("--workers", "1", ready=False) as server:
        start = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
        for head in (
            start + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
            start + b"X: y\r\n" * 20_000 + b"\r\n",
            start + b"X: " + b"a" * 70_000,
            b"GET /" + b"a" * 70_000,
        ):
            status, text = answer(server.url, head)
            assert status == 431, text[:100]
            assert json.loads(text.partition(b"\r\n\r\n")[2])["status"] == 431
        assert answer(server.url, start + b"Connection: close\r\nX: " + b"a" * 60_000 + b"\r\n\r\n")[0] == 200
        trailer = b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: "
        assert answer(server.url, trailer + b"a" * 1_000_000)[0] in (431, 0)  # 0: it is closed while more is sent


def test_every_line_of_the_log_is_json():
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: eA==\r\n\r\n"
    with served("--workers", "1", ready=False) as server:
        status, text = answer(server.url, b"hello\r\n\r\n")
        assert (status, json.loads(text.partition(b"\r\n\r\n")[2])["status"]) == (400, 400)
        with socket.create_connection(("127.0.0.1", urlsplit(server.url).port), 10) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + upgrade)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        said = server.log[3:]  # after the words of the start
        assert any("HTTP" in json.loads(line).get("message", "") for line in said)
        assert not any("WebSocket" in line for line in said)
