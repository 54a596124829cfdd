"""Advice on a score threshold, if some queries have no answer: the false alarms it prevents, and its cost in recall.

The threshold is chosen on all queries. Its figures are also given for held-out queries, because a threshold fits the
queries that it was chosen on better than others.
"""

from __future__ import annotations

from karat.errors import BadArgument
from karat.run import Run
from karat.run.thresholds import ThresholdPoint
from karat.samples.notes import Note


def threshold_advice(run: Run, k: int) -> tuple[Note, ...]:
    """A recommended threshold, or a note that none helps; nothing if all queries have an answer."""
    if not run.unanswerable.any():
        return ()
    try:
        found = run.thresholds(k)
    except BadArgument:
        return ()
    choice = found.choice
    if choice is None:
        details = {"auroc": found.auroc, "interval": list(found.auroc_interval), "k": k}
        return (Note("no_answer_threshold", found.unanswerable, found.answerable, details=details),)
    held_out = None
    if choice.false_alarm == choice.false_alarm:
        held_out = [[choice.false_alarm, *choice.false_alarm_interval], [choice.loss, *choice.loss_interval]]
    details = {
        "k": k, "threshold": choice.threshold, "before": _figures(choice.before), "after": _figures(choice.after),
        "held_out": held_out,
    }  # fmt: skip
    return (Note("answer_threshold", found.unanswerable, found.answerable, details=details),)


def threshold_limits(run: Run, k: int) -> tuple[Note, ...]:
    """A note if there are queries without an answer, but no scores to tell them by."""
    count = int(run.unanswerable.sum())
    if not count or count == len(run):
        return ()
    try:
        run.thresholds(k)
    except BadArgument:
        return (Note("no_answer_scores", count, len(run)),)
    return ()


def _figures(point: ThresholdPoint) -> list[float]:
    return [point.false_alarm, point.recall]
