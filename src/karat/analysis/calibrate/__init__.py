"""Calibrate a judge: compare its judgements with human labels, and correct the mean of a metric by them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.label_lines import is_labels_file
from karat._internal.result import Result
from karat.analysis.calibrate.human_labels import Labels, Matched, judge_answers, match, read_labels
from karat.analysis.calibrate.human_scores import HumanScores, human_scores
from karat.analysis.calibrate.people import read_people
from karat.errors import BadArgument, KaratError, unknown
from karat.metrics import Metric, parse
from karat.metrics.names import parse_stored
from karat.run import Run
from karat.run.file import as_run
from karat.run.repeats import one_row_each
from karat.samples.notes import Note
from karat.stats import MIN_QUERIES
from karat.stats.agreement import Agreement, agree
from karat.stats.prediction_powered import Corrected, correct

_MAX_SHIFT = 3
"""Standard errors beyond which the labelled queries are not a random sample."""


@dataclass(repr=False, eq=False, kw_only=True)
class Calibration(Result):
    """The result of `karat.calibrate`."""

    run: Run
    labels: Labels
    metric: str
    level: float
    agreement: Agreement | None
    """Judgement by judgement; None if the labels are scores other than 0 and 1."""
    corrected: Corrected | None
    """The corrected mean of the metric; None if the labels do not determine the score of any query."""
    notes: tuple[Note, ...]
    """The interpretation of the labels, and labels that were not used; `remarks()` has the sentences."""

    def remarks(self) -> list[str]:
        """One sentence per note: how the labels were read, which were not used, what the numbers assume."""
        return list(self._render("remarks"))


def calibrate(
    run: Run | str | PathLike[str],
    labels: Any,
    *,
    metric: str | Metric | None = None,
    level: float = 0.95,
    labelled_depth: int | None = None,
) -> Calibration:
    """Compare a judge with human labels, and correct the mean of a metric by them.

    Args:
        run: a judged run, or the path of its file.
        labels: a table (file, frame, or list of dicts) with one of these sets of columns, where a label is 1 or 0:
            `query_id, gold, label` (the gold item, such as a claim, is found), `query_id, rank, label` (the item at
            this rank is relevant), `query_id, gold, rank, label` (the item satisfies the gold item), or
            `query_id, score` (a score of the whole query). Or the labels file of `karat label`. The labelled queries
            must be a random sample.
        metric: a metric of the run; default: the one with the largest cutoff that the labels determine.
        level: the confidence level of the intervals.
        labelled_depth: the number of ranks that people checked for each gold item; default: all.

    Returns:
        A `Calibration`: `agreement` (confusion matrix, Cohen's kappa, sensitivity, specificity, bias), `corrected`
        (the mean corrected by prediction-powered inference), `remarks()`, `to_dict()`, `to_markdown()`.

    Example:
        >>> calibration = karat.calibrate("judged.parquet", "labels.csv", metric="recall@5")
        >>> calibration.corrected.mean.value
        0.71
    """
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise BadArgument("the confidence level must be between 0 and 1", got=level, hint="0.95")
    depth = labelled_depth
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise BadArgument("labelled_depth is a number of ranks", got=depth, hint="5")
    judged = one_row_each(as_run(run), "calibrate")
    name = None if metric is None else _name(judged, metric)
    names = [name] if name else list(judged.scores)
    read = read_people(labels, judged, names) if is_labels_file(labels) else read_labels(labels, names)
    matched = match(judged, read, depth)
    labelled = _scores(judged, read, matched, name) if read.kind == "score" else _judgements(judged, matched, name)
    agreement = None
    if labelled.judge is not None:
        used = labelled.used
        agreement = agree(matched.row[used], labelled.judge[used], matched.value[used] > 0, level)
    corrected = _corrected(judged, labelled, level)
    kind = read.kind if read.kind in {"score", matched.kind} else "rank"
    details = {"kind": kind, "metric": labelled.metric, "depth": depth, "columns": read.columns}
    return Calibration(
        run=judged,
        labels=read,
        metric=labelled.metric,
        level=level,
        agreement=agreement,
        corrected=corrected,
        notes=(
            Note("labels_read", details=details), *matched.notes, *labelled.notes,
            *_few(agreement), *_warnings(judged, labelled, corrected),
        ),
    )  # fmt: skip


class _Labelled(NamedTuple):
    """Labels applied to one metric of a run."""

    metric: str
    judge: Bools | None
    """The judge's answers where there are labels; None if they are not yes or no."""
    used: Bools
    """The labels that are compared with them."""
    rows: Ints
    scores: Floats
    """The queries with a human score, and that score."""
    notes: list[Note]


def _judgements(run: Run, matched: Matched, name: str | None) -> _Labelled:
    """Labels of single judgements, for a metric, or for the one with the largest cutoff that they determine."""
    names = [name] if name else sorted(run.scores, key=lambda one: -_cutoff(one))
    chosen, human = names[0], HumanScores()
    for one in names:
        scores = human_scores(run, parse_stored(one), matched)
        if one == names[0] or not scores.missing:
            chosen, human = one, scores
        if not scores.missing:
            break
    judge = judge_answers(run.all_hits, matched, parse_stored(chosen).rel)
    partial = len(np.unique(matched.row)) - len(human.rows)
    notes = [human.missing] if human.missing else [Note("partially_labelled", partial)] if partial else []
    return _Labelled(chosen, judge, np.ones(len(judge), bool), human.rows, human.scores, notes)


def _scores(run: Run, labels: Labels, matched: Matched, name: str | None) -> _Labelled:
    """Scores of whole queries."""
    chosen = name or labels.metric
    if chosen not in run.scores:
        if len(run.scores) > 1:
            hint = f'metric="{next(iter(run.scores))}", or --metric'
            raise BadArgument("which metric are the human scores of?", got=", ".join(run.scores), hint=hint)
        chosen = next(iter(run.scores))
    assert chosen is not None
    judge = run.scores[chosen][matched.row]
    defined = ~np.isnan(judge)
    undefined = len(judge) - int(defined.sum())
    notes = [Note("labels_undefined", undefined, details={"metric": chosen})] if undefined else []
    binary = bool(defined.any() and np.isin(judge[defined], (0, 1)).all() and np.isin(matched.value, (0, 1)).all())
    rows, values = matched.row[defined], matched.value[defined]
    return _Labelled(chosen, judge > 0 if binary else None, defined, rows, values, notes)


def _corrected(run: Run, labelled: _Labelled, level: float) -> Corrected | None:
    if not len(labelled.rows):
        return None
    scores = run.scores[labelled.metric]
    defined = ~np.isnan(scores)
    place = np.cumsum(defined) - 1
    return correct(scores[defined], place[labelled.rows], labelled.scores, level)


def _few(agreement: Agreement | None) -> list[Note]:
    """A note if too few queries have labels for the intervals of the agreement."""
    if agreement is None or agreement.queries >= MIN_QUERIES:
        return []
    return [Note("too_few_for_interval", agreement.queries)]


def _warnings(run: Run, labelled: _Labelled, corrected: Corrected | None) -> list[Note]:
    notes = [Note("not_judged", len(run.failures), len(run))] if run.failures else []
    if corrected is None:
        return notes
    undefined = len(run) - len(run.failures) - corrected.queries
    if undefined:
        notes.append(Note("undefined", undefined, details={"metric": labelled.metric}))
    shifted = abs(corrected.shift) > _MAX_SHIFT
    notes.append(Note("not_random" if shifted else "assumes_random", details={"shift": corrected.shift}))
    if corrected.labelled < MIN_QUERIES:
        notes.append(Note("too_few_labelled", MIN_QUERIES))
    return notes


def _name(run: Run, metric: str | Metric) -> str:
    """The metric as it is spelled in the run."""
    if not isinstance(metric, str | Metric):
        raise BadArgument("metric is the name of a metric", got=metric, hint='"recall@5"')
    try:
        name = str(parse(metric)) if isinstance(metric, str) else str(metric)
    except KaratError:
        name = str(metric)
    if name not in run.scores:
        raise unknown("metric in this run", name, run.scores, "one of: " + ", ".join(run.scores))
    return name


def _cutoff(name: str) -> float:
    """The cutoff of a metric, as a sort key; token budgets come last."""
    k = name.partition("@")[2]
    return inf if not k else float(k.removesuffix("t")) * (1 if k.isdecimal() else 1e-9)
