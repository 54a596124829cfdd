"""Merging two steps of W2 (10,000 queries × 100 ids each), compared with evaluating one of them."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import karat
from benchmarks.outcome import Outcome, slowdown, write_outcomes
from benchmarks.timing import Entry, best

_QUERIES, _DEPTH, _SHARED, _REPETITIONS = 10_000, 100, 10, 5
_TARGET = 2
_METRICS = "recall@10 ndcg@10"

Rows = list[dict[str, Any]]


def measure() -> list[Outcome]:
    """The cost of merging: the time with steps less the time with the merged rankings given."""
    least = best({name: Entry(_evaluate, partial(list, rows), _REPETITIONS) for name, rows in _samples().items()})
    cost = max(least["steps"] - least["merged"], 0.0)
    note = f"with steps {least['steps'] / least['one']:.1f} times one step in all; the merged rankings given "
    note += f"{least['merged'] / least['one']:.1f} times"
    return [slowdown("steps", "evaluating one step", ours=cost, theirs=least["one"], target=_TARGET, note=note)]


def _evaluate(rows: Rows) -> object:
    return karat.evaluate(rows, _METRICS, judge="ids")


def _samples() -> dict[str, Rows]:
    """Samples with the first step alone, with both, and with both as one ranking; ten items are in both."""
    random = Random(16)
    docs = [f"doc-{number}" for number in range(100_000)]
    made: dict[str, Rows] = {"one": [], "steps": [], "merged": []}
    for _ in range(_QUERIES):
        items = random.sample(docs, 2 * _DEPTH - _SHARED)
        first, second = items[:_DEPTH], [*items[_DEPTH:], *items[:_SHARED]]
        gold = [first[3], second[5], "elsewhere"]
        made["one"].append({"retrieved": first, "gold": gold})
        made["steps"].append({"steps": [{"retrieved": first}, {"retrieved": second}], "gold": gold})
        made["merged"].append({"retrieved": items, "gold": gold})
    return made


if __name__ == "__main__":
    write_outcomes(measure())
