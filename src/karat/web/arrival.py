"""Bodies as they arrive: not too long, not too slow, and not too many at once."""

from __future__ import annotations

from asyncio import timeout
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from karat.web.problems import Refused
from karat.web.settings import MEGABYTE, Limits

if TYPE_CHECKING:
    from litestar.types import Receive

_DRAIN_SECONDS = 2.0
"""The time for which the rest of a refused body is read: a client that is still sending would not see the answer."""
_AT_ONCE = 5
"""The memory of all bodies, in bodies of the largest size."""
_OF_ONE = 3
"""The part of it that one client may take."""
_OPEN_BYTES = 1000
"""Bytes of a body where no key is needed: nothing reads it."""


class Arrivals:
    """The bodies of all requests that are being answered."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held = 0
        """Bytes of the bodies in memory."""
        self._held_by: Counter[str] = Counter()
        """The same by client."""

    @asynccontextmanager
    async def body(
        self, headers: dict[str, str], receive: Receive, client: str, *, open_to_all: bool = False
    ) -> AsyncIterator[bytes]:
        """The whole body of a request, in memory until the end of the block."""
        most = min(_OPEN_BYTES, self._limits.body) if open_to_all else self._limits.body
        parts: list[bytes] = []
        size = 0
        try:
            async for part in self._parts(headers, receive, client, most):
                parts.append(part)
                size += len(part)
                self._held += len(part)
                self._held_by[client] += len(part)
            whole = parts[0] if len(parts) == 1 else b"".join(parts)
            parts.clear()
            yield whole
        finally:
            self._held -= size
            self._held_by[client] -= size
            if not self._held_by[client]:
                del self._held_by[client]

    async def _parts(self, headers: dict[str, str], receive: Receive, client: str, most: int) -> AsyncIterator[bytes]:
        """The parts of a body; of one that is refused, the rest is read for a moment."""
        size, length = 0, headers.get("content-length", "0")
        told = int(length) if length.isdecimal() and len(length) < 19 else 10**18
        refusal = self._refusal(told, told, client, most)
        more = True
        try:
            async with timeout(self._limits.seconds if refusal is None else _DRAIN_SECONDS):
                while more and size <= _AT_ONCE * self._limits.body:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Refused(400, "the body ended before its end")
                    more, part = message.get("more_body", False), message.get("body", b"")
                    size += len(part)
                    refusal = refusal or self._refusal(size, len(part), client, most)
                    if refusal is None:
                        yield part
        except TimeoutError:
            refusal = refusal or Refused(408, "the body did not arrive in time")
        if refusal is not None:
            raise refusal

    def _refusal(self, size: int, more: int, client: str, most: int) -> Refused | None:
        """The refusal of a body of this size, of which so many bytes come now."""
        if size > most:
            return Refused(413, f"the body has more than {most / MEGABYTE:g} MB", hint="several smaller requests")
        if self._held_by[client] + more > _OF_ONE * self._limits.body:
            return Refused(429, "too many of your large bodies are being answered", retry_after=2)
        if self._held + more > _AT_ONCE * self._limits.body:
            return Refused(503, "too many large bodies are being answered", retry_after=2)
        return None
