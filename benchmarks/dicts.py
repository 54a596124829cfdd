"""Dicts of scores against dicts of grades: karat, pytrec_eval and ranx on the same two dicts."""

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
    over_pytrec_eval: float
    over_ranx: float


PLANS = {"W2": Plan(7, 3, 5, 20), "W3": Plan(5, 1, 12, 30)}


def measure(size: str) -> list[Outcome]:
    """Compare karat with both peers."""
    plan = PLANS[size]
    data = workloads.dicts(workloads.SIZES[size])
    check_agreement(by_karat(data), by_pytrec_eval(data), data.gold)
    warm_up_ranx()
    least = best(
        {
            "karat": Entry(by_karat, lambda: data, plan.repetitions),
            "pytrec_eval": Entry(by_pytrec_eval, lambda: data, plan.repetitions),
            "ranx": Entry(by_ranx, lambda: data, plan.ranx_repetitions),
        }
    )
    targets = {"pytrec_eval": plan.over_pytrec_eval, "ranx": plan.over_ranx}
    return [
        speedup(f"dicts-{size}", peer, ours=least["karat"], theirs=least[peer], target=target)
        for peer, target in targets.items()
    ]


if __name__ == "__main__":
    write_outcomes(measure(sys.argv[1]))
