"""A server on the loopback address that records requests, for clients of services that have no local server."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple


class Request(NamedTuple):
    """A recorded request; `body` is its JSON."""

    method: str
    path: str
    headers: dict
    body: object


class Recorder:
    """The requests, and the answer to each: a function of the request that returns a status code and JSON."""

    def __init__(self):
        self.requests = []
        self.answer = lambda request: (200, {})
        self.address = ""


@contextmanager
def recorder():
    """A running server; its `requests` are in the order in which they came."""
    known = Recorder()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self):
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, dict(self.headers), json.loads(raw) if raw else None)
            known.requests.append(request)
            status, reply = known.answer(request)
            written = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        do_GET = do_POST = do_PATCH = _answer  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    known.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
