"""Span scores: the scores of a run, each with the span or the trace from which its query came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite, isnan
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from karat.errors import InputError
from karat.run import Run

_NAMESPACE = UUID("6b617261-7400-5000-8000-707573680000")
RELEVANT = "relevant"
"""The name of the annotation of a document."""


class SpanScore(NamedTuple):
    """One score, and where it belongs: to a span, to a document of a span, or to a whole trace."""

    query_id: str
    name: str
    score: float
    span_id: str | None
    """None if the query was made of several spans: the score belongs to the trace."""
    trace_id: str | None
    time: str | None = None
    """The start of the span, if the samples have the field `start_time`."""
    position: int | None = None
    """The position of a document in the span, from 0."""

    @property
    def key(self) -> UUID:
        """The id of this score: the same whenever it is pushed, so that it replaces what was pushed before."""
        return uuid5(_NAMESPACE, "\0".join(map(str, (self.trace_id, self.span_id, self.position, self.name))))

    def to_dict(self) -> dict[str, Any]:
        """The fields that are known."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Outgoing(NamedTuple):
    """The scores of a run that can be sent, and the number of those that cannot, by reason.

    "no span" and "failed" count queries, "undefined" and "never reached" (a measure) count scores, "several spans"
    counts queries whose documents have no positions in one span.
    """

    scores: list[SpanScore]
    skipped: dict[str, int]
    queries: int


class _Place(NamedTuple):
    """The place of one query in the trace store."""

    row: int
    query_id: str
    span_id: str | None
    trace_id: str | None
    time: str | None
    alone: bool
    """True if the ranking is that of one span, so that the positions of its documents are known."""


def span_scores(
    run: Run, names: list[str], *, written: Callable[[str], str] = str, prefix: str = "", documents: bool = False
) -> Outgoing:
    """The scores of these metrics and measures, by query; what is not sent is counted."""
    places = _places(run)
    failed = run.failures
    known = [place for place in places if place.span_id or place.trace_id]
    judged = [place for place in known if place.query_id not in failed]
    skipped = {
        "no span": len(places) - len(known),
        "failed": len(known) - len(judged),
        "undefined": 0,
        "never reached": 0,
        "several spans": 0,
    }
    scores: list[SpanScore] = []
    for place in judged:
        for name in names:
            value = float(run.columns[name][place.row])
            if isfinite(value):
                scores.append(_score(place, prefix + written(name), value))
            else:
                skipped["undefined" if isnan(value) else "never reached"] += 1
        if documents and place.alone:
            scores += _documents(run, place, prefix + RELEVANT)
        elif documents:
            skipped["several spans"] += 1
    return Outgoing(scores, {reason: count for reason, count in skipped.items() if count}, len(judged))


def _score(place: _Place, name: str, value: float, position: int | None = None) -> SpanScore:
    return SpanScore(place.query_id, name, value, place.span_id, place.trace_id, place.time, position)


def _documents(run: Run, place: _Place, name: str) -> Iterator[SpanScore]:
    """The grade of each document that was retrieved, 0 for one that is not gold; none of a query without gold."""
    found = run.hits(place.query_id)
    if not run.gold(place.query_id):
        return
    grades: dict[int, float] = {}
    for hit in found:
        grades[hit.rank] = max(hit.grade, grades.get(hit.rank, hit.grade))
    for rank in range(1, int(run.all_hits.depth[place.row]) + 1):
        if (grade := grades.get(rank, 0.0)) >= 0:  # a grade below 0 means: not judged
            yield _score(place, name, grade, rank - 1)


def _places(run: Run) -> list[_Place]:
    """The place of each query; several queries of one span are refused, since their scores would replace each other."""
    meta = run.meta
    if not {"span_id", "trace_id"} & meta.keys():
        problem = "the run has no span ids: its samples have no field span_id or trace_id"
        raise InputError(problem, hint="karat eval traces.jsonl --gold gold.jsonl -o run.parquet")
    names = ("span_id", "trace_id", "start_time", "span_ids")
    columns = zip(run.ids, *(_column(meta, name, len(run)) for name in names), strict=True)
    hint = '"steps": [{"span_id": …, "retrieved": […]}, …], or at="item"' if "step" in meta else None
    seen: dict[tuple[str | None, str | None], str] = {}
    places = []
    for row, (query_id, span, trace, time, others) in enumerate(columns):
        if (span or trace) and (other := seen.setdefault((trace, span), query_id)) != query_id:
            what = f'the span "{span}"' if span else f'the trace "{trace}"'
            raise InputError(
                f'{what} belongs to two queries, "{other}" and "{query_id}", and takes one score', hint=hint
            )
        places.append(_Place(row, query_id, span, trace, time, span is not None and "," not in (others or "")))
    return places


def _column(meta: Mapping[str, Any], name: str, rows: int) -> list[str | None]:
    """A field of the samples as texts; None where it is missing or empty."""
    column = meta.get(name) or [None] * rows
    return [None if value is None else str(value).strip() or None for value in column]
