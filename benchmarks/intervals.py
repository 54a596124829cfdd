"""Intervals of many metrics: karat, which computes them without draws, against the bootstrap of scipy.

95 % intervals of 20 metrics over 10,000 queries; scipy takes 10,000 resamples.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.outcome import Outcome, speedup, write_outcomes
from benchmarks.timing import Entry, best

if TYPE_CHECKING:
    from karat._internal.arrays import Floats

_METRICS, _QUERIES, _RESAMPLES = 20, 10_000, 10_000
_REPETITIONS = 5
_SCIPY_REPETITIONS = 3
_TARGET = 10
# All resamples at once would need 16 GB. The fastest batch size depends on the CPU caches.
_BATCHES = (1, 2, 4, 16, 64)
_TRIAL = 300
_TRIALS = 2


def measure() -> list[Outcome]:
    """Compare karat with scipy at its fastest batch size."""
    scores = np.random.default_rng(1).beta(0.6, 0.4, (_METRICS, _QUERIES))

    def given() -> Floats:
        return scores

    trials = {str(batch): Entry(partial(by_scipy, batch=batch, resamples=_TRIAL), given, _TRIALS) for batch in _BATCHES}
    least = best(trials)
    batch = int(min(least, key=least.__getitem__))
    check(by_karat(scores), by_scipy(scores, batch), scores)
    least = best(
        {
            "karat": Entry(by_karat, given, _REPETITIONS),
            "scipy": Entry(partial(by_scipy, batch=batch), given, _SCIPY_REPETITIONS),
        }
    )
    work = f"{_METRICS} metrics × {_QUERIES:,} queries"
    note = f"{work}; scipy: {_RESAMPLES:,} resamples, fastest batch: {batch}; karat: no draws"
    return [
        speedup(
            "intervals", "scipy.stats.bootstrap", ours=least["karat"], theirs=least["scipy"], target=_TARGET, note=note
        )
    ]


def by_karat(scores: Floats) -> Floats:
    """All intervals by karat."""
    from karat.stats import intervals

    return np.array(list(intervals({str(i): values for i, values in enumerate(scores)}).values()))


def by_scipy(scores: Floats, batch: int, resamples: int = _RESAMPLES) -> Floats:
    """All intervals by one call of scipy."""
    from scipy import stats

    found = stats.bootstrap(
        (scores,), np.mean, axis=-1, n_resamples=resamples, batch=batch, vectorized=True, method="percentile", rng=1
    )
    return np.column_stack(found.confidence_interval)


def check(ours: Floats, theirs: Floats, scores: Floats) -> None:
    """Check before timing: with this many queries the limits are nearly the same."""
    error = scores.std(axis=1) / np.sqrt(_QUERIES)
    assert (np.abs(ours - theirs).max(axis=1) < 0.2 * error).all(), "karat's intervals differ from scipy's"


if __name__ == "__main__":
    write_outcomes(measure())
