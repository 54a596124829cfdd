"""Quotes searched in chunks: karat against two Python loops, and against itself on a tenth of the data.

1,000 queries with one quote of 200 characters and 10 chunks of 1,000, freshly loaded; and ten times as many. One loop
is what a user would write: white space is folded, then `in`. The other is only `in`: it misses quotes with other white
space, and is the limit of what any search in Python can reach.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks.outcome import Outcome, slowdown, speedup, write_outcomes
from benchmarks.prose import Quoted, Sample, quoted
from benchmarks.timing import Entry, best

if TYPE_CHECKING:
    from karat import Run

METRICS = {"contains": "recall@5", "spans": "recall@5 span_recall@5 span_precision@5"}
# A quote cut in two is in no chunk, but its parts together cover it.
_FOUND = {"contains": {"whole"}, "spans": {"whole", "cut"}}

_QUERIES = 1_000
_TIMES = 10
_REPETITIONS = 15
_LARGE_REPETITIONS = 5
_OVER_FOLDING, _OVER_BARE = {"contains": 5.0, "spans": None}, {"contains": 0.7, "spans": None}
_GROWTH = 1.3


def measure(judge: str) -> list[Outcome]:
    """Compare karat with the loop, and the time per query on ten times the data with that on the data."""
    few, many = quoted(_QUERIES), quoted(_QUERIES * _TIMES)
    check(judge, few)

    def call(samples: list[Sample]) -> Run:
        return by_karat(judge, samples, METRICS[judge])

    least = best(
        {
            "karat": Entry(call, few.load, _REPETITIONS),
            "folding": Entry(by_folding, few.load, _REPETITIONS),
            "loop": Entry(by_loop, few.load, _REPETITIONS),
            "many": Entry(call, many.load, _LARGE_REPETITIONS),
        }
    )
    ours, case = least["karat"], f"quotes-{judge}"
    note = f"milliseconds per {_QUERIES:,} queries: as part of {_TIMES * _QUERIES:,}, and alone"
    return [
        speedup(case, "fold, then `in`", ours=ours, theirs=least["folding"], target=_OVER_FOLDING[judge]),
        speedup(case, "bare `in`", ours=ours, theirs=least["loop"], target=_OVER_BARE[judge]),
        slowdown(case, "karat, 10× less data", ours=least["many"] / _TIMES, theirs=ours, target=_GROWTH, note=note),
    ]


def by_karat(judge: str, samples: list[Sample], metrics: str) -> Run:
    """Evaluate with karat, from the samples to the scores of every query."""
    import karat

    return karat.evaluate(samples, metrics, judge=judge)


def by_folding(samples: list[Sample]) -> list[bool]:
    """Test for each chunk if it contains the quote, whatever the white space."""
    return [
        " ".join(quote.split()) in " ".join(chunk.split())
        for sample in samples
        for quote in sample["gold"]
        for chunk in sample["retrieved"]
    ]


def by_loop(samples: list[Sample]) -> list[bool]:
    """Test for each chunk if it contains the quote."""
    return [quote in chunk for sample in samples for quote in sample["gold"] for chunk in sample["retrieved"]]


def check(judge: str, data: Quoted) -> None:
    """Check the results before timing: exactly the quotes that can be found are found."""
    samples = data.load()
    found = by_karat(judge, samples, "recall").scores["recall"].tolist()
    assert found == [float(kind in _FOUND[judge]) for kind in data.kinds], f"{judge} finds the wrong quotes"
    assert sum(by_folding(samples)) == sum(by_loop(samples)) == data.kinds.count("whole"), (
        "the loop finds the wrong quotes"
    )


if __name__ == "__main__":
    write_outcomes(measure(sys.argv[1]))
