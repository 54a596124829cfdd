"""Dicts of scores against dicts of grades: karat, pytrec_eval and ranx on the same two dicts.

The items of a dict are in rank order, as retrievers and TREC files have them, or shuffled: then every score is looked
for in cold memory. In both, ids are hashed, as they are in every dict.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from benchmarks import workloads
from benchmarks.outcome import Outcome, speedup, write_outcomes
from benchmarks.peers import by_karat, by_pytrec_eval, by_ranx, check_agreement, warm_up_ranx
from benchmarks.timing import Entry, best


class Plan(NamedTuple):
    """Repetitions, and the target speedups."""

    repetitions: int
    ranx_repetitions: int
    ranked: float
    shuffled: float
    over_ranx: float


PLANS = {"W2": Plan(15, 3, 5.5, 5, 20), "W3": Plan(5, 1, 16, 12, 30)}


def measure(size: str) -> list[Outcome]:
    """Compare karat with pytrec_eval in both orders, and with ranx in one."""
    plan, shuffled = PLANS[size], workloads.dicts(workloads.SIZES[size])
    warm_up_ranx()
    outcomes = _compare(size, "shuffled", shuffled, {"pytrec_eval": plan.shuffled, "ranx": plan.over_ranx})
    ranked = workloads.in_rank_order(shuffled)
    del shuffled
    return [*outcomes, *_compare(size, "in rank order", ranked, {"pytrec_eval": plan.ranked})]


def _compare(size: str, order: str, data: workloads.Data, targets: dict[str, float]) -> list[Outcome]:
    """Compare karat with the peers that have a target."""
    plan = PLANS[size]
    check_agreement(by_karat(data), by_pytrec_eval(data), data.gold)
    entries = {
        "karat": Entry(by_karat, lambda: data, plan.repetitions),
        "pytrec_eval": Entry(by_pytrec_eval, lambda: data, plan.repetitions),
        "ranx": Entry(by_ranx, lambda: data, plan.ranx_repetitions),
    }
    least = best({name: entry for name, entry in entries.items() if name in ("karat", *targets)})
    return [
        speedup(f"dicts-{size}", peer, ours=least["karat"], theirs=least[peer], target=target, note=f"items {order}")
        for peer, target in targets.items()
    ]


if __name__ == "__main__":
    write_outcomes(measure(sys.argv[1]))
