"""Summaries beyond the mean: quantiles, the geometric mean, the worst of each family; and the summary of a measure.

A quantile has an interval between two of the values (order statistics), which assumes nothing about their distribution.
The geometric mean has that of the mean on the log scale, the worst of each family that of the mean over the families.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import count
from math import comb, exp, floor, inf, log, nan, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.grammar import parse_call, write
from karat.errors import BadArgument, KaratError, unknown
from karat.stats.interval import MIN_QUERIES, Interval, bounded_interval, check_level, mean_interval

FLOOR = 1e-5
"""The least score in a geometric mean, as in trec_eval's gm_map: a single 0 does not make it 0."""
STATISTICS = ("mean", "median", "gm", "worst", "p10", "p90")
_EXACT = 1000
"""The number of queries up to which a sign test sums the binomial distribution; above, it is nearly normal."""
_PERCENTILE = re.compile(r"p(\d{1,3})")
_HINT = '"p10", "median", "gm" or "worst(family)"'


class Statistic(NamedTuple):
    """A summary of one number per query, such as `p10`; its text form is read by `read_statistic`."""

    name: str
    """mean, gm, worst, or quantile."""
    share: float = nan
    """The share of the queries at or below a quantile."""
    by: str | None = None
    """The field with the family of each query, for worst."""

    def __str__(self) -> str:
        if self.name == "quantile":
            return "median" if self.share == 0.5 else f"p{round(100 * self.share)}"
        return self.name if self.by is None else f"{self.name}({write(self.by)})"


def read_statistic(text: str, by: str | None = None) -> Statistic:
    """Parse `p1` to `p99`, `median`, `gm`, `mean` or `worst(field)`; the field may be given as `by` instead."""
    if not isinstance(text, str):
        raise BadArgument("a summary is a name", got=text, hint=_HINT)
    text = text.strip()
    try:
        call = parse_call(text)
    except KaratError:
        raise unknown("summary", text, STATISTICS, _HINT) from None
    given = [*call.positional, *call.named.values(), *([] if by is None else [by])]
    name = call.name.lower()
    if name == "worst":
        if len(given) != 1 or set(call.named) - {"by"}:
            problem = "worst takes one field: the family that each query belongs to"
            raise BadArgument(problem, got=text, hint='"worst(family)"')
        return Statistic("worst", by=str(given[0]))
    if given:
        raise BadArgument(f"only worst takes a field, not {name}", got=text, hint='"worst(family)"')
    if name in {"mean", "gm"}:
        return Statistic(name)
    if name == "median":
        return Statistic("quantile", 0.5)
    if (found := _PERCENTILE.fullmatch(name)) and 1 <= int(found[1]) <= 99:
        return Statistic("quantile", int(found[1]) / 100)
    if found:
        raise BadArgument("a percentile is p1 to p99", got=text, hint='"p10"')
    raise unknown("summary", text, STATISTICS, _HINT)


class Summary(NamedTuple):
    """A summary of one metric or measure, with its interval."""

    value: float
    low: float
    high: float
    """The ends of the interval; an end is NaN if there are too few queries for it."""
    n: int
    """The number of queries with a score; for worst, the number of families."""


def summarize(values: Floats, statistic: Statistic, level: float = 0.95, *, score: bool = True) -> Summary:
    """The summary of one number per query, or of the worst of each family; NaN is undefined.

    `score` is False for a measure, which may be infinite or exceed 1: its means have no interval.
    """
    check_level(level)
    ordered = np.sort(values[~np.isnan(values)])
    size = len(ordered)
    if statistic.name == "quantile":
        value = quantile(ordered, statistic.share)
        low, high = quantile_interval(ordered, statistic.share, level)
        return Summary(value, min(low, value), max(high, value), size)
    if not size or np.isinf(ordered).any():
        return Summary(nan, nan, nan, size)
    if statistic.name == "gm":
        value, (low, high) = geometric_mean(ordered), _log_interval(ordered, level) if score else (nan, nan)
        return Summary(value, low, high, size)
    return Summary(float(ordered.mean()), *(mean_interval(ordered, level) if score else (nan, nan)), size)


def quantile(ordered: Floats, share: float) -> float:
    """The value at a share of sorted values, in a straight line between two of them; NaN if there are none."""
    if not len(ordered):
        return nan
    place = (len(ordered) - 1) * share
    below, above = float(ordered[floor(place)]), float(ordered[min(floor(place) + 1, len(ordered) - 1)])
    part = place - floor(place)
    if part < 1e-9 or below == above:
        return below
    return below + (above - below) * part if above < inf else inf


