"""Langfuse: karat's metrics as evaluators of `langfuse.run_experiment`, for each item and for the whole run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from karat.bridges.row_scores import Metrics, Rows, Score, Where, framework
from karat.metrics import DEFAULT

with framework("karat.bridges.langfuse", "langfuse"):
    from langfuse import Evaluation


def evaluator(
    metrics: Metrics = DEFAULT, *, documents: Where = "documents", gold: Where = "gold", **options: Any
) -> Callable[..., list[Evaluation]]:
    """The scores of each item, for `evaluators=[…]`.

    Args:
        metrics: metric names, such as "recall@5 ndcg@10".
        documents: the field of the task's output with the retrieved documents, or a function of the output; an output
            that is a list is the documents.
        gold: the field of the expected output with the relevant items, or a function of it; the same for a list.
        options: those of `karat.evaluate`: judge, at, convention, …

    Returns:
        A function that Langfuse calls for each item. An undefined score is left out: Langfuse has no empty scores.

    Example:
        >>> langfuse.run_experiment(name="chunks of 400", data=data, task=task, evaluators=[evaluator("recall@5")])
    """
    rows = Rows(metrics, documents, gold, options)

    def karat_scores(*, input: Any, output: Any, expected_output: Any = None, **_: Any) -> list[Evaluation]:  # noqa: A002
        return _evaluations(rows.scores(rows.sample(input, output, expected_output)))

    return karat_scores


def run_evaluator(
    metrics: Metrics = DEFAULT, *, documents: Where = "documents", gold: Where = "gold", **options: Any
) -> Callable[..., list[Evaluation]]:
    """The mean of each metric, "recall@5 mean", with its interval as the comment, for `run_evaluators=[…]`.

    Items whose task failed are not in the mean: Langfuse leaves them out of the results and reports them itself.

    Args:
        metrics: metric names.
        documents: as in `evaluator`.
        gold: as in `evaluator`.
        options: those of `karat.evaluate`.
    """
    rows = Rows(metrics, documents, gold, options)

    def karat_means(*, item_results: Sequence[Any], **_: Any) -> list[Evaluation]:
        samples = [
            rows.sample(_part(one.item, "input"), one.output, _part(one.item, "expected_output"))
            for one in item_results
        ]
        return _evaluations(rows.summaries(samples))

    return karat_means


def _evaluations(scores: list[Score]) -> list[Evaluation]:
    return [Evaluation(name=one.name, value=one.value, comment=one.comment) for one in scores if one.value is not None]


def _part(item: Any, name: str) -> Any:
    """A part of an item: a dict for local data, an object for an item of a Langfuse dataset."""
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)
