"""Scores as annotations in Phoenix: separate, because it loads the Phoenix client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from phoenix.client import Client

from karat.bridges.push.span_scores import SpanScore

_REFUSED = {400, 404, 422}
"""The status codes by which Phoenix refuses a whole request because of one of its annotations."""


class PhoenixAnnotations:
    """Annotations of spans, traces and documents; an annotation of the same name and identifier is replaced."""

    batch = 100

    def __init__(self, endpoint: str | None, project: str | None, facts: Mapping[str, str]) -> None:
        self._client = Client(base_url=endpoint)
        self._facts = dict(facts)

    def send(self, scores: Sequence[SpanScore]) -> list[str]:
        """Send annotations and return the reasons of those that were refused."""
        spans, traces = self._client.spans, self._client.traces
        refused = []
        for log, name, part in (
            (spans.log_span_annotations, "span_annotations", [s for s in scores if s.span_id and s.position is None]),
            (traces.log_trace_annotations, "trace_annotations", [s for s in scores if not s.span_id]),
            (spans.log_document_annotations, "document_annotations", [s for s in scores if s.position is not None]),
        ):
            if part:
                refused += _log(log, name, [self._annotation(score) for score in part])
        return refused

    def _annotation(self, score: SpanScore) -> dict[str, Any]:
        place: dict[str, Any] = {"span_id": score.span_id} if score.span_id else {"trace_id": score.trace_id}
        result: dict[str, Any] = {"score": score.score}
        if score.position is None:
            place["identifier"] = "karat"
        else:  # the annotation of a document has no identifier
            place["document_position"] = score.position
            result["label"] = "relevant" if score.score > 0 else "not relevant"
        metadata = {**self._facts, "query_id": score.query_id}
        return {"name": score.name, "annotator_kind": "CODE", "result": result, "metadata": metadata, **place}


def _log(log: Callable[..., Any], name: str, annotations: list[dict[str, Any]]) -> list[str]:
    """Log annotations in one request, or one by one if Phoenix refuses one of them; return the reasons."""
    try:
        log(**{name: annotations}, sync=True)
    except Exception as error:
        answer = getattr(error, "response", None)
        if answer is None or answer.status_code not in _REFUSED:
            raise
        if len(annotations) == 1:
            return [answer.text]
        return [reason for one in annotations for reason in _log(log, name, [one])]
    return []
