"""Endpoints: a real server on this machine, and every way in which it can answer."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from shutil import which
from socket import SHUT_RDWR
from threading import Thread
from time import perf_counter, sleep
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import karat
from karat.collection import http_endpoint
from karat.collection.http_endpoint import HttpEndpoint
from karat.collection.json_paths import JsonPath, NotThere
from karat.collection.outcomes import CallFailed
from support.forked import run_karat

GOLD = [{"id": "q1", "query": 'say "ä" & {k}?', "gold": ["a"]}, {"id": "q2", "query": "two", "gold": ["b"]}]


class Handler(BaseHTTPRequestHandler):
    """Records what it is asked, and does what the path says."""

    protocol_version = "HTTP/1.1"
    seen: list[dict[str, Any]]
    script: Any

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(None)

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers.get("content-length", 0))))

    def answer(self, body):
        seen, path = self.seen, urlsplit(self.path).path
        call = {
            "method": self.command,
            "path": self.path,
            "headers": dict(self.headers),
            "port": self.client_address[1],
        }
        call["body"] = json.loads(body) if body else None
        seen.append(call)
        status, headers, content = self.script(path, call, len(seen))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        if "content-length" not in headers:
            self.send_header("content-length", str(len(data)))
        self.end_headers()
        with suppress(OSError):  # the client may be gone
            self.wfile.write(data)


class Server:
    """A server with a script: from path, call and number of the call to status, headers and body."""

    def __init__(self, script, context=None):
        self.seen: list[dict[str, Any]] = []
        handler = type("Scripted", (Handler,), {"seen": self.seen, "script": staticmethod(script)})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def says(answer, status=200, **headers):
    return Server(lambda path, call, number: (status, headers, answer))


def ask(answer, **settings):
    """The items that an endpoint with this answer gives."""
    with says(answer) as server:
        return HttpEndpoint(f"{server.url}/search", k=5, **settings).ask("q")


def test_a_query_is_posted_as_json():
    with says(["a", "b"]) as server:
        samples = karat.collect(f"{server.url}/search", GOLD, k=7, concurrency=1)
    assert [one["retrieved"] for one in samples] == [["a", "b"]] * 2
    assert [call["body"] for call in server.seen] == [{"query": row["query"], "k": 7} for row in GOLD]
    assert server.seen[0]["headers"]["content-type"] == "application/json"
    assert server.seen[0]["port"] == server.seen[1]["port"]  # the connection stays open


def test_a_request_of_ones_own():
    template = '{"q": {"match": ["{query}", "x {query}"]}, "size": {k}, "text": "k is {k}"}'
    with says(["a"]) as server:
        HttpEndpoint(server.url, k=3, request=template).ask('a "b"\n{query}')
    text = 'a "b"\n{query}'
    assert server.seen[0]["body"] == {"q": {"match": [text, f"x {text}"]}, "size": 3, "text": "k is 3"}


def test_a_query_in_the_url():
    with says(["a"]) as server:
        HttpEndpoint(f"{server.url}/search?q={{query}}&n={{k}}", k=3).ask("a&b=ä /%20")
    (call,) = server.seen
    assert call["method"] == "GET"
    assert parse_qs(urlsplit(call["path"]).query) == {"q": ["a&b=ä /%20"], "n": ["3"]}


ES = {"took": 1, "hits": {"total": 2, "hits": [
    {"_id": "a", "_score": 2.5, "_source": {"body": "text of a", "n": 1}}, {"_id": "b", "_score": 1, "_source": {}},
]}}  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "items"),
    [
        (["a", "b"], ["a", "b"]),
        ({"documents": ["a"]}, ["a"]),
        ({"results": [{"id": "a", "score": 0.5}]}, [{"id": "a", "score": 0.5}]),
        ({"data": [{"id": "a", "text": "t"}]}, [{"id": "a", "text": "t"}]),
        ({"took": 3, "matches": [{"id": "a", "score": 0.5}]}, [{"id": "a", "score": 0.5}]),
        ({"contexts": ["one text", "two texts"]}, ["one text", "two texts"]),
        ({"results": []}, []),
        ({"data": {"items": ["a"]}}, ["a"]),
        (ES, [{"id": "a", "score": 2.5, "text": "text of a"}, {"id": "b", "score": 1}]),
    ],
)
def test_usual_forms_are_recognised(answer, items):
    found = ask(answer)
    assert [one if isinstance(one, str) else {**one} for one in found] == items


def test_where_the_documents_and_their_fields_are():
    answer = {"out": [{"hits": [{"key": 1, "doc": {"t": "x"}}]}, {"hits": [{"key": 2, "doc": {"t": "y"}}]}]}
    found = ask(answer, path="out[].hits[]", item="id=key, text=doc.t")
    assert found == [{"id": 1, "text": "x"}, {"id": 2, "text": "y"}]
    assert ask(answer, path="out[1].hits", item="id=key") == [{"id": 2}]
    assert ask(answer, path="out[].hits[].doc.t") == ["x", "y"]
    assert ask({"best": {"id": "a", "text": "t"}}, path="best") == [{"id": "a", "text": "t"}]
    assert len(ask({"ids": [["a", "b"]], "documents": [["t", "u"]]})) == 2


@pytest.mark.parametrize(
    ("answer", "settings", "problem"),
    [
        ({"took": 1, "found": []}, {}, 'no list of documents is recognised in an object with "took", "found"'),
        ("text", {}, "the answer is a text"),
        ({"a": {"b": 1}}, {"path": "a.c"}, 'no "c" in "a", which has "b"'),
        ({"a": {"b": 1}}, {"path": "x"}, 'no "x" in the answer, which has "a"'),
        ({"a": {"b": 1}}, {"path": "a[]"}, '"a" is an object with "b", not a list'),
        ({"a": [1]}, {"path": "a[3]"}, '"a" has 1 elements, not one at [3]'),
        ({"a": [1]}, {"path": "a[].b"}, 'no "b" in "a[]", which is a number'),
        ([{"key": 1}], {"item": "id=_id"}, 'no "_id" in a document, which has "key"'),
        ({"a": 1}, {"path": "a", "item": "id=b"}, "the documents are a number, not a list"),
        (b"<html>oops</html>\nmore", {}, "the answer is not JSON: oops more"),
        (b"", {}, "the answer is not JSON: it is empty"),
    ],
)
def test_errors_show_what_is_there(answer, settings, problem):
    with pytest.raises(CallFailed) as found:
        ask(answer, **settings)
    assert problem in str(found.value)
    assert not found.value.again


@pytest.mark.parametrize("text", ["", ".", "a..b", "a[", "a[x]", "a.", ".a", "[]a"])
def test_paths_that_are_none(text):
    with pytest.raises(karat.BadArgument, match="not a path"):
        JsonPath(text)


def test_paths_from_the_top():
    assert JsonPath("[].a").find([{"a": 1}, {"a": 2}]) == [1, 2]
    with pytest.raises(NotThere, match="the answer is a text, not a list"):
        JsonPath("[]").find("x")


def test_a_status_is_a_failure():
    with says(b"no such index\nstack trace", status=404) as server, pytest.raises(CallFailed) as found:
        HttpEndpoint(server.url, k=5).ask("q")
    assert str(found.value) == "HTTP 404: no such index"
    assert not found.value.again


def test_too_many_requests():
    def script(path, call, number):
        return (429, {"retry-after": "0.2"}, b"slow down") if number == 1 else (200, {}, ["a"])

    gold = GOLD[1:]
    with Server(script) as server:
        began = perf_counter()
        assert karat.collect(server.url, gold, retries=1)[0]["retrieved"] == ["a"]
        assert perf_counter() - began >= 0.2
    with Server(script) as server, pytest.raises(karat.NotJudged, match="HTTP 429: slow down"):
        karat.collect(server.url, gold)
    assert len(server.seen) == 1


def test_redirections():
    def script(path, call, number):
        return (307, {"location": "/there"}, b"") if path == "/here" else (200, {}, ["a"])

    with Server(script) as server:
        assert HttpEndpoint(f"{server.url}/here", k=5, headers=["X-Key: 1"]).ask("q") == ["a"]
    assert [(call["method"], call["path"]) for call in server.seen] == [("POST", "/here"), ("POST", "/there")]
    assert server.seen[1]["body"] == {"query": "q", "k": 5}
    assert server.seen[1]["headers"]["X-Key"] == "1"


def test_headers_do_not_follow_to_another_host():
    with says(["a"]) as other, says(b"", status=302, location=f"{other.url}/x") as server:
        assert HttpEndpoint(server.url, k=5, headers=["Authorization: Bearer tell-nobody"]).ask("q") == ["a"]
    assert "Authorization" in server.seen[0]["headers"]
    assert "Authorization" not in other.seen[0]["headers"]
    assert other.seen[0]["method"] == "GET"


@pytest.mark.parametrize(
    ("to", "problem"), [("/again", "more than 5 redirections"), ("file:///etc/passwd", "redirected to file://")]
)
def test_redirections_that_are_refused(to, problem):
    with says(b"", status=301, location=to) as server, pytest.raises(CallFailed, match=problem):
        HttpEndpoint(server.url, k=5).ask("q")


def test_an_answer_that_is_too_large(monkeypatch):
    monkeypatch.setattr(http_endpoint, "_LARGEST", 100)
    with pytest.raises(CallFailed, match="the answer has more than"):
        ask(["a" * 200])


def test_a_slow_server():
    def script(path, call, number):
        sleep(1)
        return 200, {}, ["a"]

    with Server(script) as server, pytest.raises(karat.NotJudged, match=r"timed out after 0\.2 s"):
        karat.collect(server.url, GOLD[1:], timeout=0.2)


def test_a_server_that_closes_idle_connections():
    with Server(lambda path, call, number: (200, {"connection": "close"}, ["a"])) as server:
        endpoint = HttpEndpoint(server.url, k=5)
        assert [endpoint.ask("q") for _ in range(3)] == [["a"]] * 3
    with pytest.raises(CallFailed, match=r"ConnectionRefusedError"):
        endpoint.ask("q")


def test_a_connection_that_was_closed_meanwhile():
    with says(["a"]) as server:
        endpoint = HttpEndpoint(server.url, k=5)
        endpoint.ask("q")
        (connection,) = endpoint._own.connections.values()
        connection.sock.shutdown(SHUT_RDWR)
        assert endpoint.ask("q") == ["a"]
    assert len(server.seen) == 2


@pytest.mark.skipif(which("openssl") is None, reason="openssl makes the certificate")
def test_certificates_are_verified(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=127.0.0.1", "-keyout", key, "-out", certificate]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Server(lambda path, call, number: (200, {}, ["a"]), context) as server, pytest.raises(CallFailed) as found:
        HttpEndpoint(server.url.replace("http:", "https:"), k=5).ask("q")
    assert str(found.value).startswith("SSLCertVerificationError: ")
    assert not found.value.again
    assert not server.seen


def test_secrets_are_neither_shown_nor_stored(monkeypatch, tmp_path):
    monkeypatch.setenv("MY_TOKEN", "hush-hush-hush")
    monkeypatch.setenv("PLACE", "kept-private")
    monkeypatch.chdir(tmp_path)

    def script(path, call, number):
        if number == 2:
            return 403, {}, f"{call['headers']['Authorization']} may not read {path}".encode()
        return 200, {}, ["a"]

    with Server(script) as server:
        endpoint = HttpEndpoint(f"{server.url}/$PLACE", k=5, headers=["Authorization: Bearer ${MY_TOKEN}"])
        samples = karat.collect(endpoint, GOLD, output="out.jsonl", concurrency=1)
    assert server.seen[0]["headers"]["Authorization"] == "Bearer hush-hush-hush"
    assert server.seen[0]["path"] == "/kept-private"
    stored = "".join(path.read_text() for path in tmp_path.iterdir()) + repr(samples) + str(samples.to_dict())
    assert "HTTP 403" in stored
    assert "hush" not in stored
    assert "kept-private" not in stored
    assert "$PLACE" in stored


@pytest.mark.parametrize(
    ("url", "settings", "problem"),
    [
        ("http://", {}, "not the URL"),
        ("http://h:99999/", {}, "not the URL"),
        ("http://h/a b", {}, "not the URL"),
        ("http://me:pw@h/", {}, "the URL has a user name"),
        ("http://h/", {"method": "PUT"}, "GET or POST"),
        ("http://h/", {"method": "GET"}, "needs {query}"),
        ("http://h/{query}", {"method": "GET", "request": "{}"}, "a GET request has no body"),
        ("http://h/", {"request": "{query}"}, "the request is not JSON"),
        ("http://h/", {"request": '{"q": 1}'}, "the request has no {query}"),
        ("http://h/", {"headers": ["nonsense"]}, "a header is a name, a colon and a value"),
        ("http://h/", {"headers": ["A: $NO_SUCH_NAME"]}, "header A: the environment variable NO_SUCH_NAME is not set"),
        ("http://h/", {"headers": ["A: 5 $"]}, "a dollar sign"),
        ("http://h/", {"headers": ["A: x\r\nB: y"]}, "characters that a header cannot have"),
        ("http://h/", {"item": "id"}, "expected fields among"),
        ("http://h/", {"item": "score=s"}, "an item needs an id"),
        ("http://h/", {"path": "a["}, "not a path"),
        ("http://h/$NO_SUCH_NAME", {}, "the environment variable NO_SUCH_NAME is not set"),
    ],
)
def test_settings_are_checked_before_any_call(url, settings, problem):
    with pytest.raises(karat.BadArgument, match=re.escape(problem)):
        HttpEndpoint(url, k=5, **settings)


def test_from_the_command_line(tmp_path, monkeypatch):
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, GOLD)))
    monkeypatch.setenv("MY_TOKEN", "hush-hush-hush")
    given = ["--gold", "gold.jsonl", "-k", "3", "-o", "out.jsonl", "--concurrency", "1"]
    options = ["--request", '{"q": "{query}"}', "--header", "Authorization: Bearer $MY_TOKEN", "--path", "hits.hits[]"]
    with says(ES) as server:
        done = run_karat("collect", server.url, *given, *options, "--item", "id=_id", text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        other = run_karat("collect", server.url, *given, text=True, cwd=tmp_path)
    assert "Next: karat eval out.jsonl" in done.stdout
    assert [call["body"] for call in server.seen] == [{"q": row["query"]} for row in GOLD]
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["retrieved"] for row in rows] == [[{"id": "a"}, {"id": "b"}]] * 2
    assert other.returncode == 2
    assert "was collected with another" in other.stderr


def test_options_of_endpoints_are_refused_elsewhere(tmp_path):
    (tmp_path / "gold.jsonl").write_text(json.dumps(GOLD[0]))
    done = run_karat("collect", "mine.py:f", "--gold", "gold.jsonl", "--path", "a", text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "--path is for endpoints" in done.stderr


def test_tls_where_there_is_none():
    with Server(lambda path, call, number: (200, {}, ["a"])) as server:
        secure = HttpEndpoint(server.url.replace("http://", "https://"), k=5, timeout=5)
        with pytest.raises(CallFailed, match="the server does not use TLS"):
            secure.ask("q")


def test_an_endpoint_with_other_names():
    with Server(lambda path, call, number: (200, {}, {"results": [{"hit": {"id": "a"}, "score": 1.0}]})) as server:
        problem = r'neither "id" nor "text", but "score", "hit.id" \(--item id=hit.id\)'
        with pytest.raises(CallFailed, match=problem):
            HttpEndpoint(server.url, k=5).ask("q")
