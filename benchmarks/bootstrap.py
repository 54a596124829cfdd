"""Intervals: the bootstrap of many metrics at once, beside scipy asked for the same."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.outcome import Outcome, faster, tell
from benchmarks.timing import Entry, best

if TYPE_CHECKING:
    from karat._internal.arrays import Floats

_METRICS, _QUERIES, _RESAMPLES = 20, 10_000, 10_000
_REPETITIONS = 5
_OF_SCIPY = 3
_ASKED = 10
# All resamples at once would take 16 GB. Which batch is quickest depends on the caches of the machine.
_BATCHES = (1, 2, 4, 16, 64)
_TRIAL = 300
_OF_TRIALS = 2


def measure() -> list[Outcome]:
    """Compare karat with scipy, given the batch that is quickest here."""
    scores = np.random.default_rng(1).beta(0.6, 0.4, (_METRICS, _QUERIES))

    def given() -> Floats:
        return scores

    trials = {
        str(batch): Entry(partial(by_scipy, batch=batch, resamples=_TRIAL), given, _OF_TRIALS) for batch in _BATCHES
    }
    least = best(trials)
    batch = int(min(least, key=least.__getitem__))
    check(by_karat(scores), by_scipy(scores, batch), scores)
    least = best(
        {
            "karat": Entry(by_karat, given, _REPETITIONS),
            "scipy": Entry(partial(by_scipy, batch=batch), given, _OF_SCIPY),
        }
    )
    note = (
        f"{_METRICS} metrics × {_QUERIES:,} queries × {_RESAMPLES:,} resamples; scipy in batches of {batch}, its best"
    )
    return [
        faster(
            "bootstrap", "scipy.stats.bootstrap", ours=least["karat"], theirs=least["scipy"], asked=_ASKED, note=note
        )
    ]


def by_karat(scores: Floats) -> Floats:
    """karat: the ends of all intervals."""
    from karat.stats import intervals, resamples

    assert resamples(_QUERIES) == _RESAMPLES, "karat draws another number of resamples"
    return np.array(list(intervals({str(i): values for i, values in enumerate(scores)}).values()))


def by_scipy(scores: Floats, batch: int, resamples: int = _RESAMPLES) -> Floats:
    """scipy: the same, one call for all metrics."""
    from scipy import stats  # type: ignore[import-untyped]

    found = stats.bootstrap(
        (scores,), np.mean, axis=-1, n_resamples=resamples, batch=batch, vectorized=True, method="percentile", rng=1
    )
    return np.column_stack(found.confidence_interval)


def check(ours: Floats, theirs: Floats, scores: Floats) -> None:
    """Refuse to time what is not the same: the ends agree within what chance moves them."""
    error = scores.std(axis=1) / np.sqrt(_QUERIES)
    assert (np.abs(ours - theirs).max(axis=1) < 0.2 * error).all(), "karat and scipy give other intervals"


if __name__ == "__main__":
    tell(measure())
