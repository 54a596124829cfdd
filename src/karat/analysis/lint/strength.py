"""The statistical power of a test set, and metrics that no longer distinguish runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat.analysis.lint.test_set import Problem, TestSet
from karat.metrics import parse
from karat.pipeline import evaluate
from karat.run import Run
from karat.stats import ALPHA, detectable, needed
from karat.stats.paired import min_queries

METRIC = "recall@5"
"""The metric of the size estimate, the same with and without runs."""
_SATURATED = 0.98
_SMALL = 0.02
_MAX_SPREAD = 0.5


class Strength(NamedTuple):
    """The statistical power of a test set: the minimum detectable difference, and the queries needed for 0.02."""

    queries: int
    spread: float
    """The standard deviation from which it was computed."""
    of: str
    """The scores that have this standard deviation."""
    detectable: float
    """NaN if the queries are too few to detect any."""
    needed: int

    def text(self) -> str:
        """The power in one sentence."""
        if self.detectable != self.detectable:
            first = f"The test set is too small: {self.queries:,} queries cannot detect any difference in {METRIC}."
        else:
            first = (
                f"{self.queries:,} queries can detect a difference of {self.detectable:.3f} in {METRIC} (80 % power); "
                "smaller differences may be missed."
            )
        return (
            f"{first} Detecting {_SMALL:g} needs {self.needed:,} queries. Estimated from {self.of}, {self.spread:.2f}."
        )


def strength(tests: TestSet, runs: Sequence[Run]) -> Strength | None:
    """The power of a test set, estimated from runs, from the retrieved items, or for the largest possible spread."""
    defined = sum(any(gold.grade > 0 for gold in own) for own in tests.by_query)
    if defined < 2:
        return None
    spread, of = _spread(tests, runs)
    least = detectable(spread, defined) if defined >= min_queries(2, ALPHA) else nan
    return Strength(defined, spread, of, least if least <= 1 else nan, needed(spread, _SMALL))


def _spread(tests: TestSet, runs: Sequence[Run]) -> tuple[float, str]:
    """The standard deviation of the metric, which is computed from the hits of the runs, whatever metrics they have."""
    if len(runs) > 1:
        spread = _deviation(_differences(runs[0], runs[1]))
        if spread is not None:
            return spread, f"the standard deviation of the differences in {METRIC} between the first two runs"
    one = runs[0] if runs else _evaluated(tests)
    spread = None if one is None else _deviation(_scores(one))
    if spread is None:
        return _MAX_SPREAD, f"the largest possible standard deviation of {METRIC}"
    return spread, f"the standard deviation of {METRIC}"


def _scores(run: Run) -> Floats:
    """The metric of each query, the mean over its repeats."""
    if run.all_hits.gold_items.incomplete:  # recall is undefined
        return np.full(len(run.queries), nan)
    scores = parse(METRIC).scores(run.all_hits, run.convention)[METRIC].copy()
    scores[list(run.all_hits.failed)] = nan
    return run.per_query(scores)


def _deviation(values: Floats) -> float | None:
    """The standard deviation of the defined values; None if it is 0 or undefined."""
    defined = values[~np.isnan(values)]
    return float(defined.std(ddof=1)) if len(defined) > 1 and defined.std() > 0 else None


def _differences(a: Run, b: Run) -> Floats:
    """The differences of the metric over the shared queries."""
    before, after = (dict(zip(run.queries, _scores(run).tolist(), strict=True)) for run in (a, b))
    return np.array([after[query] - own for query, own in before.items() if query in after])


def _evaluated(tests: TestSet) -> Run | None:
    """The retrieved items, evaluated; None if there are none that can be compared with the gold."""
    run = evaluate(tests.every, METRIC) if tests.comparable else None
    return run if run is not None and run.all_hits.depth.any() else None


def check_strength(runs: Sequence[Run], power: Strength | None) -> Iterator[Problem]:
    """Saturated metrics, and too few queries to detect a difference of 0.02."""
    names = [name for name in runs[0].mean if all(run.mean.get(name, 0) > _SATURATED for run in runs)] if runs else []
    if names:
        lowest = [f"{name}: {min(run.mean[name] for run in runs):.3f} at the lowest" for name in names]
        which = "every metric" if len(names) == len(runs[0].mean) else f"{len(names)} of {len(runs[0].mean)} metrics"
        text = f"Every run scores above {_SATURATED} in {which}: they no longer distinguish runs. Add harder queries."
        yield Problem("saturated", False, len(names), text, lowest)
    if power is not None and not power.detectable <= _SMALL:
        yield Problem("small", False, power.queries, power.text(), [])
