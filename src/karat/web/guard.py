"""Everything that holds for every request: keys, hosts and origins, its body, and the log."""

from __future__ import annotations

import gc
from asyncio import get_running_loop
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from karat.web.access_keys import KeyFile
from karat.web.arrival import Arrivals
from karat.web.log import Entry, Log
from karat.web.messages import Reply
from karat.web.problems import Refused, reply_to
from karat.web.server import is_loopback
from karat.web.settings import Settings
from karat.web.view.routes import HEADERS
from karat.web.view.session import Session

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Message, Receive, Send

_OPEN = frozenset({"/", "/healthz", "/readyz", "/docs", "/openapi.json"})
"""Paths that need no key: they tell nothing about the data."""
_LARGE = 1_000_000
"""Bytes of a body after which garbage is collected: an error and its frames hold each other, and with them the body."""
_CORS = "authorization, content-type, accept, prefer, idempotency-key, x-api-key, x-secret-key"


class Guard:
    """Refuses requests before anything reads them, and logs every one."""

    def __init__(self, application: ASGIApp, settings: Settings, log: Log) -> None:
        self._next, self._settings, self._log = application, settings, log
        self._arrivals = Arrivals(settings.limits)
        self._keys = None if settings.keys is None else KeyFile(settings.keys, log.say)
        command = f"karat {settings.command}"
        self._session = (
            None if settings.view is None else Session(settings.token, settings.port, settings.once, command)
        )

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on with its whole body."""
        if scope["type"] != "http":
            await self._next(scope, receive, send)
            return
        begin, sent = perf_counter(), _Sent(send, uuid4().hex)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client, size = (scope.get("client") or ("?",))[0], 0
        if self._session is not None:
            sent.more |= HEADERS
        try:
            sent.more |= self._origin(headers)
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await sent.reply(Reply(204, ""), b"")
                return
            if self._session is not None:
                redirect = self._session.check(scope["path"], scope["query_string"].decode("latin-1"), headers)
                if redirect is not None:
                    await sent.reply(redirect, b"")
                    return
            open_to_all = scope["path"].rstrip("/") in _OPEN
            client = (None if open_to_all else self._client(scope["path"], headers)) or client
            async with self._arrivals.body(headers, receive, client, open_to_all=open_to_all) as body:
                size = len(body)
                scope["state"]["client"] = client
                scope["state"]["sent"] = sent
                await self._next(scope, _whole(body, receive), sent)
        except Exception as error:
            if sent.status:  # the answer has begun
                raise
            accept, page = headers.get("accept", ""), self._session is not None
            reply, words = reply_to(error, scope["path"], accept, sent.request, scope["method"], page=page)
            sent.fault = reply.fault
            await sent.reply(reply, words)
        finally:
            scope["state"].pop("sent", None)  # it leads back to the scope
            entry = Entry(
                "", sent.request, scope["method"], scope["path"], sent.status, 0, size, sent.size, client, sent.fault
            )
            self._log.add(entry, perf_counter() - begin)
            if size > _LARGE:
                get_running_loop().call_soon(gc.collect)

    def _client(self, path: str, headers: dict[str, str]) -> str | None:
        """The name of the key."""
        if self._keys is None:
            return None
        name = self._keys.name_in(headers)
        if name is not None:
            return name
        if "authorization" in headers or "x-secret-key" in headers or path.startswith("/sdk/"):
            bearer = headers.get("authorization", "Bearer").lower().startswith("bearer")
            raise Refused(403, "the key is wrong", hint=None if bearer else "Authorization: Bearer KEY")
        raise Refused(401, "a key is missing", hint="Authorization: Bearer KEY")

    def _origin(self, headers: dict[str, str]) -> dict[str, str]:
        """Headers that let a page of an allowed origin read the answer. Other pages are refused.

        Without keys also other hosts are refused: a page could name its own host and let it resolve to this machine.
        """
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._keys is None and not is_loopback(_without_port(host)):
            raise Refused(403, "without keys, karat answers only to the names of this machine", hint="127.0.0.1")
        if origin is None or origin in {f"http://{host}", f"https://{host}"}:
            return {}
        if origin not in self._settings.origins:
            hint = "karat serve --allow-origin" if self._session is None else None
            raise Refused(403, "pages of this origin may not ask", hint=hint)
        return {
            "Access-Control-Allow-Origin": origin, "Access-Control-Allow-Headers": _CORS, "Vary": "Origin",
            "Access-Control-Allow-Methods": "GET, POST, DELETE", "Access-Control-Expose-Headers": "*",
            "Access-Control-Max-Age": "600",
        }  # fmt: skip


class _Sent:
    """Passes an answer on and remembers its status and size; adds the headers of every answer."""

    def __init__(self, send: Send, request: str) -> None:
        self._send, self.request = send, request
        self.status = self.size = 0
        self.fault: str | None = None
        self.more: dict[str, str] = {}

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            every = {"X-Request-Id": self.request, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
            added = [(name.lower().encode(), value.encode()) for name, value in (every | self.more).items()]
            message["headers"] = [*message["headers"], *added]
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
        await self._send(message)

    async def reply(self, reply: Reply, body: bytes) -> None:
        """Send an answer."""
        headers: dict[str, Any] = {
            "Content-Type": reply.content_type,
            "Content-Length": str(len(body)),
            **reply.headers,
        }
        if reply.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items() if value]
        await self({"type": "http.response.start", "status": reply.status, "headers": pairs})
        await self({"type": "http.response.body", "body": body, "more_body": False})


def _without_port(host: str) -> str:
    """The name or the address in the header `Host`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def _whole(body: bytes, receive: Receive) -> Receive:
    """A body that has been received, then what else the client does."""
    messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Any:
        return messages.pop() if messages else await receive()

    return replay
