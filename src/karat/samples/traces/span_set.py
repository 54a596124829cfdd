"""The spans of a source: retrievers and rerankers in full, of the others only what tells who is inside whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from karat.samples.traces.span import OTHER, RERANKER, RETRIEVER, Span
from karat.samples.traces.span_filter import SpanFilter


@dataclass
class Counts:
    """Numbers of spans: those that were found, and those that were dropped by the reason."""

    spans: int = 0
    retrievers: int = 0
    rerankers: int = 0
    other: int = 0
    filtered: int = 0
    nested: int = 0
    without_documents: int = 0
    failed_steps: int = 0
    repeated: int = 0
    unreadable: int = 0


@dataclass
class SpanSet:
    """The spans of one or more files, by their ids."""

    spans: dict[str, Span] = field(default_factory=dict)
    """Retrievers and rerankers."""
    parents: dict[str, str | None] = field(default_factory=dict)
    """The parent of every span, or None for a root."""
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each trace the inputs of its roots that are texts, by the ids of the roots."""
    traces: set[str] = field(default_factory=set)
    counts: Counts = field(default_factory=Counts)
    formats: dict[str, None] = field(default_factory=dict)
    _numbered: int = 0

    def add(self, span: Span | None, line: int = 0) -> None:
        """Add a span; None is one that cannot be read. One that is given again replaces the first."""
        counts = self.counts
        if span is None:
            counts.unreadable += 1
            return
        span.line = line
        span.trace = span.trace or span.id
        if not span.id:
            self._numbered += 1
            span.id = f"span-{self._numbered}"
            span.trace = span.trace or span.id
        again = span.id in self.parents
        if span.piece and again and (first := self.spans.get(span.id)) is not None:
            if span.documents is None:
                counts.unreadable += 1
            else:
                first.documents = [*(first.documents or []), *span.documents]
            return
        if again:
            counts.repeated += 1
            if span.kind == OTHER and span.id in self.spans:
                return
        else:
            counts.spans += 1
        self.parents[span.id] = span.parent
        self.traces.add(span.trace)
        if span.parent is None and span.query:
            self.inputs.setdefault(span.trace, {})[span.id] = span.query
        if span.kind == OTHER:
            counts.other += not again
            return
        if span.id not in self.spans:
            counts.retrievers += span.kind == RETRIEVER
            counts.rerankers += span.kind == RERANKER
        self.spans[span.id] = span

    def choose(self, choice: SpanFilter) -> None:
        """Drop the spans that a filter does not keep."""
        if not choice.active:
            return
        for span in [span for span in self.spans.values() if not choice.keeps(span)]:
            del self.spans[span.id]
            self.counts.filtered += 1

    def merge(self, other: SpanSet) -> None:
        """Add the spans of another file."""
        for name, value in vars(other.counts).items():
            setattr(self.counts, name, getattr(self.counts, name) + value)
        self.counts.repeated += len(self.parents.keys() & other.parents.keys())
        self.spans |= other.spans
        self.parents |= other.parents
        for trace, own in other.inputs.items():
            self.inputs.setdefault(trace, {}).update(own)
        self.formats |= other.formats
        self.traces |= other.traces

    def ancestors(self, span: Span) -> Iterator[str]:
        """The ids of the spans around a span, the nearest first."""
        seen = {span.id}
        parent = span.parent
        while parent is not None and parent not in seen:
            seen.add(parent)
            yield parent
            parent = self.parents.get(parent)

    def input_around(self, span: Span) -> str | None:
        """The input of the root around a span, or of one that may be: spans between them may be missing."""
        roots = self.inputs.get(span.trace, {})
        around = [roots[one] for one in self.ancestors(span) if one in roots]
        return next(iter([*around, *(text for one, text in roots.items() if one not in self.spans)]), None)

    def is_inside(self, span: Span, kind: str) -> bool:
        """True if a span of this kind, whose documents or failure are known, is around a span."""
        around = (self.spans.get(one) for one in self.ancestors(span))
        return any(one is not None and one.kind == kind and tells(one) for one in around)


def tells(span: Span) -> bool:
    """True if a span says what it retrieved, or that it failed."""
    return span.documents is not None or span.error is not None
