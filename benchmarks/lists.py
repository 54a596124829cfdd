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
            # Lists just loaded, since nobody calls twice: the second call finds every id hashed
            # already. Dicts hash their keys when they are made.
            "karat": Entry(by_karat, texts.load, plan.repetitions),
            "karat again": Entry(by_karat, lambda: ranked, plan.repetitions),
            "pytrec_eval": Entry(by_pytrec_eval, lambda: as_dicts, plan.repetitions),
        }
    )
    again = f"karat called again on the same lists: {least['karat again'] * 1e3:.1f} ms"
    ours, theirs = least["karat"], least["pytrec_eval"]
    return [faster(f"lists-{size}", "pytrec_eval", ours=ours, theirs=theirs, asked=plan.asked, note=again)]


if __name__ == "__main__":
    tell(measure(sys.argv[1]))
