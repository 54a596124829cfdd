"""Traces of retrieval: spans of several tools → samples. The checks here are for every file; readers load on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from karat.samples.dialects import dialect_of
from karat.samples.notes import Note
from karat.samples.sources import Source

MARKERS = frozenset((
    "resourceSpans", "resource_spans", "context.span_id", "context.trace_id", "context", "run_type", "trace_id",
    "traceId", "info",
))  # fmt: skip
"""Fields of which a row of every format of traces has at least one."""
LISTS = ("runs", "data", "traces", "observations", "spans")
"""Fields under which the APIs of the tools give a list of rows."""
_BEGINS = tuple(f'"{name}"' for name in sorted(MARKERS))


class Traces(list[dict[str, Any]]):
    """Samples from traces, one dict each, which `karat.evaluate` and `karat.stages` accept.

    Attributes:
        notes: what was recognized, and what was dropped.
        lines: the line or row of the file at which each sample begins.
        source: the name of the file.
    """

    def __init__(
        self, samples: Iterable[dict[str, Any]], lines: Sequence[int], notes: tuple[Note, ...], source: str
    ) -> None:
        super().__init__(samples)
        self.lines, self.notes, self.source = list(lines), notes, source


def may_be_traces(begin: str) -> bool:
    """True if the first line of a file has the name of a field that traces have."""
    return any(name in begin for name in _BEGINS)


def is_table_of_traces(columns: Iterable[str]) -> bool:
    """True if a table with these columns may be one of traces."""
    names = set(columns)
    return not MARKERS.isdisjoint(names) and dialect_of(names) is None


def may_hold_traces(loaded: Any) -> bool:
    """True if the contents of a file may be traces: by the columns of a frame, or the fields of the first row."""
    if hasattr(loaded, "formats"):
        return True
    rows = getattr(loaded, "rows", loaded)
    first = rows[0] if isinstance(rows, list) and rows else rows
    if isinstance(first, Mapping):
        return is_table_of_traces(first) or (dialect_of(first) is None and any(name in first for name in LISTS))
    return is_table_of_traces(getattr(loaded, "columns", ()))


def holds_traces(source: Source) -> bool:
    """True if a source has traces, by its first row."""
    from karat.samples.traces.traces import is_source_of_traces

    return is_source_of_traces(source)
