"""A bar for long work: shown after two seconds, on a terminal only, and wiped away at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Self, TypeVar

T = TypeVar("T")

_PATIENCE = 2.0
_BETWEEN = 0.1
_WIDTH = 30


class Progress:
    """How far some work is; call `step` as it goes on."""

    def __init__(self, total: int, what: str) -> None:
        self.total = max(total, 1)
        self.what = what
        self.done = 0
        self._shown = False
        self._quiet = sys.stderr is None or not sys.stderr.isatty()
        self._next = monotonic() + _PATIENCE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def step(self, amount: int = 1) -> None:
        """So much more is done."""
        self.done += amount
        if not self._quiet and (now := monotonic()) >= self._next:
            self._next = now + _BETWEEN
            self._shown = True
            share = min(self.done / self.total, 1.0)
            bar = "█" * round(share * _WIDTH)
            sys.stderr.write(f"\r\x1b[K{self.what}  {bar:·<{_WIDTH}}  {share:4.0%}")
            sys.stderr.flush()


def track(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The items one by one, while a bar shows how far they are."""
    with Progress(total, what) as bar:
        for item in items:
            yield item
            bar.step()
