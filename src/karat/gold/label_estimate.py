"""The difference of two runs estimated from some labels, its intervals, and the number of labels that are missing.

Three intervals, all of 95 %:

- `low`, `high`: of the difference on *these* queries, at a number of labels that was fixed before, or at which the
  interval became narrow enough. More labels narrow it; with all labels it has width 0.
- `always_low`, `always_high`: the same difference at *every* number of labels at once, so that a person may look after
  each label and stop once it excludes 0. It is the mixture boundary of a Brownian motion whose time is 1 / variance,
  and at least as wide as the largest effect that one more unit can have. It is meant for `FEWEST` units or more.
- `total`: of the difference on all queries like these. It has the spread between queries in it, so
  labels alone do not narrow it to 0. Once all is labelled it is the interval that `karat compare` shows, except that a
  query without a relevant item counts as a difference of 0.

The variance is that of the answers, blended with the one that was assumed before any answer, which counts as
`ASSUMED` answers: a few equal answers do not make a variance of 0.

An answer that is missing (skipped, or "can't tell") is missing at random: the others stand for it, and it leaves
variance behind even if everything was asked. In a whole query, it is drawn from the opinions.

The opinions f are corrected while labels arrive, each by the answers to other queries only, which keeps the estimate
free of bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, log, nan, sqrt
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, is_relevant
from karat.errors import BadArgument, InputError
from karat.gold.choice import Design
from karat.stats.agreement import t_quantile
from karat.stats.interval import Interval, difference_intervals

TOLERANCE = 0.02
"""The half-width of the interval that is precise enough."""
LEVEL = 0.95
ASSUMED = 4
"""The number of answers that the assumed variance counts for."""
FEWEST = 20
"""The number of answered units below which nothing is decided."""
_FOLDS, _BINS = 5, 10
_HELPS = 4
"""Labels no longer help if their variance is this many times smaller than that of the queries."""
_TUNED = 8.2
"""A boundary is tightest at a variance if that of its prior is 8.2 times as large."""
_MOST_FREEDOM = 30
"""Degrees of freedom beyond which Student's t is no longer narrowed."""
_Z, _TINY = NormalDist().inv_cdf((1 + LEVEL) / 2), 1e-12

