"""How well raters agree beyond chance: Krippendorff's alpha, for repeated judgements and for people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, repeat
from math import nan, pi, sqrt, tan
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.errors import BadArgument, unknown
from karat.stats import SEED, resamples
from karat.stats.bootstrap import Draws

Kind = Literal["nominal", "interval"]


def alpha(ratings: Sequence[Sequence[float]] | Floats, kind: Kind = "nominal") -> float:
    """Krippendorff's alpha: 1 if raters agree wholly, 0 if no better than chance, below 0 if worse.

    A row for each unit (what is rated), in it a number from each rater, NaN where one is missing; rows
    may end early. Nominal ratings are the same or not, interval ratings differ by the square of their distance.
    Units with fewer than two ratings say nothing. NaN if no unit has two, or if all ratings are the same.
    """
    if kind not in get_args(Kind):
        raise unknown("kind of ratings", str(kind), get_args(Kind), f"one of: {', '.join(get_args(Kind))}")
    unit, value = _flat(ratings)
    paired = np.bincount(unit)[unit] > 1
    unit, value = np.unique(unit[paired], return_inverse=True)[1], value[paired]
    if len(value) == 0 or value.min() == value.max():
        return nan
    differences = _unequal if kind == "nominal" else _squares
    observed = (differences(unit, value) / (np.bincount(unit) - 1)).sum()
    expected = differences(np.zeros(len(value), np.int64), value)[0] / (len(value) - 1)
    return float(1 - observed / expected)


def _flat(ratings: Any) -> tuple[Ints, Floats]:
    """Every rating that is there, with the number of its unit."""
    wanted = "ratings are rows of numbers, one row for each unit, NaN where a rating is missing"
    try:
        rows = [list(row) for row in ratings]
        value = np.array(list(chain.from_iterable(rows)), float)
    except (TypeError, ValueError) as error:
        raise BadArgument(wanted, got=ratings, hint="[[1, 1, 0], [0, 0, nan]]") from error
    if value.ndim != 1 or np.isinf(value).any():
        raise BadArgument(wanted, got=ratings, hint="[[1, 1, 0], [0, 0, nan]]")
    unit = np.array(list(chain.from_iterable(repeat(i, len(row)) for i, row in enumerate(rows))), np.int64)
    there = ~np.isnan(value)
    return unit[there], value[there]


def _unequal(group: Ints, value: Floats) -> Floats:
    """In each group, how many ordered pairs of ratings are not the same."""
    levels, level = np.unique(value, return_inverse=True)
    times = np.bincount(group * len(levels) + level, minlength=(int(group.max()) + 1) * len(levels))
    table = times.reshape(-1, len(levels)).astype(float)
    pairs: Floats = table.sum(axis=1) ** 2 - (table**2).sum(axis=1)
    return pairs


def _squares(group: Ints, value: Floats) -> Floats:
    """In each group, the sum over ordered pairs of ratings of their squared distance."""
    size = np.bincount(group)
    middle = np.bincount(group, value) / size
    return np.asarray(2 * size * np.bincount(group, (value - middle[group]) ** 2), float)


_STEPS = 20_001
_FAR = 40  # standard deviations, beyond which there is nothing


class Figure(NamedTuple):
    """A number and the ends of its interval; NaN where it cannot be told."""

    value: float
    low: float
    high: float

    def within(self, least: float, most: float) -> Figure:
        """The same, where it is known that the number lies between two bounds."""
        return Figure(*(float(np.clip(one, least, most)) for one in self))


def mean_figure(values: Floats, level: float, *, extra: float = 0.0) -> Figure:
    """The mean of some values; `extra` is added to the sum of their squared deviations."""
    if len(values) < 2:
        return Figure(float(values.mean()) if len(values) else nan, nan, nan)
    mean, freedom = float(values.mean()), len(values) - 1
    squares = float(((values - mean) ** 2).sum()) + extra
    return around(mean, squares / (len(values) * freedom), freedom, level)


def around(value: float, variance: float, freedom: int, level: float) -> Figure:
    """A number with a variance that so many degrees of freedom estimate."""
    half = student(level, freedom) * sqrt(variance)
    return Figure(value, value - half, value + half)


@lru_cache(maxsize=64)
def student(level: float, freedom: int) -> float:
    """How many standard errors to each side hold this share of Student's distribution.

    With t = √freedom · tan(angle) its density is a power of the cosine, which is summed up and read backwards.
    """
    angle = np.linspace(0, min(pi / 2, _FAR / sqrt(freedom)), _STEPS)
    density = np.cos(angle) ** (freedom - 1)
    area = np.concatenate(([0.0], np.cumsum(density[1:] + density[:-1])))
    return sqrt(freedom) * tan(float(np.interp(level, area / area[-1], angle)))


def share_figure(part: Floats, whole: Floats, level: float) -> Figure:
    """A share of judgements that come in queries: so many of so many in each.

    Judgements of one query resemble each other. They count as so many independent ones as would spread as
    much; no fewer than there are queries, nor more than there are judgements.
    """
    total, clusters = float(whole.sum()), int((whole > 0).sum())
    if not total:
        return Figure(nan, nan, nan)
    share = float(part.sum()) / total
    size = float(clusters)
    if 0 < share < 1 and clusters > 1:
        variance = float(((part - share * whole) ** 2).sum()) / total**2 * clusters / (clusters - 1)
        size = min(max(share * (1 - share) / variance, clusters), total) if variance else total
    return Figure(share, *_wilson(share, size, level))


def balance_figure(up: Floats, down: Floats, whole: Floats, level: float) -> Figure:
    """What more go up than down, as a share of the whole, in each query; one more of them is added in thought."""
    total, clusters = float(whole.sum()), len(whole)
    value = float((up - down).sum()) / total
    if clusters < 2:
        return Figure(value, nan, nan)
    squares = float(((up - down - value * whole) ** 2).sum()) * clusters / (clusters - 1) + 1
    return around(value, squares / total**2, clusters - 1, level).within(-1, 1)


def _wilson(share: float, size: float, level: float) -> tuple[float, float]:
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = (share + z * z / (2 * size)) / (1 + z * z / size)
    half = z * sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2) / (1 + z * z / size)
    return max(0.0, middle - half), min(1.0, middle + half)


_AT_ONCE = 640_000


class Agreement(NamedTuple):
    """Judge against people, judgement by judgement."""

    tp: int
    """Both say yes."""
    fp: int
    """Only the judge says yes."""
    fn: int
    """Only people say yes."""
    tn: int
    """Both say no."""
    queries: int
    """How many queries the judgements are of."""
    agreement: Figure
    """The share on which both say the same."""
    kappa: Figure
    """Cohen's kappa: agreement beyond what chance would give; NaN if both always say the same one thing."""
    sensitivity: Figure
    """The share of people's yes that the judge says too; NaN if there is none."""
    specificity: Figure
    """The share of people's no that the judge says too."""
    bias: Figure
    """How much more of all judgements are yes to the judge than to people."""

    @property
    def judgements(self) -> int:
        """How many were compared."""
        return self.tp + self.fp + self.fn + self.tn


