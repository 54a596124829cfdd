"""A progress bar: shown on a terminal only, after two seconds, and wiped away at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import ClassVar, Self, TextIO, TypeVar

from karat._internal.display import paragraph, sanitize, terminal_width, wrap
from karat._internal.writers import put

T = TypeVar("T")

_WIDTH = 30


class Progress:
    """Counts the steps of some work and draws them as a bar on standard error."""

    delay = 2.0
    """Seconds before the bar is shown: short work shows none."""
    interval = 0.1
    """Seconds between two drawings."""
    watcher: ClassVar[Callable[[int, int], None] | None] = None
    """Called instead of drawing, with the steps done and all steps, where nobody watches the terminal."""

    def __init__(
        self, total: int, title: str, *, stream: TextIO | None = None, clock: Callable[[], float] = monotonic
    ) -> None:
        self.total = max(total, 1)
        self.title = sanitize(title)
        self.done = 0
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._shown = False
        self._quiet = self._stream is None or not self._stream.isatty()
        self._next = clock() + self.delay

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._draw("")

    def step(self, amount: int = 1) -> None:
        """Add finished steps."""
        self.done += amount
        if (watcher := Progress.watcher) is not None:
            watcher(self.done, self.total)
        elif not self._quiet and (now := self._clock()) >= self._next:
            self._next = now + self.interval
            self._shown = True
            share = min(self.done / self.total, 1.0)
            bar = "█" * round(share * _WIDTH)
            room = max(terminal_width(80, self._stream) - _WIDTH - 9, 1)
            self._draw(f"{wrap(self.title, room)[0]}  {bar:·<{_WIDTH}}  {share:4.0%}")

    def _draw(self, line: str) -> None:
        self._stream.write(f"\r\x1b[K{line}")
        self._stream.flush()


def track(items: Iterable[T], total: int, title: str) -> Iterator[T]:
    """The items one by one, with a progress bar."""
    with Progress(total, title) as bar:
        for item in items:
            yield item
            bar.step()


def confirm(question: str, *, unattended: bool) -> bool:
    """Ask a yes/no question on the terminal; `unattended` is the answer if nobody is there to give one."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return unattended
    lines = (paragraph(line, "", "", stream=sys.stderr) for line in f"{question} [y/N] ".split("\n"))
    put("\n".join(lines), error=True, end="")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