Stop = Literal["decided", "equal", "precise", "queries", "all"]
"""Reasons to stop: one run is better; the runs are equal within the tolerance; the interval is within the tolerance;
the queries vary more than the labels that are missing, and these queries are too few; all is labelled."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DifferenceEstimate:
    """The difference of a run from the first one, as far as the labels tell."""

    difference: float
    """Without bias, except that it is kept within what the labels so far leave possible."""
    low: float
    high: float
    always_low: float
    always_high: float
    by_query: Floats
    """The estimated difference of each query."""
    labels: int
    """Labels that were asked for and given."""
    known: int
    """Labels that matter and were known without being drawn."""
    unanswered: int
    """Labels that were asked for and not given."""
    drawn: int
    """Pairs, or whole queries, that were drawn and answered; nothing is decided below `FEWEST`."""
    left: int
    """Labels that could still matter."""
    more: int
    """Labels until it is decided or precise, if the difference and the variance stay as they are, and as many as the
    fewest draws need; 0 once it is."""
    more_to_decide: int
    more_to_be_precise: int
    queries_wanted: int | None
    """The number of queries whose total interval would exclude 0 if all were labelled; None if it is not known."""
    without_relevant: int
    """Queries of which no item is known to be relevant; one that has none counts as a difference of 0."""
    stop: Stop | None
    """The reason to stop, if there is one."""

    @cached_property
    def total(self) -> Interval:
        """The interval of the difference on all queries like these: at least as wide as that of these queries."""
        low, high = difference_intervals({"": self.by_query}, LEVEL)[""]
        return Interval(min(low, self.low), max(high, self.high))

    @property
    def decided(self) -> bool:
        """True if one run is better on these queries, or both are equal within the tolerance, at every look."""
        sure = not self.unanswered or self.always_low > 0 or self.always_high < 0
        return self.stop in ("decided", "equal") or (self.stop == "all" and sure)


class _Sample(NamedTuple):
    """The units asked for so far, with the probability of each unit that has an answer."""

    labels: int
    unanswered: int
    early: int
    """Labels that were given before their turn."""
    answered: Bools
    complete: Bools
    """Flags of the units without a missing answer."""
    chance: Floats
    """The probability of each unit of being drawn and answered."""
    mean_chance: Floats
    """The same over all orders with this number of units: it does not depend on the next random number."""
    value: Floats
    """The contribution of each unit to each comparison, by its answer; NaN without one."""


def estimate(
    design: Design,
    labelled: Ints,
    grades: Floats,
    *,
    run: int = 1,
    tolerance: float = TOLERANCE,
    early: tuple[Ints, Floats] | None = None,
) -> DifferenceEstimate:
    """Estimate the difference of a run from the first one.

    Args:
        design: the design by whose order the labels were asked for.
        labelled: the pairs that were asked for, in any order; a pair with several labels gets their lower median.
        grades: the grade of each; NaN for one that was skipped, or that a person could not tell.
        run: the run that is compared with the first, from 1.
        tolerance: the half-width of the interval that is precise enough.
        early: pairs that were answered before their turn, and their grades: they count once it has come.
    """
    if not tolerance > 0:
        raise BadArgument("the tolerance must be above 0", got=tolerance, hint=f"{TOLERANCE}")
    if not 1 <= run <= design.comparisons:
        raise BadArgument("no such run to compare with the first", got=run, hint=f"1 to {design.comparisons}")
    asked, grade = _one_per_pair(design, np.asarray(labelled, np.int64), np.asarray(grades, float))
    chosen, given = (asked & False, grade) if early is None else _one_per_pair(design, *early)
    chosen, grade = chosen & ~asked, np.where(asked, grade, given)
    sample = _sample(design, asked, grade, chosen)
    expected = _corrected(design, grade)[run - 1]
    residual = np.where(sample.answered, sample.value[run - 1] - expected, 0.0)
    corrected = expected + residual / np.maximum(sample.chance, _TINY)
    by_query = design.fixed[run - 1] + np.bincount(design.unit_query, corrected, design.queries)
    return _reported(design, sample, run, by_query, residual, tolerance, _without_relevant(design, grade))


def estimates(
    design: Design,
    labelled: Ints,
    grades: Floats,
    *,
    tolerance: float = TOLERANCE,
    early: tuple[Ints, Floats] | None = None,
) -> tuple[DifferenceEstimate, ...]:
    """The estimate of each run against the first; nothing is decided by the number of comparisons alone."""
    runs = range(1, design.comparisons + 1)
    return tuple(estimate(design, labelled, grades, run=run, tolerance=tolerance, early=early) for run in runs)


def _one_per_pair(design: Design, labelled: Ints, grades: Floats) -> tuple[Bools, Floats]:
    """Flags of the pairs that were asked for, and the grade of each pair; NaN without one."""
    if labelled.shape != grades.shape or ((labelled < 0) | (labelled >= len(design.query))).any():
        raise InputError("every label needs the number of its pair and a grade")
    matters = design.unit[labelled] >= 0
    labelled, grades = labelled[matters], grades[matters]
    asked, grade = np.zeros(len(design.query), bool), np.full(len(design.query), np.nan)
    asked[labelled] = True
    given = ~np.isnan(grades)
    order = np.lexsort((grades[given], labelled[given]))
    pair, first, count = np.unique(labelled[given][order], return_index=True, return_counts=True)
    grade[pair] = grades[given][order][first + (count - 1) // 2]
    return asked, grade


def _without_relevant(design: Design, grade: Floats) -> int:
    """The number of queries without a relevant item so far."""
    relevant = is_relevant(np.where(np.isnan(grade), design.known, grade), design.effects.metric.rel)
    return design.queries - len(np.unique(design.query[relevant]))


def _sample(design: Design, asked: Bools, grade: Floats, early: Bools) -> _Sample:
    unit, units = design.unit, len(design.cost)
    drawn = unit >= 0
    in_turn = np.bincount(unit[drawn], asked[drawn], units) > 0
    done = np.bincount(unit[drawn], (asked | early)[drawn], units) == design.cost
    given = np.bincount(unit[drawn], ~np.isnan(grade[drawn]), units)
    reached = design.key[done & in_turn].max(initial=0.0)
    threshold = design.key[(design.key > reached) & ~(done & ~in_turn)].min(initial=np.inf)
    passed = design.key < threshold
    count, asked_for = int(np.count_nonzero(passed)), float(design.cost[passed].sum())
    whole, answered = done & (given == design.cost), done & passed & (given > 0)
    rate = float(given[answered].sum()) / asked_for if asked_for else 1.0
    with np.errstate(invalid="ignore"):
        chance = np.minimum(1.0, design.size * threshold) * rate
    mean_chance = design.mean_probability(count) * rate
    graded = ~np.isnan(grade)
    counts = int((graded & asked).sum()), int(((asked | early) & ~graded).sum()), int((graded & early).sum())
    if design.effects.sums:
        value = design.weights[:, drawn] * design.effects.value(grade)[drawn]
        return _Sample(*counts, answered, whole, chance, mean_chance, value)
    partly = (answered & (given < design.cost)).any()
    drawings = design.drawn_grades() if partly else np.nan_to_num(design.known)[None]
    value = design.differences(np.where(np.isnan(grade), drawings, grade)).mean(axis=1)
    return _Sample(*counts, answered, whole, chance, mean_chance, value[:, design.unit_query])


def _corrected(design: Design, grade: Floats) -> Floats:
    """The expected contribution of each unit, with opinions corrected by the answers to queries of other folds."""
    if not design.effects.sums:
        return design.expected
    value = design.effects.value(np.where(np.isnan(grade), design.known, grade))
    seen, prior = ~np.isnan(value), design.prior
    group = np.minimum((design.chance * _BINS).astype(np.int64), _BINS - 1)
    cell, cells = group * _FOLDS + design.query % _FOLDS, _BINS * _FOLDS
    given, assumed = (np.bincount(cell[seen], own[seen], cells).reshape(_BINS, _FOLDS) for own in (value, prior))
    typical = np.bincount(group, prior, _BINS) / np.maximum(np.bincount(group, minlength=_BINS), 1) * ASSUMED
    others = [own.sum(axis=1, keepdims=True) - own + typical[:, None] for own in (given, assumed)]
    ratio = (others[0] / np.where(others[1] > 0, others[1], 1.0)).ravel()[cell]
    asked = design.unit >= 0
    found: Floats = design.weights[:, asked] * np.minimum(prior * ratio, design.most)[asked]
    return found


class _Boundary:
    """The half-width that holds at every number of labels at once, as a function of the variance.

    It is tightest near the variance that is assumed after twice the fewest answers, and stays close to that for all
    smaller ones: with ten times as many labels it is 1.7 times as wide as the interval at a fixed number.
    """

    def __init__(self, design: Design, comparison: int) -> None:
        labels, variance = design.curve
        early = 2 * FEWEST * float(design.cost.mean()) if len(design.cost) else 0.0
        self.tuned = max(float(np.interp(early, labels, variance[comparison])), _TINY) * _TUNED
        self.alpha = (1 - LEVEL) / design.comparisons

    def half(self, variance: float) -> float:
        """The half-width at this variance."""
        share = variance / self.tuned  # of the prior's weight in the time that has passed
        return sqrt(variance * (1 + share) * (log((1 + share) / share) - 2 * log(self.alpha))) if variance > 0 else 0.0

    def variance(self, half: float) -> float:
        """The variance at which the half-width is this small."""
        low, high = 0.0, half**2
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self.half(middle) <= half else (low, middle)
        return low


def _reported(
    design: Design, sample: _Sample, run: int, by_query: Floats, residual: Floats, tolerance: float, without: int
) -> DifferenceEstimate:
    queries, boundary = design.queries, _Boundary(design, run - 1)
    chance = np.maximum(sample.mean_chance, _TINY)
    count = np.count_nonzero(sample.answered & (chance < 1))
    assumed = float(design.assumed_variance(chance)[run - 1])
    squares = (residual / chance) ** 2 * (1 - chance)
    own = float(squares.sum()) / queries**2
    variance = max(
        (count * own + ASSUMED * assumed) / (count + ASSUMED), assumed * _scale(design, sample, run, residual)
    )
    wide = t_quantile(LEVEL, _freedom(squares))
    half, always = wide * sqrt(variance), boundary.half(variance * (wide / _Z) ** 2)
    effects = _possible_effects(design, run)
    always = max(always, float(np.abs(effects[:, ~sample.complete]).max(initial=0.0)) / queries)
    ends = np.array([0.0, -half, half, -always, always]) + by_query.sum() / queries
    worst = np.where(sample.complete, sample.value[run - 1], effects).sum(axis=1) + design.fixed[run - 1].sum()
    difference, low, high, always_low, always_high = np.clip(ends, *worst / queries).tolist()
    left = int(design.cost.sum()) - sample.labels - sample.unanswered - sample.early
    missing = _Missing(design, run - 1, sample.labels + sample.unanswered, left, variance, assumed)
    to_decide = missing.until(boundary.variance(max(abs(difference), tolerance - abs(difference))))
    to_be_precise = missing.until((tolerance / wide) ** 2)
    of_queries = max(float(by_query.var(ddof=1)) / queries - own, 0.0) if queries > 1 else nan
    drawn = int(np.count_nonzero(sample.answered))
    wanted = _queries_wanted(difference, of_queries, queries)
    if left <= 0:
        stop: Stop | None = "all"
    elif drawn < FEWEST:
        stop = None
    else:
        stop = _reason(always_low, always_high, (high - low) / 2, tolerance)
        vary = variance * _HELPS < of_queries and (wanted is None or wanted > queries)
        stop = "queries" if stop is None and vary else stop
    fewest = ceil((FEWEST - drawn) * float(design.cost.mean())) if len(design.cost) else 0
    more = min(max(to_decide, 1), max(to_be_precise, 1)) if stop in (None, "queries") else 0
    return DifferenceEstimate(
        difference=difference, low=low, high=high, always_low=always_low, always_high=always_high, by_query=by_query,
        labels=sample.labels, known=sample.early + int((~np.isnan(design.known) & design.matters).sum()),
        unanswered=sample.unanswered, drawn=drawn, left=left, more=min(max(more, fewest), left) if more else 0,
        more_to_decide=to_decide, more_to_be_precise=to_be_precise, queries_wanted=wanted, without_relevant=without,
        stop=stop,
    )  # fmt: skip


def _freedom(squares: Floats) -> int:
    """The degrees of freedom of a sum of squares: few if a few answers make up most of it."""
    total = float(squares.sum())
    alike = total**2 / float((squares**2).sum()) if total > 0 else 0.0
    return int(min(alike + ASSUMED - 1, _MOST_FREEDOM))


def _scale(design: Design, sample: _Sample, run: int, residual: Floats) -> float:
    """The squared error of the answered units as a multiple of the assumed one, which counts as a few answers."""
    spread = design.spread[run - 1]
    seen = sample.answered & (spread > 0)
    squares = (residual[seen] / spread[seen]) ** 2
    return (float(squares.sum()) + ASSUMED) / (len(squares) + ASSUMED)


class _Missing(NamedTuple):
    """The labels that are still missing to reach a variance."""

    design: Design
    comparison: int
    done: int
    left: int
    variance: float
    """The variance now."""
    assumed: float
    """The assumed variance now."""

    def until(self, wanted: float) -> int:
        """The number of labels until the variance is this small, if it shrinks as the assumed one does."""
        if self.variance <= wanted:
            return 0
        labels, variance = self.design.curve
        scaled = wanted * self.assumed / self.variance
        number = float(np.interp(-scaled, -variance[self.comparison], labels))
        return min(max(ceil(number) - self.done, 1), self.left)


def _possible_effects(design: Design, run: int) -> Floats:
    """The least and the highest contribution that each unit can make: 2 × units."""
    if not design.effects.sums:
        return np.array([[-1.0], [1.0]]) * np.ones(len(design.cost))
    weight = design.weights[run - 1][design.unit >= 0] * design.most
    return np.array([np.minimum(weight, 0.0), np.maximum(weight, 0.0)])


def _reason(always_low: float, always_high: float, half: float, tolerance: float) -> Stop | None:
    if always_low > 0 or always_high < 0:
        return "decided"
    if max(-always_low, always_high) <= tolerance:
        return "equal"
    return "precise" if half <= tolerance else None


def _queries_wanted(difference: float, of_queries: float, queries: int) -> int | None:
    """The number of queries at which a difference of this size would be significant, if all were labelled."""
    if not difference or not of_queries > 0:
        return None
    return ceil(queries * of_queries * (_Z / difference) ** 2)
