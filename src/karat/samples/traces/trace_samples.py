"""Samples from spans: one per trace, with steps if several retrievers are in it, and stages if it reranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from karat.llm.secrets import Secrets
from karat.samples.notes import Note
from karat.samples.traces.span import RERANKER, RETRIEVER, Span, time_of
from karat.samples.traces.span_set import SpanSet, tells


class Search(NamedTuple):
    """One search: its retrievers, and the rerankers of what they retrieved."""

    retrievers: list[Span]
    rerankers: list[Span]

    @property
    def last(self) -> Span:
        """The span with the final ranking."""
        return (self.rerankers or self.retrievers)[-1]

    @property
    def spans(self) -> list[Span]:
        """All spans in their order."""
        return [*self.retrievers, *self.rerankers]

    @property
    def error(self) -> str | None:
        """The reason for which the search failed, if it did."""
        if self.last.documents is not None and self.last.error is None:
            return None
        return next((one.error for one in reversed(self.spans) if one.error is not None), None)

    @property
    def query(self) -> str | None:
        """The query of the first span that has one."""
        return next((one.query for one in self.spans if one.query), None)

    @property
    def latency(self) -> float | None:
        """The milliseconds in which at least one of the spans was running."""
        return time_of(self.spans)

    def stages(self) -> dict[str, list[Any]]:
        """The rankings before and after each reranker."""
        before = self.rerankers[0].before
        given = self.retrievers[0].documents if len(self.retrievers) == 1 else None
        first = given if given is not None else before
        if first is None:
            first = [item for one in self.retrievers for item in one.documents or []]
        name = (self.retrievers[0].name if self.retrievers else None) or RETRIEVER
        found = {name: first}
        for one in self.rerankers:
            own = one.name or RERANKER
            number = 2
            while own in found:
                own, number = f"{one.name or RERANKER} {number}", number + 1
            found[own] = one.documents or []
        return found


def samples_of_spans(spans: SpanSet, *, steps: bool = True) -> tuple[list[dict[str, Any]], list[int], tuple[Note, ...]]:
    """The samples of all traces in the order of their first span, their lines, and notes on what was dropped.

    Without `steps`, each retriever span is a sample of its own.
    """
    kept = _kept(spans)
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    order: dict[str, list[Span]] = {}
    for span in kept:
        order.setdefault(span.trace, []).append(span)
    for trace, own in order.items():
        own.sort(key=lambda span: (span.start is None, span.start or 0))
        searches = list(_searches(own))
        for group in [searches] if steps else [[search] for search in searches]:
            rows.append(_sample(group, trace, spans))
            lines.append(min(one.line for search in group for one in search.spans))
    _make_uniform(rows)
    _hide_secrets(rows)
    return rows, lines, _notes(spans, rows)


def _kept(spans: SpanSet) -> list[Span]:
    """The spans that make samples: outermost ones that say what they retrieved, or that they failed."""
    kept = []
    for span in spans.spans.values():
        if spans.is_inside(span, span.kind) or (span.kind == RERANKER and spans.is_inside(span, RETRIEVER)):
            spans.counts.nested += 1
        elif not tells(span):
            spans.counts.without_documents += 1
        else:
            kept.append(span)
    return kept


def _searches(spans: list[Span]) -> Iterator[Search]:
    """The searches of one trace: a reranker belongs to the retrievers before it that no other reranker has."""
    waiting: list[Span] = []
    current: Search | None = None
    for kind, group in groupby(spans, key=lambda span: span.kind):
        if kind == RETRIEVER:
            waiting = list(group)
            continue
        if current is not None:
            yield current
        current = Search(waiting, list(group))
        waiting = []
    if current is not None:
        yield current
    for span in waiting:
        yield Search([span], [])


def _sample(searches: list[Search], trace: str, spans: SpanSet) -> dict[str, Any]:
    """The sample of one trace, or of one search of it."""
    good = [one for one in searches if one.error is None]
    every = [span for search in searches for span in search.spans]
    spans.counts.failed_steps += len(searches) - len(good) if good else 0
    root = next((one for one in _roots(every, spans) if one in spans.parents), None)
    last = (good or searches)[-1].last
    asked = spans.input_around(every[0])
    inside = len(searches) > 1 and every[0].parent is not None
    query = (asked if inside else None) or next(filter(None, (one.query for one in searches)), asked)
    sample: dict[str, Any] = {
        "id": last.id if len(searches) == 1 else trace,
        "query": query,
        "trace_id": trace,
        "span_id": last.id if len(searches) == 1 else root,
        "span_ids": ",".join(span.id for span in every) if len(every) > 1 else None,
        "trace_input": asked if asked != query else None,
        "name": last.name if len(searches) == 1 else None,
        "session": next((span.session for span in every if span.session), None),
        "start_time": next((span.start_time for span in every if span.start is not None), None),
        "latency": time_of(every),
    }
    if not good:
        sample["error"] = searches[-1].error
    elif len(good) > 1:
        sample["steps"] = [_step(one) for one in good]
    elif good[0].rerankers:
        sample["stages"] = good[0].stages()
    else:
        sample["retrieved"] = list(good[0].last.documents or [])
    return {name: value for name, value in sample.items() if value is not None}


def _step(search: Search) -> dict[str, Any]:
    """One search as a step."""
    last = search.last
    facts = {"name": last.name, "query": search.query, "latency": search.latency, "span_id": last.id}
    return {**{k: v for k, v in facts.items() if v is not None}, "retrieved": list(last.documents or [])}


def _roots(every: list[Span], spans: SpanSet) -> list[str]:
    """The outermost span around the spans of a sample, if there is one around all of them."""
    chains = [[*spans.ancestors(span)] for span in every]
    return [chains[0][-1]] if all(chain and chain[-1] == chains[0][-1] for chain in chains) else []


def _rankings(rows: Iterable[dict[str, Any]]) -> Iterator[list[Any]]:
    for row in rows:
        if "retrieved" in row:
            yield row["retrieved"]
        yield from (step["retrieved"] for step in row.get("steps", ()))
        yield from row.get("stages", {}).values()


def _make_uniform(rows: list[dict[str, Any]]) -> None:
    """Give all items the same fields: scores and distances only if all have them, the text as id if ids are mixed."""
    items = [item for ranking in _rankings(rows) for item in ranking]
    given = {name for item in items for name in item}
    lacked = {name for name in given if any(name not in item for item in items)}
    ids, texts = (name in given - lacked for name in ("id", "text"))
    dropped = lacked & {"score", "distance"}
    if not dropped and (ids or texts):
        return
    for ranking in _rankings(rows):
        for place, item in enumerate(ranking):
            changed = {name: value for name, value in item.items() if name not in dropped}
            ranking[place] = changed if ids or texts or "id" in item else {"id": item["text"], **changed}


def _hide_secrets(rows: list[dict[str, Any]]) -> None:
    """Remove what may be a key from the errors."""
    secrets = Secrets()
    for row in rows:
        if "error" in row:
            row["error"] = secrets.message(row["error"])


def _notes(spans: SpanSet, rows: list[dict[str, Any]]) -> tuple[Note, ...]:
    """Notes on the spans that became samples, and on those that did not."""
    sums = {name: value for name, value in vars(spans.counts).items() if value}
    kinds = {name: sum(name in row for row in rows) for name in ("steps", "stages", "error")}
    sums |= {name: value for name, value in {"traces": len(spans.traces), **kinds}.items() if value}
    return (Note("traces", len(rows), spans.counts.spans, details={"formats": list(spans.formats)}, sums=sums),)
