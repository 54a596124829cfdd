"""Haystack: karat's metrics as an evaluator component, which works in pipelines and with `EvaluationRunResult`."""

from __future__ import annotations

from typing import Any

from karat.bridges.row_scores import Rows, framework, overall
from karat.errors import BadArgument, InputError
from karat.metrics import DEFAULT

with framework("karat.bridges.haystack", "haystack-ai"):
    from haystack import Document, component, default_to_dict


@component
class KaratEvaluator:
    """A component that scores the retrieved documents of all questions.

    Args:
        metrics: metric names, such as "recall@5 ndcg@10".
        document_comparison_field: "content", "id", or "meta." and a key, as in Haystack's own evaluators.
        judge: how the values are matched, as in `karat.evaluate`; "fuzzy(0.8)" is one for contents.
        convention: the definition of the metrics, such as "standard" or "haystack".

    Example:
        >>> KaratEvaluator("recall@5 ndcg@10").run(ground_truth_documents=gold, retrieved_documents=documents)
    """

    def __init__(
        self,
        metrics: str = DEFAULT,
        document_comparison_field: str = "content",
        judge: str = "auto",
        convention: str = "standard",
    ) -> None:
        field, _, key = document_comparison_field.partition(".")
        if not (document_comparison_field in {"content", "id"} or (field == "meta" and key)):
            hint = '"content", "id" or "meta.<key>"'
            raise BadArgument("unknown document_comparison_field", got=document_comparison_field, hint=hint)
        self._rows = Rows(metrics, "", "", {"judge": judge, "convention": convention})
        self.metrics = metrics
        self.document_comparison_field = document_comparison_field
        self.judge = judge
        self.convention = convention

    def to_dict(self) -> dict[str, Any]:
        """The settings, for the YAML of a pipeline."""
        written: dict[str, Any] = default_to_dict(
            self,
            metrics=self.metrics,
            document_comparison_field=self.document_comparison_field,
            judge=self.judge,
            convention=self.convention,
        )
        return written

    @component.output_types(score=float, individual_scores=list[float], results=dict[str, dict[str, Any]])
    def run(
        self, ground_truth_documents: list[list[Document]], retrieved_documents: list[list[Document]]
    ) -> dict[str, Any]:
        """Score the documents that were retrieved for each question.

        Args:
            ground_truth_documents: the relevant documents of each question.
            retrieved_documents: the retrieved documents of each question, best first.

        Returns:
            `score` and `individual_scores` of the first metric, and `results` with both of every metric by name, as
            `EvaluationRunResult` takes them. An undefined score is NaN and not in the mean.
        """
        if not ground_truth_documents or not retrieved_documents:
            raise BadArgument("ground_truth_documents and retrieved_documents must be provided")
        if len(ground_truth_documents) != len(retrieved_documents):
            got = f"{len(ground_truth_documents)} and {len(retrieved_documents)}"
            raise BadArgument("ground_truth_documents and retrieved_documents must have the same length", got=got)
        pairs = zip(retrieved_documents, ground_truth_documents, strict=True)
        run = self._rows.evaluate(
            [
                {"retrieved": [self._item(one, one.id) for one in found], "gold": [self._item(one) for one in gold]}
                for found, gold in pairs
            ]
        )
        values = overall(run)
        results = {
            name: {"score": values[name], "individual_scores": run.columns[name].tolist()} for name in self._rows.names
        }
        return {**next(iter(results.values())), "results": results}

    def _item(self, document: Document, otherwise: str | None = None) -> dict[str, Any]:
        """A document as an item, with the value that is compared."""
        field, *keys = self.document_comparison_field.split(".")
        value = getattr(document, field)
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value in (None, "") and otherwise is None:
            problem = f'a ground truth document has no "{self.document_comparison_field}"'
            raise InputError(problem, got=document.id, hint='document_comparison_field="id"')
        return {"text" if field == "content" else "id": otherwise if value in (None, "") else value}
