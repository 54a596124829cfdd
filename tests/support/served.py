"""A real `karat serve` in a process of its own, for tests over HTTP; `viewed.py` has `karat view`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

ROOT = Path(__file__).parents[2]


class Answer:
    """The answer to a request."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Server:
    """A server that runs; `log` are the lines it has written so far."""

    opener = build_opener(ProxyHandler({}))

    def __init__(self, url, process, log):
        self.url, self.process, self._log = url, process, log

    def ask(self, path, body=None, *, method=None, timeout=30, **headers):
        """The answer to a request; a body that is not bytes is sent as JSON."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        request = Request(self.url + path, body, headers, method=method)
        try:
            with self.opener.open(request, timeout=timeout) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())

    def logged(self, answer):
        """The line of the log for an answer, which may be written a moment after the answer."""
        number = answer.headers["X-Request-Id"]
        for _ in range(100):
            lines = [json.loads(line) for line in self.log if number in line]
            if lines:
                break
            time.sleep(0.02)
        assert len(lines) == 1
        return lines[0]

    @property
    def log(self):
        self._log.seek(0)
        return self._log.read().decode().splitlines()


@contextmanager
def started(kind, *arguments, cwd=None, env=None):
    """A server of this kind, which `karat` starts with these arguments; its address is the first line of its output."""
    with TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "karat", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=log, cwd=cwd, env=env,
        )  # fmt: skip
        try:
            url = process.stdout.readline().decode().strip()
            server = kind(url, process, log)
            assert url.startswith("http://"), (url, server.log)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            finally:
                process.stdout.close()


@contextmanager
def served(*options, ready=True, cwd=None, env=None):
    """A server with these options on a free port, stopped at the end; `ready` waits until it can evaluate."""
    with started(Server, "serve", "--port", 0, *options, cwd=cwd, env=env) as server:
        while ready and server.ask("/readyz").status != 200:
            time.sleep(0.02)
        yield server
