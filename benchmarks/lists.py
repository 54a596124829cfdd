"""Ranked lists of ids: karat on the lists, pytrec_eval on the same data as dicts."""

from __future__ import annotations

import sys
from typing import NamedTuple

from benchmarks import workloads
from benchmarks.outcome import Outcome, speedup, write_outcomes
from benchmarks.peers import by_karat, by_pytrec_eval, check_agreement
from benchmarks.timing import Entry, best


class Plan(NamedTuple):
    """Repetitions, and the target speedup."""

    repetitions: int
    target: float


PLANS = {"W2": Plan(7, 10), "W3": Plan(5, 30)}


def measure(size: str) -> list[Outcome]:
    """Compare karat with pytrec_eval, which does not accept lists."""
    plan = PLANS[size]
    ranked = workloads.lists(workloads.dicts(workloads.SIZES[size]))
    as_dicts = workloads.with_scores(ranked)
    check_agreement(by_karat(ranked), by_pytrec_eval(as_dicts), ranked.gold)
    texts = workloads.as_json(ranked)
    least = best(
        {
            # Strings cache their hash. The ids in pytrec_eval's dicts were hashed when the dicts were built, which is
            # not timed. Ids in freshly loaded lists are not hashed yet, so karat is timed in both states.
            "hashed": Entry(by_karat, lambda: ranked, plan.repetitions),
            "just loaded": Entry(by_karat, texts.load, plan.repetitions),
            "pytrec_eval": Entry(by_pytrec_eval, lambda: as_dicts, plan.repetitions),
        }
    )
    theirs = least["pytrec_eval"]
    notes = {
        "hashed": "ids already hashed, as in the dicts",
        "just loaded": "freshly loaded lists, ids not hashed yet",
    }
    return [
        speedup(f"lists-{size}", "pytrec_eval", ours=least[state], theirs=theirs, target=plan.target, note=note)
        for state, note in notes.items()
    ]


if __name__ == "__main__":
    write_outcomes(measure(sys.argv[1]))
