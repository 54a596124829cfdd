"""Choosing the best of many settings, simulated: false winners, the truly best that is kept, and coverage.

    python -m benchmarks.selection            # print the table
    python -m benchmarks.selection --write    # and write it into docs/sweep.md

Scores are 0 and 1. Settings share a part of their randomness with each other, as settings of one retriever do: a query
that is hard for one is hard for the others. `equal` settings all have the mean 0.6; `graded` ones are from 0.5 to 0.7.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np

from karat._internal.arrays import Floats
from karat.stats import intervals
from karat.stats.selection import select_best

PAGE = Path(__file__).parents[1] / "docs" / "sweep.md"
CASES = [(count, queries, shared) for count in (2, 6, 18) for queries in (30, 100) for shared in (0.0, 0.8)]
MEANS = {"equal": (0.6, 0.6), "graded": (0.7, 0.5)}
_TIMES, _FLIPS, _SEED = 600, 2_000, 18


def scores(rng: np.random.Generator, queries: int, means: Floats, shared: float) -> Floats:
    """Scores of 0 and 1 with these means; `shared` is the correlation of what decides them."""
    common, own = rng.standard_normal((queries, 1)), rng.standard_normal((queries, len(means)))
    cuts = np.array([NormalDist().inv_cdf(mean) for mean in means])
    drawn: Floats = (np.sqrt(shared) * common + np.sqrt(1 - shared) * own < cuts).astype(float)
    return drawn


def simulate(count: int, queries: int, shared: float, ends: tuple[float, float]) -> list[float]:
    """The shares of simulations in which each claim holds, and the mean errors of the two means of the winner.

    The claims: one setting is called the winner; the best one may be best; the interval covers; the plain one does.
    """
    rng, means = np.random.default_rng(_SEED), np.linspace(*ends, count)
    found = []
    for _ in range(_TIMES):
        drawn = scores(rng, queries, means, shared)
        chosen = select_best(drawn, flips=_FLIPS)
        truth, plain = means[chosen.winner], intervals({"": drawn[:, chosen.winner]})[""]
        found.append(
            (
                sum(chosen.possible) == 1, chosen.possible[0], chosen.interval.low <= truth <= chosen.interval.high,
                plain.low <= truth <= plain.high, chosen.mean - truth, chosen.held_out - truth,
            )
        )  # fmt: skip
    return [float(value) for value in np.mean(found, axis=0)]


def table() -> str:
    """The table in Markdown."""
    header = ["settings", "queries", "correlation", "means", "one winner", "best kept", "interval covers",
              "plain interval covers", "winner's mean", "held-out mean"]  # fmt: skip
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    for count, queries, shared in CASES:
        for name, ends in MEANS.items():
            *shares, naive, held_out = simulate(count, queries, shared, ends)
            cells = [str(count), str(queries), f"{shared:g}", name, *(f"{100 * one:.1f} %" for one in shares)]
            lines.append(f"| {' | '.join([*cells, f'{naive:+.3f}', f'{held_out:+.3f}'])} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    made = table()
    if "--write" in sys.argv:
        text = PAGE.read_text("utf-8")
        pattern = r"(<!-- selection -->\n).*?(<!-- /selection -->)"
        PAGE.write_text(re.sub(pattern, lambda part: f"{part[1]}{made}\n{part[2]}", text, flags=re.DOTALL), "utf-8")
