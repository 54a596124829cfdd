"""How many calls are made at once: as many as allowed, half as many when the endpoint has trouble."""

from __future__ import annotations

import asyncio
from collections import deque


class Lanes:
    """Room for calls under way, between one and `most`.

    Every full round of answers adds a lane; trouble takes half of them away. Calls that were under way when lanes
    were taken away tell nothing new, so they take no more.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._busy = 0
        self._halvings = 0
        self._until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> int:
        """Wait for a lane; the number is to be given back with `worse`."""
        if self._waiting or not self._free():
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # it came in the same moment
                    self.leave()
                raise
        else:
            self._busy += 1
        return self._halvings

    def leave(self) -> None:
        """The call is over."""
        self._busy -= 1
        self._let_in()

    def better(self) -> None:
        """An answer came."""
        self.limit = min(self.limit + 1 / self.limit, float(self.most))

    def worse(self, entered: int) -> None:
        """A call met trouble that fewer calls at once might have spared it."""
        if entered == self._halvings:
            self.limit = max(self.limit / 2, 1.0)
            self._halvings += 1

    def pause(self, seconds: float) -> None:
        """Nobody enters for a while."""
        loop = asyncio.get_running_loop()
        self._until = max(self._until, loop.time() + seconds)
        loop.call_at(self._until, self._resume, self._until)

    def _resume(self, until: float) -> None:
        if until >= self._until:  # not by the clock: it may run a moment behind the timer
            self._until = 0.0
        self._let_in()

    def _free(self) -> bool:
        return self._busy < int(self.limit) and asyncio.get_running_loop().time() >= self._until

    def _let_in(self) -> None:
        while self._waiting and self._free():
            turn = self._waiting.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)
