"""The verb: from a judged run and human labels to what the judge is worth."""

from __future__ import annotations

from math import inf, nan, sqrt
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.display import plural, sanitize
from karat._internal.result import Result
from karat.analysis.calibrate.human_scores import Settled, settle
from karat.analysis.calibrate.labels import Labels, Matched, match, read_labels, said
from karat.errors import BadArgument, KaratError, unknown
from karat.metrics import Metric, parse
from karat.metrics.names import parse_stored
from karat.run import Run
from karat.run.file import as_run
from karat.stats import intervals
from karat.stats.agreement import Agreement, Figure, agree, around, mean_figure

_LEAST = 3
"""Labelled queries without which nothing can be corrected."""


class Corrected(NamedTuple):
    """The mean of a metric: as the judge has it, as people have it, and of both together."""

    queries: int
    """Queries that the judge has scored."""
    labelled: int
    """Those of them that people have scored too."""
    judge: Figure
    """The judge alone, over all queries: its interval knows nothing of its errors."""
    human: Figure
    """People alone, over the labelled queries."""
    bias: Figure
    """Judge minus human, over the labelled queries."""
    mean: Figure
    """The judge over all queries, corrected by what people say of some."""
    weight: float
    """How much the judge counts in it: 0 is the labels alone, 1 the judge's mean minus its bias."""
    apart: float
    """The judge's mean over the labelled queries minus that over the others, in standard errors."""


def correct(judge: Floats, rows: Ints, human: Floats, level: float) -> Corrected:
    """Correct the mean of a judge's scores by human scores of some rows, drawn at random.

    The mean is that of the human scores, plus `weight` times what the judge's mean over all queries is above its
    mean over the labelled ones. The weight that spreads least is the slope of human on judge; a judge that tells
    nothing gets none. One query is added in thought at which the judge errs, so that a judge that has not
    erred yet is not taken for one that never does: by as much as it mostly errs, or by 1.
    """
    labelled = judge[rows]
    error = _typical(human - labelled)
    others: Bools = np.ones(len(judge), bool)
    others[rows] = False
    weight = _slope(human, labelled, error) if others.any() else 0.0
    ends = intervals({"": judge}, level)[""]
    return Corrected(
        len(judge),
        len(rows),
        Figure(float(judge.mean()), *ends),
        mean_figure(human, level, extra=_unseen(human)).within(0, 1),
        mean_figure(labelled - human, level, extra=error**2).within(-1, 1),
        _together(judge, labelled, human, judge[others], weight, error, level),
        weight,
        _apart(labelled, judge[others], float(judge.std())),
    )


def _slope(human: Floats, judge: Floats, error: float) -> float:
    if len(human) < _LEAST:
        return nan
    about = judge - judge.mean()
    slope = float(about @ (human - human.mean())) / (float(about @ about) + error**2)
    return min(max(slope, 0.0), 1.0)


def _together(
    judge: Floats, labelled: Floats, human: Floats, others: Floats, weight: float, error: float, level: float
) -> Figure:
    """The corrected mean. What labelled and other queries add to it is independent, so that their variances add."""
    n = len(human)
    if n < _LEAST:
        return Figure(nan, nan, nan)
    mean = float(human.mean() + weight * (judge.mean() - labelled.mean()))
    share = weight * len(others) / len(judge)
    residual = human - share * labelled
    squares = float(((residual - residual.mean()) ** 2).sum()) + (share * error) ** 2 + _unseen(human)
    freedom = n - 1 if share == 0 else n - 2
    variance = squares / (n * freedom)
    if len(others):
        variance += share**2 * float(others.var()) / len(others)
    return around(mean, variance, freedom, level).within(0, 1)


def _typical(errors: Floats) -> float:
    """How far a judge is off where it is off at all; a whole point if it never was."""
    off = errors[np.abs(errors) > 1e-12]
    return float(np.sqrt((off**2).mean())) if len(off) else 1.0


def _unseen(human: Floats) -> float:
    """Scores that are all the same may yet differ elsewhere: as if one had been a whole point away."""
    return 1.0 if len(human) and np.ptp(human) < 1e-12 else 0.0