def agree(query: Ints, judge: Bools, human: Bools, level: float) -> Agreement:
    """Compare judgements; those of one query are drawn together, for they resemble each other."""
    of = np.unique(query, return_inverse=True)[1]
    cells = (judge & human, judge & ~human, ~judge & human, ~judge & ~human)
    counts = np.column_stack([np.bincount(of[cell], minlength=int(of.max()) + 1) for cell in cells]).astype(float)
    tp, fp, fn, tn = counts.T
    agreement = share_figure(tp + tn, tp + fp + fn + tn, level)
    return Agreement(
        int(tp.sum()),
        int(fp.sum()),
        int(fn.sum()),
        int(tn.sum()),
        len(counts),
        agreement,
        _kappa_figure(counts, agreement, level),
        share_figure(tp, tp + fn, level),
        share_figure(tn, tn + fp, level),
        balance_figure(fp, fn, tp + fp + fn + tn, level),
    )


def _kappa_figure(counts: Floats, agreement: Figure, level: float) -> Figure:
    """Cohen's kappa with a percentile bootstrap over the queries; seeded."""
    total = counts.sum(axis=0, keepdims=True)
    value = float(_kappa(total)[0])
    if value != value or len(counts) < 2:
        return Figure(value, np.nan, np.nan)
    if agreement.value == 1:  # no resample could differ: what chance has is kept, and less agreement put in
        chance = _chance(total)[0]
        return Figure(value, float((agreement.low - chance) / (1 - chance)), 1.0)
    draws, step = Draws(len(counts), SEED), max(1, _AT_ONCE // len(counts))
    times, found = resamples(len(counts)), []
    while times > 0:
        found.append(_kappa(draws.weights(min(step, times)) @ counts))
        times -= step
    tail = 100 * (1 - level) / 2
    drawn = np.concatenate(found)
    low, high = np.percentile(drawn[~np.isnan(drawn)], [tail, 100 - tail])
    return Figure(value, float(low), float(high))


def _kappa(counts: Floats) -> Floats:
    size, chance = counts.sum(axis=1), _chance(counts)
    same = (counts[:, 0] + counts[:, 3]) / size
    kappa: Floats = (same - chance) / np.where(chance < 1, 1 - chance, np.nan)
    return kappa


def _chance(counts: Floats) -> Floats:
    """How often both would say the same if neither looked."""
    tp, fp, fn, tn = counts.T
    chance: Floats = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / counts.sum(axis=1) ** 2
    return chance
