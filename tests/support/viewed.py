"""A real `karat view` in a process of its own: its address with the token, and a reader who has been let in."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

from karat.web.view.folder import find_files
from support.served import Server, started


class _Stay(HTTPRedirectHandler):
    """Redirects are answers, too."""

    def redirect_request(self, *_):
        return None


class Viewer(Server):
    """A viewer that runs; `address` is the first line of its output, `url` the same without path and token."""

    opener = build_opener(ProxyHandler({}), _Stay)
    folder = Path()

    def __init__(self, address, process, log):
        parts = urlsplit(address)
        super().__init__(f"{parts.scheme}://{parts.netloc}", process, log)
        self.address, self.port = address, parts.port
        self.entry = address.removeprefix(self.url)
        """The path with the token."""

    @property
    def token(self):
        return self.entry.rpartition("=")[2]

    @cached_property
    def cookie(self):
        """The cookie of a reader who has opened the address, as a browser sends it."""
        return super().ask(self.entry).headers["Set-Cookie"].partition(";")[0]

    def ask(self, path, body=None, *, cookie=True, **more):
        """The answer to a reader; `cookie` is another one, or None for a stranger."""
        if cookie is not None:
            more["Cookie"] = self.cookie if cookie is True else cookie
        return super().ask(path, body, **more)

    def page(self, path):
        """The HTML of a page that is there."""
        answer = self.ask(path)
        assert answer.status == 200, (path, answer.status, answer.body[:500])
        return answer.body.decode()

    def run(self, name):
        """The opaque id of a run by its name, which is its path below the folder without the ending."""
        return next(file.id for file in find_files(self.folder).files if file.name == name)


@contextmanager
def viewed(folder, *options, cwd=None, env=None):
    """A viewer of a folder on a free port, stopped at the end."""
    with started(Viewer, "view", folder, "--no-open", "--port", 0, *options, cwd=cwd, env=env) as viewer:
        viewer.folder = Path(folder)
        yield viewer