def _apart(labelled: Floats, others: Floats, spread: float) -> float:
    if not len(others) or not len(labelled) or spread == 0:
        return 0.0
    return float(labelled.mean() - others.mean()) / (spread * sqrt(1 / len(labelled) + 1 / len(others)))


_STRANGE = 3
"""Standard errors beyond which labelled queries are not taken for a random draw."""


class Calibration(Result):
    """What a judge says beside what people say."""

    def __init__(
        self,
        run: Run,
        labels: Labels,
        metric: str,
        level: float,
        *,
        agreement: Agreement | None,
        corrected: Corrected | None,
        notes: list[str],
    ) -> None:
        self.run = run
        self.labels = labels
        self.metric = metric
        self.level = level
        self.agreement = agreement
        """Judgement by judgement; None if the labels are scores that are not all 0 or 1."""
        self.corrected = corrected
        """The mean of the metric, corrected; None if the labels do not tell the score of any query."""
        self._notes = notes

    def remarks(self) -> list[str]:
        """How the labels were understood, what was not used, and what the numbers rest on."""
        return [sanitize(note) for note in self._notes]


def calibrate(
    run: Run | str | PathLike[str],
    labels: Any,
    *,
    metric: str | Metric | None = None,
    level: float = 0.95,
    seen: int | None = None,
) -> Calibration:
    """Compare what a judge said with human labels, and correct the mean of a metric by them.

    `labels` is a table: a file, a frame, or a list of dicts. With columns `query_id, gold, label` a label (1 or 0)
    says whether a gold item, such as a claim, is found; with `query_id, rank, label` whether a retrieved item is
    relevant; with both `gold` and `rank` whether the item satisfies the gold item. With `query_id, score` people
    have scored whole queries. The labelled queries must have been drawn at random for the corrected mean to hold.
    `seen` is the number of ranks that people looked at, if not all, before they said whether a gold item is found.
    """
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise BadArgument("the level of an interval lies between 0 and 1", got=level, hint="0.95")
    if seen is not None and (isinstance(seen, bool) or not isinstance(seen, int) or seen < 1):
        raise BadArgument("seen is a number of ranks", got=seen, hint="5")
    judged = as_run(run)
    name = None if metric is None else _name(judged, metric)
    read = read_labels(labels, [name] if name else list(judged.scores))
    matched = match(judged, read, seen)
    found = _scored(judged, read, matched, name) if read.kind == "score" else _pieces(judged, matched, name)
    agreement = None
    if found.judge is not None:
        agreement = agree(matched.row[found.used], found.judge[found.used], matched.value[found.used] > 0, level)
    corrected = _corrected(judged, found, level)
    notes = [_understood(read, found, matched, seen), *matched.notes, *found.notes]
    notes += _warnings(judged, found, corrected)
    return Calibration(judged, read, found.metric, level, agreement=agreement, corrected=corrected, notes=notes)


class _Found(NamedTuple):
    """What labels tell of a run under one metric."""

    metric: str
    judge: Bools | None
    """What the judge says where the labels are, if that is yes or no."""
    used: Bools
    """The labels that are set against it."""
    rows: Ints
    scores: Floats
    """Queries with a human score, and that score."""
    notes: list[str]


def _pieces(run: Run, matched: Matched, name: str | None) -> _Found:
    """Labels of single judgements, for a metric, or for the one with the largest cutoff that they settle."""
    wanted = [name] if name else sorted(run.scores, key=lambda one: -_cutoff(one))
    tried: list[tuple[str, Settled]] = []
    for one in wanted:
        tried.append((one, settle(run, parse_stored(one), matched)))
        if not tried[-1][1].why_not:
            break
    chosen, settled = next(((one, s) for one, s in tried if not s.why_not), tried[-1] if name else tried[0])
    notes = [f"No corrected mean: {settled.why_not}."] if settled.why_not else []
    judge = said(run.all_hits, matched, parse_stored(chosen).settings.get("rel"))
    partly = len(np.unique(matched.row)) - len(settled.rows)
    if partly and not settled.why_not:
        notes.append(f"{plural(partly, 'query is', 'queries are')} labelled in part: not in the corrected mean.")
    return _Found(chosen, judge, np.ones(len(judge), bool), settled.rows, settled.scores, notes)


