"""LangSmith: karat's metrics as row and summary evaluators of `langsmith.evaluate` and `aevaluate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from karat.bridges.row_scores import Metrics, Rows, Score, Where, framework
from karat.metrics import DEFAULT

with framework("karat.bridges.langsmith", "langsmith"):
    import langsmith  # noqa: F401

Feedback: TypeAlias = list[dict[str, Any]]


def evaluator(
    metrics: Metrics = DEFAULT, *, documents: Where = "documents", gold: Where = "gold", **options: Any
) -> Callable[..., Feedback]:
    """The scores of each example, for `evaluators=[…]`.

    Args:
        metrics: metric names, such as "recall@5 ndcg@10"; each is a feedback key.
        documents: the field of the target's outputs with the retrieved documents, best first, or a function of the
            outputs. They may be LangChain documents, dicts or ids.
        gold: the field of the example's outputs with the relevant items, or a function of them.
        options: those of `karat.evaluate`: judge, at, convention, …

    Returns:
        A function that LangSmith calls for each example. A score that is undefined, or missing because the target
        failed, is None, with the reason as the comment.

    Example:
        >>> langsmith.evaluate(target, data="my dataset", evaluators=[evaluator("recall@5 ndcg@10")])
    """
    rows = Rows(metrics, documents, gold, options)

    def karat_scores(inputs: Any, outputs: Any, reference_outputs: Any) -> Feedback:
        return [_feedback(score) for score in rows.scores(rows.sample(inputs, _unwrapped(outputs), reference_outputs))]

    return karat_scores


def summary_evaluator(
    metrics: Metrics = DEFAULT, *, documents: Where = "documents", gold: Where = "gold", **options: Any
) -> Callable[..., Feedback]:
    """The mean of each metric over the experiment, with its interval as the comment, for `summary_evaluators=[…]`.

    Args:
        metrics: metric names; the feedback keys are "recall@5 mean" and so on, and "first_rank median" for measures.
        documents: as in `evaluator`.
        gold: as in `evaluator`.
        options: those of `karat.evaluate`.
    """
    rows = Rows(metrics, documents, gold, options)

    def karat_means(inputs: list[Any], outputs: list[Any], reference_outputs: list[Any]) -> Feedback:
        samples = map(rows.sample, inputs, map(_unwrapped, outputs), reference_outputs)
        return [_feedback(score) for score in rows.summaries(list(samples))]

    return karat_means


def _feedback(score: Score) -> dict[str, Any]:
    return {"key": score.name, "score": score.value, "comment": score.comment}


def _unwrapped(outputs: Any) -> Any:
    """The outputs of the target; a target that returns a list has it under "output", and one that failed None."""
    return outputs["output"] if isinstance(outputs, dict) and outputs.keys() == {"output"} else outputs
