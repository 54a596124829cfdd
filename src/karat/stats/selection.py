"""Selection of the best of several columns by its mean: the columns that may be best, and an honest mean of the winner.

All columns have scores for the same rows (queries), and every draw treats a row as a whole, which keeps the
correlation of the columns.

A column may be best unless another one is significantly better. Its statistic is the largest studentised difference to
another column, and its p-value that of sign flips: multiple comparisons with the best. A column is excluded at half the
significance level, so that of equal columns one is called the best in at most 5 % of the cases, however many there are.

The mean of the winner is too high: it was chosen for being high. `held_out` is the mean of columns that were chosen on
other rows, over many divisions into folds. The interval holds for whichever column wins: its end on the optimistic side
is that of simultaneous intervals of all columns that may be best. `benchmarks/selection.py` simulates both.
"""

from __future__ import annotations

from math import isnan, nan
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat.stats.interval import MIN_QUERIES, Interval, mean_interval
from karat.stats.paired import ALPHA, FLIPS, SEED, exhaustive, flipped_sums

FOLDS, DIVISIONS = 5, 20
_UNLIKELY = 0.01
"""Columns with a smaller p-value are taken as unable to win: their intervals need not hold."""
_EQUAL = 1e-9  # statistics that differ only by rounding are equal
_DIGITS = 12  # of scores and means: rounding is not a difference
_MOST = 0.999999
"""The highest confidence level of an end."""


class Selection(NamedTuple):
    """The best of several columns."""

    winner: int
    """The column with the highest mean; the first of equal ones."""
    p: tuple[float, ...]
    """For each column, the p-value against being the best, corrected for choosing among all; 1 for the winner."""
    mean: float
    """The mean of the winner on the rows by which it was chosen: too high."""
    held_out: float
    """The mean on rows that took no part in the choice; NaN for fewer than two rows in a fold."""
    interval: Interval
    """The 95 % interval of the winner's true mean, which accounts for the choice."""
    differ: bool
    """True if the columns differ in any row."""

    @property
    def possible(self) -> tuple[bool, ...]:
        """For each column, True if it cannot be distinguished from the best."""
        return tuple(not p < ALPHA for p in self.p)


def select_best(scores: Floats, *, flips: int = FLIPS, seed: int = SEED) -> Selection:
    """Select the best column: rows are queries, without NaN; scores are from 0 to 1, and more is better."""
    means = scores.mean(axis=0).round(_DIGITS)
    winner = int(means.argmax())
    p = p_of_best(scores, flips=flips, seed=seed)
    p[winner] = 1.0
    mean = float(scores[:, winner].mean())
    level = _one_sided_level(scores[:, p >= _UNLIKELY], flips, seed)
    plain = mean_interval(scores[:, winner], 1 - ALPHA)
    low = mean_interval(scores[:, winner], 2 * level - 1).low
    differ = bool((scores.round(_DIGITS) != scores[:, :1].round(_DIGITS)).any())
    held_out = min(held_out_mean(scores, seed=seed), mean) if scores.shape[1] > 1 else mean
    return Selection(winner, tuple(p.tolist()), mean, held_out, Interval(low, plain.high), differ)


def p_of_best(scores: Floats, *, flips: int = FLIPS, seed: int = SEED) -> Floats:
    """For each column, the p-value of the hypothesis that no other column has a higher mean, doubled.

    With two columns it is that of the two-sided sign-flip test.
    """
    rows = (scores - scores.mean(axis=1, keepdims=True)).round(_DIGITS)
    rows = rows[np.any(rows != 0, axis=1)]
    columns = scores.shape[1]
    if columns < 2 or not len(rows):
        return np.ones(columns)
    totals = rows.sum(axis=0)
    squares = rows.T @ rows
    each = np.diag(squares)
    norms = np.sqrt(np.maximum(each[:, None] + each[None, :] - 2 * squares, 0.0))
    norms[norms < _EQUAL] = np.inf  # equal columns do not compete
    observed = ((totals[None, :] - totals[:, None]) / norms).max(axis=1)
    reached, tried = np.zeros(columns), 0
    for sums in flipped_sums(rows, flips, seed):
        for column in range(columns):
            largest = ((sums - sums[:, [column]]) / norms[column]).max(axis=1)
            reached[column] += np.count_nonzero(largest >= observed[column] - _EQUAL)
        tried += len(sums)
    own = 0 if exhaustive(len(rows)) else 1
    p: Floats = np.minimum(2 * (reached + own) / (tried + own), 1.0)
    return p


def held_out_mean(scores: Floats, *, folds: int = FOLDS, divisions: int = DIVISIONS, seed: int = SEED) -> float:
    """The mean over all rows of the column that is best on the other folds, over several random divisions."""
    count = len(scores)
    if count < 2 * folds:
        return nan
    rng, total, sums = np.random.default_rng(seed), 0.0, scores.sum(axis=0)
    for _ in range(divisions):
        fold = rng.permutation(count) % folds
        for number in range(folds):
            test = fold == number
            held = scores[test].sum(axis=0)
            others = (sums - held) / (count - np.count_nonzero(test))
            total += float(held[int(others.round(_DIGITS).argmax())])
    return total / (divisions * count)


def _one_sided_level(scores: Floats, flips: int, seed: int) -> float:
    """The confidence level of one end at which the ends of all columns hold together."""
    single = 1 - ALPHA / 2
    different = np.unique(scores.round(_DIGITS), axis=1)
    centred = different - different.mean(axis=0)
    norm = np.sqrt((centred**2).sum(axis=0))
    centred = centred[:, norm > _EQUAL] / norm[norm > _EQUAL]
    if centred.shape[1] < 2 or len(scores) < MIN_QUERIES:
        return single
    from statistics import NormalDist  # deferred: it imports decimal and fractions

    largest = np.concatenate([sums.max(axis=1) for sums in flipped_sums(centred, flips, seed)])
    level = NormalDist().cdf(float(np.quantile(largest, single)))
    return single if isnan(level) else min(max(level, single), _MOST)