def _scored(run: Run, labels: Labels, matched: Matched, name: str | None) -> _Found:
    """Scores of whole queries."""
    chosen = name or labels.metric
    if chosen not in run.scores:
        if len(run.scores) > 1:
            hint = f'metric="{next(iter(run.scores))}", or --metric'
            raise BadArgument("by which metric did people score the queries?", got=", ".join(run.scores), hint=hint)
        chosen = next(iter(run.scores))
    assert chosen is not None
    judge = run.scores[chosen][matched.row]
    defined = ~np.isnan(judge)
    notes = []
    if left := int((~defined).sum()):
        notes.append(f"{plural(left, 'label is', 'labels are')} of queries for which {chosen} is undefined: not used.")
    binary = bool(defined.any() and np.isin(judge[defined], (0, 1)).all() and np.isin(matched.value, (0, 1)).all())
    return _Found(chosen, judge > 0 if binary else None, defined, matched.row[defined], matched.value[defined], notes)


def _corrected(run: Run, found: _Found, level: float) -> Corrected | None:
    if not len(found.rows):
        return None
    scores = run.scores[found.metric]
    defined = ~np.isnan(scores)
    place = np.cumsum(defined) - 1
    return correct(scores[defined], place[found.rows], found.scores, level)


def _understood(labels: Labels, found: _Found, matched: Matched, seen: int | None) -> str:
    """What a label was taken to say."""
    words = {
        "score": f"the {found.metric} of a query",
        "gold": f"whether a gold item is found in {f'the top {seen}' if seen else 'what was retrieved'}",
        "rank": "whether the item at a rank is relevant",
        "pair": "whether the item at a rank satisfies a gold item",
    }
    kind = labels.kind if labels.kind in {"score", matched.kind} else "rank"
    of = ", ".join(f'"{name}"' for role, name in labels.columns.items() if role != "value")
    return f'A label ("{labels.columns["value"]}" by {of}) was taken to say {words[kind]}.'


def _warnings(run: Run, found: _Found, corrected: Corrected | None) -> list[str]:
    notes = []
    if run.failures:
        share = f"{len(run) - len(run.failures):,} of {plural(len(run), 'query', 'queries')}"
        notes.append(f"Judged {share}: the means are over these, and say nothing of the others.")
    if corrected is None:
        return notes
    undefined = len(run) - len(run.failures) - corrected.queries
    if undefined:
        notes.append(f"{plural(undefined, 'query is', 'queries are')} undefined for {found.metric}: not in the means.")
    if abs(corrected.apart) > _STRANGE:
        than = "higher" if corrected.apart > 0 else "lower"
        notes.append(
            f"The judge scores the labelled queries {than} than the others, by {abs(corrected.apart):.1f} standard "
            "errors: if they were not drawn at random, the corrected mean does not hold."
        )
    else:
        notes.append("The corrected mean holds if the labelled queries were drawn at random.")
    if corrected.mean.value != corrected.mean.value:
        notes.append("No corrected mean: it takes at least 3 queries with a human score.")
    return notes


def _name(run: Run, metric: str | Metric) -> str:
    """The metric as the run spells it."""
    if not isinstance(metric, str | Metric):
        raise BadArgument("a metric is given by its name", got=metric, hint='"recall@5"')
    try:
        name = str(parse(metric)) if isinstance(metric, str) else str(metric)
    except KaratError:
        name = str(metric)
    if name not in run.scores:
        raise unknown("metric in this run", name, run.scores, "one of: " + ", ".join(run.scores))
    return name


def _cutoff(name: str) -> float:
    """The cutoff of a metric; budgets of tokens come after all ranks."""
    k = name.partition("@")[2]
    return inf if not k else float(k.removesuffix("t")) * (1 if k.isdecimal() else 1e-9)
