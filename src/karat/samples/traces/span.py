"""A span: one operation of a trace, whatever tool recorded it; and times and texts that each tool writes in its way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

RETRIEVER, RERANKER, OTHER = "retriever", "reranker", "other"
"""The kinds of spans."""
_ERROR_LENGTH = 300
_SCALES = ((1e17, 1), (1e14, 10**3), (1e11, 10**6), (0.0, 10**9))
"""The least number that is nanoseconds, microseconds, milliseconds and seconds since 1970, and its nanoseconds."""


@dataclass(slots=True)
class Span:
    """One operation of a trace."""

    id: str
    trace: str
    parent: str | None = None
    kind: str = OTHER
    name: str | None = None
    query: str | None = None
    documents: list[Any] | None = None
    """The retrieved documents, or the output of a reranker; None if the trace does not tell."""
    before: list[Any] | None = None
    """The input of a reranker, if the trace tells."""
    start: int | None = None
    """Nanoseconds since 1970."""
    end: int | None = None
    error: str | None = None
    session: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    """Everything else, by which spans are filtered."""
    piece: bool = False
    """True if other rows have more documents of the same span."""
    line: int = 0
    """The line or row of the file."""

    @property
    def latency(self) -> float | None:
        """The time from start to end in milliseconds."""
        if self.start is None or self.end is None or self.end < self.start:
            return None
        return (self.end - self.start) / 1e6

    @property
    def start_time(self) -> str | None:
        """The start as text, in UTC."""
        if self.start is None:
            return None
        try:
            return datetime.fromtimestamp(self.start / 1e9, UTC).isoformat(timespec="microseconds")
        except (OverflowError, OSError, ValueError):
            return None


def time_of(spans: Iterable[Span]) -> float | None:
    """The milliseconds in which at least one of the spans was running; None if no time is known."""
    known = sorted((one.start or 0, one.end or 0) for one in spans if one.latency is not None)
    total = until = 0
    for start, end in known:
        total += max(end - max(start, until), 0)
        until = max(until, end)
    return total / 1e6 if known else None


def text_of(value: Any) -> str | None:
    """An id or a name as text; None for nothing."""
    if value is None or value == "" or isinstance(value, dict | list) or value != value:
        return None
    return str(value)


def first_of(row: Mapping[str, Any], *names: str) -> Any:
    """The first value that is not null among the fields of these names."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def nanoseconds(value: Any) -> int | None:
    """A time as nanoseconds since 1970: from a number of any usual unit, an ISO text, or a datetime."""
    if isinstance(value, str):
        text = value.strip()
        if not text.lstrip("-").isdigit():
            try:
                value = datetime.fromisoformat(text)
            except ValueError:
                return None
        else:
            value = int(text)
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        since = aware - datetime.fromtimestamp(0, UTC)
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or not 0 < value < 1e20:
        return None
    return int(value * next(factor for least, factor in _SCALES if value >= least))


def error_text(message: Any) -> str:
    """The first line of an error message, not too long; "error" if there is none."""
    lines = str(message or "").partition("Traceback (most recent call last)")[0].strip().splitlines()
    return (lines[0][:_ERROR_LENGTH] if lines else "") or "error"
