"""A thousand malformed and hostile requests: each is refused, nothing is told, and the server goes on."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from support.served import served
from web.hostile import answer, raw, requests


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    with served("--store", tmp_path_factory.mktemp("store"), "--max-body", "1", "--max-seconds", "10") as running:
        yield running


def test_each_is_refused_and_nothing_is_told(target):
    host = urlsplit(target.url).netloc
    wrong, count = [], 0
    for name, request in requests(host, 1000):
        count += 1
        status, text = answer(target.url, request)
        told = [word for word in (b"Traceback", b'File "', b"site-packages", b"src/karat", b"root:") if word in text]
        # Future AGI's clients show the words of an answer, but not those of a status: docs/futureagi-clients.md.
        refused = 400 <= status < 500 or (name.startswith("/sdk/") and b'{"status":false,' in text)
        if not refused or told:
            wrong.append(f"{status} {told} {name}\n    {text[-300:]!r}")
    assert count == 1000
    assert not wrong, "\n".join(wrong[:20]) + f"\n{len(wrong)} of {count}"
    assert target.ask("/readyz").json["status"] == "ready"
    assert not [line for line in target.log if '"fault"' in line or "Traceback" in line]


def test_a_body_that_is_too_long_is_refused_whether_or_not_it_says_so(target):
    host = urlsplit(target.url).netloc
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for request in (
        raw("POST", "/v1/evaluate", host, b" " * 1_000_001),
        raw("POST", "/v1/evaluate", host, chunk * 20 + b"0\r\n\r\n", Transfer_Encoding="chunked"),
    ):
        assert answer(target.url, request)[0] == 413


def test_a_slow_body_is_refused_and_blocks_nobody(tmp_path):
    with (
        served("--max-seconds", "0.5") as server,
        socket.create_connection(("127.0.0.1", urlsplit(server.url).port), 10) as slow,
    ):
        slow.sendall(raw("POST", "/v1/evaluate", urlsplit(server.url).netloc, b"{", Content_Length=100))
        assert server.ask("/healthz").status == 200
        assert slow.recv(65536).startswith(b"HTTP/1.1 408 ")
