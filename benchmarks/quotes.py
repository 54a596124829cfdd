"""Quotes searched in chunks: karat beside a bare loop over the same pairs, and beside itself on less."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks.outcome import Outcome, faster, not_slower, tell
from benchmarks.prose import Quoted, Sample, quoted
from benchmarks.timing import Entry, best

if TYPE_CHECKING:
    from karat import Run

METRICS = {"contains": "recall@5", "spans": "recall@5 span_recall@5 span_precision@5"}
# A quote that is cut in two lies in no chunk, but its parts make up a whole.
_FOUND = {"contains": {"whole"}, "spans": {"whole", "cut"}}

_QUERIES = 1_000
_TIMES = 10
_REPETITIONS = 15
_OF_THE_LARGE = 5
_ASKED = 0.5
_GROWTH = 1.3


def measure(judge: str) -> list[Outcome]:
    """Compare karat with the loop, then the time that a chunk takes among many with that among few."""
    few, many = quoted(_QUERIES), quoted(_QUERIES * _TIMES)
    check(judge, few)

    def call(samples: list[Sample]) -> Run:
        return by_karat(judge, samples, METRICS[judge])

    least = best(
        {
            "karat": Entry(call, few.load, _REPETITIONS),
            "loop": Entry(by_loop, few.load, _REPETITIONS),
            "many": Entry(call, many.load, _OF_THE_LARGE),
        }
    )
    ours, case = least["karat"], f"quotes-{judge}"
    note = f"the milliseconds for {_QUERIES:,} queries among {_TIMES * _QUERIES:,}, and alone"
    return [
        faster(case, "a bare loop", ours=ours, theirs=least["loop"], asked=_ASKED),
        not_slower(case, "itself, a tenth of it", ours=least["many"] / _TIMES, theirs=ours, asked=_GROWTH, note=note),
    ]


def by_karat(judge: str, samples: list[Sample], metrics: str) -> Run:
    """karat, from the samples to the scores of every query."""
    import karat

    return karat.evaluate(samples, metrics, judge=judge)


def by_loop(samples: list[Sample]) -> list[bool]:
    """What anybody would write first, for each chunk whether it holds the quote."""
    return [quote in chunk for sample in samples for quote in sample["gold"] for chunk in sample["retrieved"]]


def check(judge: str, data: Quoted) -> None:
    """Refuse to time what is not right: each quote is found that can be, and no other."""
    samples = data.load()
    found = by_karat(judge, samples, "recall").scores["recall"].tolist()
    assert found == [float(kind in _FOUND[judge]) for kind in data.kinds], f"{judge} finds other quotes than there are"
    assert sum(by_loop(samples)) == data.kinds.count("whole"), "the loop finds other quotes than there are"


if __name__ == "__main__":
    tell(measure(sys.argv[1]))
