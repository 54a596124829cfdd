"""What is about to be asked, and how far it is: calls, cost, time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from karat.llm.protocol import Spent
from karat.llm.rough import ANSWER, BYTES
from karat.progress import Progress
from karat.tables import many


class Estimate(NamedTuple):
    """What a pass would take: the calls it needs, the answers it has, the tokens and dollars by a rough count."""

    calls: int
    cached: int
    tokens: int
    cost: float | None

    def __str__(self) -> str:
        cost = "" if self.cost is None else f", about {dollars(self.cost)}"
        counted = f"one for {BYTES} bytes of prompt, {ANSWER} for an answer"
        return (
            f"{many(self.calls, 'call', 'calls')} to make ({many(self.cached, 'answer', 'answers')} in the cache), "
            f"about {self.tokens:,} tokens ({counted}){cost}"
        )


class Meter:
    """A bar with the rate, the cost so far and the time left; `step` as each request is done."""

    def __init__(self, total: int, spent: Callable[[], Spent], *, shown: bool) -> None:
        self._bar = Progress(total, "asking") if shown else None
        self._spent = spent
        self._before = spent()
        self._began = monotonic()
        self._done = 0

    def step(self) -> None:
        """One more request is done."""
        self._done += 1
        if self._bar is not None:
            self._bar.what = self._words(self._bar.total - self._done)
            self._bar.step()

    def close(self) -> None:
        """Wipe the bar away."""
        if self._bar is not None:
            self._bar.__exit__()

    def _words(self, left: int) -> str:
        now = self._spent()
        seconds = max(monotonic() - self._began, 1e-9)
        asked = max(self._done - (now.cached - self._before.cached), 0)  # those in the cache take no time
        rate = asked / seconds
        parts = [f"asking {rate:5.1f}/s"]
        if now.cost is not None:
            parts.append(dollars(now.cost))
        if rate:
            parts.append(f"{span(left / rate)} left")
        return "  ".join(parts)


def dollars(cost: float) -> str:
    """An amount of money, exact to the cent, or beyond where it is small."""
    return f"${cost:,.2f}" if cost >= 1 or not cost else f"${cost:.4f}"


def span(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.0f} h"


def on_terminal() -> bool:
    """Whether somebody is there who can answer."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
