"""Ranked lists of ids: karat on the lists, pytrec_eval on the same data as dicts."""

from __future__ import annotations

import sys
from typing import NamedTuple

from benchmarks import workloads
from benchmarks.outcome import Outcome, faster, tell
from benchmarks.peers import by_karat, by_pytrec_eval, check_agreement
from benchmarks.timing import Entry, best


class Plan(NamedTuple):
    """How often to call each, and how many times as fast karat is asked to be."""

    repetitions: int
    asked: float


PLANS = {"W2": Plan(7, 4), "W3": Plan(5, 8)}


def measure(size: str) -> list[Outcome]:
    """Compare karat with pytrec_eval, which takes no lists."""
    plan = PLANS[size]
    ranked = workloads.lists(workloads.dicts(workloads.SIZES[size]))
    as_dicts = workloads.with_scores(ranked)
    check_agreement(by_karat(ranked), by_pytrec_eval(as_dicts), ranked.gold)
    texts = workloads.as_json(ranked)
    least = best(
        {
            # The dicts of pytrec_eval have hashed their ids when they were made, off the clock. Ids of
            # lists that were loaded a moment ago have no hash yet, and karat pays for it: both are told.
            "hashed": Entry(by_karat, lambda: ranked, plan.repetitions),
            "just loaded": Entry(by_karat, texts.load, plan.repetitions),
            "pytrec_eval": Entry(by_pytrec_eval, lambda: as_dicts, plan.repetitions),
        }
    )
    theirs = least["pytrec_eval"]
    notes = {
        "hashed": "ids hashed before, as in the dicts",
        "just loaded": "lists loaded a moment ago, ids not yet hashed",
    }
    return [
        faster(f"lists-{size}", "pytrec_eval", ours=least[state], theirs=theirs, asked=plan.asked, note=note)
        for state, note in notes.items()
    ]


if __name__ == "__main__":
    tell(measure(sys.argv[1]))
