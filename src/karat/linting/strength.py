"""How much a test set can tell: what difference its queries would show, and whether runs still differ on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from karat.arrays import Floats
from karat.evaluation import evaluate
from karat.linting.problem import Problem
from karat.linting.testset import TestSet
from karat.run import Run
from karat.stats import detectable, needed

_HIGH = 0.98
_POINTS = 0.02
_MOST_SPREAD = 0.5
"""Scores from 0 to 1 cannot spread more."""


class Strength(NamedTuple):
    """What so many queries can show, and by which spread that was reckoned."""

    queries: int
    spread: float
    of: str
    detectable: float
    needed: int

    def told(self) -> str:
        """One sentence."""
        return (
            f"With {self.queries:,} queries a difference below {self.detectable:.3f} would go unseen (80 % power); "
            f"to see 2 points takes {self.needed:,}. Reckoned by {self.of}, {self.spread:.2f}."
        )


def strength(tests: TestSet, runs: Sequence[Run]) -> Strength | None:
    """By the runs that are given, by what was retrieved, or by the most that scores can spread."""
    defined = sum(any(entry.grade > 0 for entry in own) for own in tests.by_query())
    if defined < 2:
        return None
    spread, of = _spread(tests, runs)
    return Strength(defined, spread, of, detectable(spread, defined), needed(spread, _POINTS))


def _spread(tests: TestSet, runs: Sequence[Run]) -> tuple[float, str]:
    if len(runs) > 1:
        name = _metric([name for name in runs[0].mean if name in runs[1].mean])
        spread = None if name is None else _deviation(_differences(runs[0], runs[1], name))
        if spread is not None:
            return spread, f"the spread of the differences in {name} between the first two runs"
    one = runs[0] if runs else _evaluated(tests)
    name = None if one is None else _metric(list(one.mean))
    spread = None if one is None or name is None else _deviation(one.scores[name])
    return (_MOST_SPREAD, "the most that scores can spread") if spread is None else (spread, f"the spread of {name}")


def _metric(names: Sequence[str]) -> str | None:
    """The last recall, which has the largest cutoff, or whatever comes first."""
    recalls = [name for name in names if name.startswith("recall@")]
    return recalls[-1] if recalls else next(iter(names), None)


def _deviation(values: Floats) -> float | None:
    """The standard deviation of what is defined, if there is any."""
    defined = values[~np.isnan(values)]
    return float(defined.std(ddof=1)) if len(defined) > 1 and defined.std() > 0 else None


def _differences(a: Run, b: Run, name: str) -> Floats:
    """The differences of a metric over the queries that both have."""
    at = {query: row for row, query in enumerate(b.ids)}
    rows = [(row, at[query]) for row, query in enumerate(a.ids) if query in at]
    return np.array([b.scores[name][j] - a.scores[name][i] for i, j in rows], float)


def _evaluated(tests: TestSet) -> Run | None:
    """What was retrieved, measured, if it is there and can be."""
    run = evaluate(tests.samples, "recall@5") if tests.comparable else None
    return run if run is not None and run.all_hits.depth.any() else None


def check_strength(runs: Sequence[Run], found: Strength | None) -> Iterator[Problem]:
    """Too few queries to see two points, and metrics in which every run is as good as perfect."""
    names = [name for name in runs[0].mean if all(run.mean.get(name, 0) > _HIGH for run in runs)] if runs else []
    if names:
        lowest = [f"{name}: {min(run.mean[name] for run in runs):.3f} at the lowest" for name in names]
        which = "every metric" if len(names) == len(runs[0].mean) else f"{len(names)} of {len(runs[0].mean)} metrics"
        text = f"In {which} every run scores above {_HIGH}: it cannot tell them apart any more. Add harder queries."
        yield Problem("saturated", False, len(names), text, lowest)
    if found is not None and found.detectable > _POINTS:
        yield Problem("small", False, found.queries, found.told(), [])
