"""Heads of requests as they arrive: not too long and not too slow, before anything else is known about a client."""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from karat.web.problems import MEDIA_TYPE, Refused, problem_of

_BYTES = 65_536
"""The longest head: the first line and all headers."""
_SECONDS = 15.0
"""The time in which a head must arrive, from the connection or from the first byte after an answer."""


class LimitedHeads(HttpToolsProtocol):
    """The protocol of one connection. Bytes that are no body are counted; they are a head, or the end of chunks."""

    seconds = _SECONDS

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._bytes = 0
        """Bytes since the last request, or since a part of its body."""
        self._timer: TimerHandle | None = None
        self._too_long = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time of the first head."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.seconds, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer: nothing is awaited any more."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read some bytes. While no request is being answered, they are part of a head that must end in time."""
        self._bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._too_long or self._bytes > _BYTES:
            self._end(Refused(431, f"the head of the request has more than {_BYTES:,} bytes"))
        elif self._timer is None and self._is_idle():
            self._timer = self.loop.call_later(self.seconds, self._late)

    def on_headers_complete(self) -> None:
        """Pass the request on, unless its head is too long."""
        self._stop_timer()
        self._bytes = 0
        if sum(len(name) + len(value) + 4 for name, value in self.headers) + len(self.url) > _BYTES:
            self._too_long = True
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass a part of a body on."""
        self._bytes = 0
        if not self._too_long:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Pass the end of a request on."""
        self._bytes = 0
        if not self._too_long:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP."""
        self._end(Refused(400, "this is not a request of HTTP/1.1"))

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: a request for another protocol is answered in this one."""

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _late(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._end(Refused(408, "the head of the request did not arrive in time") if self._bytes else None)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, refusal: Refused | None) -> None:
        """Close the connection; with an answer, unless another request is being answered."""
        self._stop_timer()
        if refusal is not None:
            self.logger.warning(refusal.detail)
        arriving = not self._is_idle() and self.cycle.more_body and not self.cycle.response_started
        if refusal is not None and (arriving or self._is_idle()):
            body = msgspec.json.encode(problem_of(refusal))
            head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[refusal.status] + head.encode() + body)
        self.transport.close()
