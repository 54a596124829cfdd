"""MLflow: karat's metrics as scorers of `mlflow.genai.evaluate`, which read retriever spans; and `log_run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from karat.bridges.row_scores import Metrics, Rows, Where, framework, value_at
from karat.errors import InputError
from karat.metrics import DEFAULT
from karat.metrics.flat_names import flat_name

with framework("karat.bridges.mlflow", "mlflow"):
    from mlflow.entities import Feedback, Span, SpanType, Trace
    from mlflow.genai.scorers import Scorer, scorer

    from karat.bridges.mlflow_tracking import log_run  # noqa: F401

_EXPECTED = "expected_retrieved_context"
"""MLflow's own expectation: records with `doc_uri` and `content`."""


def scorers(
    metrics: Metrics = DEFAULT,
    *,
    documents: Where | None = None,
    gold: Where | None = None,
    pass_if: Callable[[float], bool] | None = None,
    aggregations: list[Any] | None = None,
    **options: Any,
) -> list[Scorer]:
    """One scorer per metric and cutoff, for `mlflow.genai.evaluate(scorers=…)`.

    Args:
        metrics: metric names. MLflow allows no "@" in names: "recall@5" is logged as `recall_at_5/mean`.
        documents: the field of the outputs with the retrieved documents, or a function of the outputs. By default
            they are those of the retriever spans of the trace, or the outputs themselves if they are a list.
        gold: the field of the expectations with the relevant items, or a function of the expectations. The default is
            "gold" if there is one, otherwise `expected_retrieved_context`, whose `doc_uri` is compared.
        pass_if: the rule for `result.passed`, such as `lambda score: score >= 0.5`.
        aggregations: as in MLflow: "mean", "p90", …
        options: those of `karat.evaluate`: judge, convention, merge (of several retriever spans), …

    Returns:
        Scorers. An undefined score is None, with the reason as the rationale; a failed query is an error.
    """
    names = Rows(metrics, "", "", options).names
    return [_scorer_of(name, documents, gold, options, pass_if, aggregations) for name in names]


def _scorer_of(
    name: str,
    documents: Where | None,
    gold: Where | None,
    options: Mapping[str, Any],
    pass_if: Callable[[float], bool] | None,
    aggregations: list[Any] | None,
) -> Scorer:
    rows = Rows(name, "retrieved", gold or "gold", options)

    def karat_score(inputs: Any, outputs: Any, expectations: Any, trace: Any) -> Feedback:
        expected = dict(expectations or {})
        by_uri = gold is None and "gold" not in expected and _EXPECTED in expected
        if by_uri:
            expected["gold"] = [_item(one, by_uri=True) for one in expected[_EXPECTED]]
        found = _rankings(trace, outputs) if documents is None else [value_at(outputs, documents, "documents")]
        failed = not found or None in found
        shown = [] if failed else [[_item(one, by_uri=by_uri) for one in ranking] for ranking in found]
        sample = rows.sample(inputs, {"retrieved": shown[0] if shown else None}, expected)
        if sample is not None and len(shown) > 1:
            del sample["retrieved"]
            sample["steps"] = [{"retrieved": ranking} for ranking in shown]
        (score,) = rows.scores(sample)
        if score.failed:
            return Feedback(name=flat_name(name), error=score.comment)
        return Feedback(name=flat_name(name), value=score.value, rationale=score.comment)

    return scorer(karat_score, name=flat_name(name), description=name, pass_if=pass_if, aggregations=aggregations)


def _rankings(trace: Trace | None, outputs: Any) -> list[Any]:
    """The documents of each retriever span that is in no other one; None for a span that failed."""
    spans = [] if trace is None else trace.search_spans(span_type=SpanType.RETRIEVER)
    if trace is not None and spans:
        retrievers = {span.span_id for span in spans}
        parents = {span.span_id: span.parent_id for span in trace.data.spans}
        top = [span for span in spans if not _inside(span, retrievers, parents)]
        return [span.outputs for span in sorted(top, key=lambda span: span.start_time_ns)]
    if outputs is None or isinstance(outputs, list):
        return [outputs]
    problem = "there is no retriever span in the trace, and the outputs are not a list"
    raise InputError(problem, got=outputs, hint='documents="documents", or @mlflow.trace(span_type="RETRIEVER")')


def _inside(span: Span, retrievers: set[str], parents: Mapping[str, str | None]) -> bool:
    parent = parents[span.span_id]
    while parent is not None and parent not in retrievers:
        parent = parents.get(parent)
    return parent is not None


def _item(document: Any, *, by_uri: bool) -> Any:
    """A document of MLflow as an item: its `doc_uri` is the document, and the id if documents are expected."""
    if not isinstance(document, Mapping):
        return document
    metadata = document.get("metadata") or {}
    uri = document.get("doc_uri") or metadata.get("doc_uri")
    if uri is None:
        return document
    is_id = by_uri or not (document.get("id") or metadata.get("chunk_id"))
    kept = {name: value for name, value in document.items() if name != "doc_uri"}
    return kept | {"doc": uri} | ({"id": uri} if is_id else {})
