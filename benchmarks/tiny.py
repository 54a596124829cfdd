"""Ten queries with twenty ids each, as dicts of scores and as lists: the fixed cost of a call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from statistics import median

from benchmarks import workloads
from benchmarks.outcome import Outcome, slowdown, write_outcomes
from benchmarks.peers import by_karat, by_pytrec_eval, check_agreement
from benchmarks.timing import Entry, best

# pytrec_eval searches a set of its measures for each requested name. The search time depends on the order of the set,
# so on the hash seed of the process, and is up to half of the total here.
_SEEDS = range(1, 16)
_REPETITIONS = 1_000
_TARGET = 1.5
_PEERS = {"dicts": "pytrec_eval", "lists": "pytrec_eval, lists"}


def measure() -> list[Outcome]:
    """Compare karat with pytrec_eval: the median over hash seeds of the best call."""
    least = [_in_a_process(seed) for seed in _SEEDS]
    return [_outcome(form, [times[form] for times in least]) for form in _PEERS]


def _outcome(form: str, least: list[dict[str, float]]) -> Outcome:
    ours = median(times["karat"] for times in least)
    theirs = median(times["pytrec_eval"] for times in least)
    ratios = sorted(times["karat"] / times["pytrec_eval"] for times in least)
    note = f"{ratios[0]:.2f} to {ratios[-1]:.2f}, depending on the hash seed of the process"
    return slowdown("tiny", _PEERS[form], ours=ours, theirs=theirs, target=_TARGET, note=note)


def _in_a_process(seed: int) -> dict[str, dict[str, float]]:
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-m", "benchmarks.tiny", "one-seed"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    times: dict[str, dict[str, float]] = json.loads(done.stdout)
    return times


def _one_seed() -> dict[str, dict[str, float]]:
    """The best call of each for each form of the data, after a warm-up. pytrec_eval gets lists as dicts of scores."""
    scored = workloads.dicts(workloads.SIZES["tiny"])
    ranked = workloads.lists(scored)
    return {"dicts": _least(scored, scored), "lists": _least(ranked, workloads.with_scores(ranked))}


def _least(data: workloads.Data, theirs: workloads.Data) -> dict[str, float]:
    check_agreement(by_karat(data), by_pytrec_eval(theirs), data.gold)
    return best(
        {
            "karat": Entry(by_karat, lambda: data, _REPETITIONS),
            "pytrec_eval": Entry(by_pytrec_eval, lambda: theirs, _REPETITIONS),
        },
        collect=False,  # collecting takes longer than the call and empties the CPU caches
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(_one_seed()))
    else:
        write_outcomes(measure())