def quantile_interval(ordered: Floats, share: float, level: float = 0.95) -> Interval:
    """The interval of a quantile between two of the sorted values; an end is NaN if there are too few values for it."""
    below, above = cut_off(len(ordered), share, (1 - level) / 2)
    return Interval(float(ordered[below - 1]) if below else nan, float(ordered[-above]) if above else nan)


def least_queries(share: float, level: float = 0.95, end: str = "") -> int:
    """The number of queries from which on a quantile has an interval with both ends, or with its lower or upper one."""
    for size in count(1):
        below, above = cut_off(size, share, (1 - level) / 2)
        if {"lower": below, "upper": above}.get(end, min(below, above)):
            break
    return size


def least_for_interval(statistic: Statistic, end: str = "") -> int:
    """The number of queries, or families, from which on a summary has both ends of its interval, or one of them."""
    return least_queries(statistic.share, end=end) if statistic.name == "quantile" else MIN_QUERIES


@lru_cache(maxsize=512)
def cut_off(size: int, share: float, tail: float) -> tuple[int, int]:
    """The largest numbers of values that may be cut off at both ends: more are below, or above, at most this seldom."""
    if not size:
        return 0, 0
    # The probability that so many values are below the quantile: binomial, from the ratios of neighbours.
    lower = np.arange(size)
    ratio = np.log((size - lower) / (lower + 1.0)) + log(share / (1 - share))
    chance = np.exp(size * log(1 - share) + np.concatenate(([0.0], np.cumsum(ratio))))
    below = int(np.searchsorted(np.cumsum(chance), tail * (1 + 1e-12), side="right"))
    above = int(np.searchsorted(np.cumsum(chance[::-1]), tail * (1 + 1e-12), side="right"))
    return below, above


def geometric_mean(values: Floats) -> float:
    """The geometric mean; scores below `FLOOR` count as that."""
    return exp(float(np.log(np.maximum(values, FLOOR)).mean()))


def _log_interval(values: Floats, level: float) -> Interval:
    """The interval of the geometric mean: that of the mean on the log scale, from `FLOOR` to 1."""
    logs = np.log(np.maximum(values, FLOOR)) / log(FLOOR)  # 1 for the floor, 0 for a score of 1
    worst, best = bounded_interval(logs, float(logs.min(initial=0.0)), 1.0, level)
    return Interval(exp(log(FLOOR) * best), exp(log(FLOOR) * worst))


def worst_of_each(values: Floats, family: Ints, *, lowest: bool = True) -> Floats:
    """The worst number of each family, over the queries for which it is defined; NaN if there is none.

    `family` numbers the families from 0.
    """
    start = inf if lowest else -inf
    found = np.full(int(family.max(initial=-1)) + 1, start)
    defined: Bools = ~np.isnan(values)
    (np.minimum if lowest else np.maximum).at(found, family[defined], values[defined])
    there = np.zeros(len(found), bool)
    there[family[defined]] = True
    return np.where(there, found, nan)


class MeasureSummary(NamedTuple):
    """A measure over the queries of a run. Infinite: so many queries never reached it."""

    median: float
    interval: Interval
    """The 95 % interval of the median; NaN for fewer than six queries."""
    p90: float
    """Nine of ten queries are at or below it."""
    mean: float
    """NaN if some query never reached it: a mean over the others would hide those."""
    never: int
    """The number of queries that never reached it."""
    defined: int
    """The number of queries for which it is defined."""


def summarize_measure(values: Floats, level: float = 0.95) -> MeasureSummary:
    """The summary of one number per query; NaN is undefined, infinite is never reached."""
    ordered = np.sort(values[~np.isnan(values)])
    never = int(np.isinf(ordered).sum())
    mean = float(ordered.mean()) if len(ordered) and not never else nan
    ends = quantile_interval(ordered, 0.5, level)
    return MeasureSummary(quantile(ordered, 0.5), ends, quantile(ordered, 0.9), mean, never, len(ordered))


def sign_test(better: int, worse: int) -> float:
    """The two-sided p-value of so many gains and losses, if each is equally likely; 1 if nothing changed."""
    size, few = better + worse, min(better, worse)
    if size > _EXACT:
        z = (few + 0.5 - size / 2) / (sqrt(size) / 2)
        return min(2 * NormalDist().cdf(z), 1.0)
    tail = sum(comb(size, count) for count in range(few + 1))
    return min(float(2 * tail / 2**size), 1.0)
