"""Recall at token budgets: runs with chunks of different size, compared at the same number of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, mean_defined
from karat.metrics import parse
from karat.metrics.cutoffs import Budget, Cutoff
from karat.run import Run
from karat.stats.selection import select_best

_STEPS = (1, 2, 5)
_MOST = 6
"""Budgets in the table."""
_DEPTH = "k"
"""The setting that is the number of retrieved items: runs that differ in it alone have one curve."""


class BudgetPoint(NamedTuple):
    """One budget: the recall of each run, the leader, and the number of runs that may be as good as it."""

    tokens: int
    recall: tuple[float, ...]
    leader: int
    """The place of the best run in `TokenCurve.rows`; -1 if the recall is undefined, or equal for every query."""
    possible: int
    """The number of runs that cannot be distinguished from the leader, with it."""


class TokenCurve(NamedTuple):
    """Recall at several budgets."""

    rows: tuple[int, ...]
    """The runs with a curve, by their place in the standings."""
    without_k: bool
    """True if runs that differ only in k are shown once, as the one with the largest k."""
    total: tuple[float, ...]
    """The mean number of tokens that each of these runs retrieved."""
    points: tuple[BudgetPoint, ...]


def mean_tokens(run: Run, rows: Ints, cutoff: Cutoff | None) -> float:
    """The mean number of tokens within a cutoff, over some queries; NaN if they were not counted."""
    totals = run.all_hits.totals
    if "tokens" not in totals.at_rank or not len(rows):
        return float("nan")
    deepest = totals.depth.astype(float)
    if isinstance(cutoff, Budget):
        deepest = totals.ranks_within("tokens", cutoff.tokens)
    elif isinstance(cutoff, int):
        deepest = np.minimum(deepest, cutoff)
    failed = set(run.all_hits.failed)
    kept = [row for row in rows.tolist() if row not in failed]
    return float(totals.at("tokens", deepest)[kept].mean()) if kept else float("nan")


def curve_of(runs: Sequence[Run], rows: Sequence[Ints], settings: Sequence[Mapping[str, Any]]) -> TokenCurve | None:
    """The curve of runs in the order of the standings; None if some have no tokens, or there is nothing to compare."""
    if not all("tokens" in run.all_hits.totals.at_rank for run in runs):
        return None
    deepest = [mean_tokens(run, own, None) for run, own in zip(runs, rows, strict=True)]
    shown = _without_depth(settings)
    budgets = _budgets([runs[i] for i in shown], [deepest[i] for i in shown])
    if len(shown) < 2 or not budgets:
        return None
    points = [_point(budget, [runs[i] for i in shown], [rows[i] for i in shown]) for budget in budgets]
    if all(value != value for point in points for value in point.recall):
        return None
    return TokenCurve(tuple(shown), len(shown) < len(runs), tuple(deepest[i] for i in shown), tuple(points))


def _without_depth(settings: Sequence[Mapping[str, Any]]) -> list[int]:
    """The runs to show: of those that differ in k alone, the one with the largest k."""
    deepest: dict[str, int] = {}
    for place, own in enumerate(settings):
        k = own.get(_DEPTH)
        others = {name: value for name, value in own.items() if name != _DEPTH}
        key = repr(sorted(others.items())) if isinstance(k, int) else f"{place}"
        if key not in deepest or k > settings[deepest[key]][_DEPTH]:
            deepest[key] = place
    return sorted(deepest.values())


def _budgets(runs: Sequence[Run], deepest: Sequence[float]) -> list[int]:
    """Round numbers of tokens: from the size of one item to what the runs retrieved."""
    sizes = [own for run in runs if len(own := run.all_hits.totals.amounts("tokens"))]
    items = [float(np.median(own)) for own in sizes]
    low, high = max(min(items, default=1.0), 1.0), max(deepest, default=0.0)
    power = [10**exponent for exponent in range(8)]
    round_numbers = [step * ten for ten in power for step in _STEPS if low <= step * ten <= high]
    return round_numbers[-_MOST:]


def _point(budget: int, runs: Sequence[Run], rows: Sequence[Ints]) -> BudgetPoint:
    scores = np.array([recall_within(run, budget)[own] for run, own in zip(runs, rows, strict=True)])
    defined: Bools = ~np.isnan(scores).any(axis=0)
    recall = tuple(mean_defined(own[defined]) for own in scores)
    if not defined.any():
        return BudgetPoint(budget, recall, -1, 0)
    selection = select_best(scores[:, defined].T)
    return BudgetPoint(budget, recall, selection.winner if selection.differ else -1, sum(selection.possible))


def recall_within(run: Run, budget: int) -> Floats:
    """The recall of each query within a budget, with the settings of the run's own recall; NaN for failures."""
    base = next((metric.base for metric in run.metrics if metric.name == "recall"), "recall")
    convention = run.convention.of("recall", cut=True) if run.convention.exceptions else run.convention
    (values,) = parse(f"{base}@{budget}t").scores(run.all_hits, convention).values()
    if run.all_hits.failed:
        values = np.where(np.isin(np.arange(len(run)), list(run.all_hits.failed)), np.nan, values)
    return values
