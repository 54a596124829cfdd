"""Idempotency keys: a request that is sent again with the same key gets the first answer, and nothing is done twice."""

from __future__ import annotations

from asyncio import Future, get_running_loop, shield, to_thread
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from time import monotonic
from typing import NamedTuple

from karat.web.messages import Reply
from karat.web.problems import Refused

Answered = tuple[Reply, bytes]
_SECONDS = 24 * 3600.0
_BYTES = 100_000_000
_MOST = 10_000
_LARGE = 1_000_000
"""Bytes from which on a body is hashed in a thread."""
_LONGEST = 255
_PASSING = frozenset({408, 429})
"""Answers that another try may change; so may every 5xx."""
REPLAYED = "Idempotency-Replayed"


class _First(NamedTuple):
    """The first request with a key."""

    digest: bytes
    answer: Future[Answered | None]
    time: float

    @property
    def bytes(self) -> int:
        """The memory of its answer."""
        found = self.answer.result() if self.answer.done() and not self.answer.cancelled() else None
        return 0 if found is None else len(found[1])


class Repeats:
    """The answers to requests with a key, by client and key: for a day, within a limit of memory."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], _First] = OrderedDict()
        self._bytes = 0

    async def answer(
        self,
        client: str,
        key: str,
        asked: tuple[str, ...],
        body: bytes,
        work: Callable[[], Awaitable[Answered]],
        valid: Callable[[Reply], bool] = lambda _: True,
    ) -> Answered:
        """The answer to a request: of the first with its key, or of `work`. At the same time, all but one wait.

        An answer that is no longer `valid`, because its job is forgotten, is not given again.
        """
        if not key or len(key) > _LONGEST:
            raise Refused(400, f"an Idempotency-Key has 1 to {_LONGEST} characters")
        digest = await _digest(asked, body)
        while (first := self._known.get((client, key))) is not None and monotonic() - first.time < _SECONDS:
            if first.digest != digest:
                raise Refused(422, "this Idempotency-Key was used for another request", hint="a new key")
            found = await _settled(first.answer)
            if found is not None and not valid(found[0]):
                if self._known.get((client, key)) is first:
                    break
            elif found is not None:
                reply, content = found
                return _replayed(reply), content
        return await self._work((client, key), digest, work)

    async def _work(self, name: tuple[str, str], digest: bytes, work: Callable[[], Awaitable[Answered]]) -> Answered:
        first = _First(digest, get_running_loop().create_future(), monotonic())
        self._forget(name)
        self._known[name] = first
        kept: Answered | None = None
        try:
            found = await work()
            if found[0].status < 500 and found[0].status not in _PASSING:
                kept = found
            return found
        finally:
            first.answer.set_result(kept)
            if kept is None:
                self._known.pop(name, None)
            else:
                self._bytes += first.bytes
                self._make_room()

    def _make_room(self) -> None:
        """Forget the oldest answers, until the others fit."""
        while self._known and (self._bytes > _BYTES or len(self._known) > _MOST):
            oldest = next((name for name, first in self._known.items() if first.answer.done()), None)
            if oldest is None:
                return
            self._forget(oldest)

    def _forget(self, name: tuple[str, str]) -> None:
        if (old := self._known.pop(name, None)) is not None:
            self._bytes -= old.bytes


async def _settled(answer: Future[Answered | None]) -> Answered | None:
    """The answer of the first request; None if it failed, and the next one is the first."""
    return await shield(answer)


def _replayed(reply: Reply) -> Reply:
    return Reply(reply.status, reply.content_type, {**reply.headers, REPLAYED: "true"})


async def _digest(asked: tuple[str, ...], body: bytes) -> bytes:
    """A digest of everything that decides the answer."""
    digest = blake2b("\0".join(asked).encode("utf-8", "replace"), digest_size=32)
    if len(body) > _LARGE:
        await to_thread(digest.update, body)
    else:
        digest.update(body)
    return digest.digest()
