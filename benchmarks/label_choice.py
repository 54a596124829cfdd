"""Labels until a difference is known, simulated: random order, a judge, the weight of a label, and its uncertainty.

    python -m benchmarks.label_choice                    # print the tables
    python -m benchmarks.label_choice --write            # and write them into docs/label.md
    python -m benchmarks.label_choice --repetitions 50   # fewer than 500 repetitions

Two retrievers share about 80 % of each top 10. They rank by the quality of an item plus noise, so relevance depends on
the rank; queries differ in how many relevant items they have. The judge grades 0 to 3 and agrees with the truth, which
is relevant from grade 2 on, by Cohen's kappa. Every repetition is a new world. A person labels, the interval is looked
at after every 10 labels, and the work stops once its half-width is at most 0.02.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.gold.choice import Design, design
from karat.gold.label_estimate import DifferenceEstimate, estimate

PAGE = Path(__file__).parents[1] / "docs" / "label.md"
KAPPAS = (None, 0.3, 0.53, 0.7)
QUERIES = (200, 50)
ORDERS = ("random", "weight", "weight × uncertainty")
SIZES = (50, 150)
"""Fixed numbers of labels at which coverage is counted, too."""
METRIC, HALF = "precision(rel=2)@10", 0.02
_CANDIDATES, _TOP, _NOISE, _EVERY, _SEED = 30, 10, 4.0, 10, 21


class World(NamedTuple):
    """The pool of two runs, with the truth."""

    ranks: Ints
    query: Ints
    grade: Floats

    @property
    def relevant(self) -> Bools:
        """Flags of the relevant pairs."""
        return self.grade >= 2


def world(rng: np.random.Generator, queries: int, *, shift: float = 0.0, gap: float = 0.25) -> World:
    """A new world; `shift` makes relevant items rarer or more frequent, `gap` the second run better."""
    place = np.arange(_CANDIDATES)[None, :]
    noise = rng.standard_normal((2, queries, _CANDIDATES)) * _NOISE * np.array([1 + gap, 1 - gap])[:, None, None]
    order = np.argsort(place + noise, axis=2)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(1, _CANDIDATES + 1), order.shape), axis=2)
    rank[rank > _TOP] = 0
    ease = rng.standard_normal((queries, 1))
    chance = 1 / (1 + np.exp(-(1.2 - 0.22 * place + ease + shift)))
    drawn = rng.random((queries, _CANDIDATES)) < chance
    grade = 2.0 * drawn + (rng.random(drawn.shape) < 0.5)
    held = (rank > 0).any(axis=0)
    return World(rank[:, held], np.nonzero(held)[0], grade[held])


def judged(rng: np.random.Generator, relevant: Bools, kappa: float | None) -> Floats | None:
    """The grades of a judge with this kappa: its errors are equally frequent on both sides, and surer if right."""
    if kappa is None:
        return None
    share = float(relevant.mean())
    errors = np.linspace(0, 0.5, 2001)
    says = share * (1 - errors) + (1 - share) * errors
    chance = share * says + (1 - share) * (1 - says)
    error = errors[np.abs((1 - errors - chance) / (1 - chance) - kappa).argmin()]
    wrong = rng.random(len(relevant)) < error
    sure = rng.random(len(relevant)) < np.where(wrong, 0.3, 0.6)
    return np.where(relevant != wrong, np.where(sure, 3.0, 2.0), np.where(sure, 0.0, 1.0))


def ordered(made: Design, order: str) -> Design:
    """The design with the sizes of this order; in random order, all pairs of the pool have the same."""
    if order == "weight × uncertainty":
        return made
    size = np.abs(made.weights[0]) if order == "weight" else np.ones(len(made.query))
    return replace(made, first_size=size)


class Path_(NamedTuple):
    """One labelling from the first label to the stop."""

    labels: int
    stopped: DifferenceEstimate
    at: tuple[DifferenceEstimate, ...]
    truth: float


def labelled(rng: np.random.Generator, seen: World, made: Design, order: str, *, every: int = _EVERY) -> Path_:
    """Label in this order until the interval is narrow enough."""
    pairs = made.order()
    truth = float(made.contributions(seen.grade)[0].sum()) / made.queries
    # In random order, the pairs that cannot matter are asked for too: the share of them among the first labels.
    others = len(made.query) - len(pairs) if order == "random" else 0
    turn = np.sort(rng.permutation(len(pairs) + others)[: len(pairs)]) + 1
    at = []
    for size in SIZES:
        count = int(np.searchsorted(turn, size, side="right"))
        at.append(estimate(made, pairs[:count], seen.grade[pairs[:count]]))
    for labels in range(every, len(pairs) + others + every, every):
        count = int(np.searchsorted(turn, labels, side="right"))
        found = estimate(made, pairs[:count], seen.grade[pairs[:count]])
        if (found.high - found.low) / 2 <= HALF or count == len(pairs):
            break
    return Path_(min(labels, len(pairs) + others), found, tuple(at), truth)


class Row(NamedTuple):
    """A row of the table: means over the repetitions."""

    queries: int
    kappa: float | None
    order: str
    labels: float
    covers: float
    at: tuple[float, ...]
    pool: float
    total: float


def covers(found: DifferenceEstimate, truth: float) -> bool:
    """True if the interval contains the truth."""
    return found.low - 1e-12 <= truth <= found.high + 1e-12


def simulate(queries: int, kappa: float | None, order: str, repetitions: int) -> Row:
    """Repeat the labelling in new worlds; the same worlds for every order."""
    paths, pools = [], []
    for number in range(repetitions):
        rng = np.random.default_rng([_SEED, queries, number])
        seen = world(rng, queries)
        opinion = judged(rng, seen.relevant, kappa)
        made = design(METRIC, *seen.ranks, query=seen.query, queries=queries, opinion=opinion, seed=number)
        paths.append(labelled(rng, seen, ordered(made, order), order))
        pools.append(len(seen.query))
    centre = float(np.mean([path.truth for path in paths]))
    return Row(
        queries, kappa, order, float(np.mean([path.labels for path in paths])),
        float(np.mean([covers(path.stopped, path.truth) for path in paths])),
        tuple(float(np.mean([covers(path.at[i], path.truth) for path in paths])) for i in range(len(SIZES))),
        float(np.mean(pools)),
        float(np.mean([path.stopped.total_low <= centre <= path.stopped.total_high for path in paths])),
    )  # fmt: skip


def rows(repetitions: int) -> Iterator[Row]:
    """Every case."""
    for queries in QUERIES:
        for kappa in KAPPAS:
            for order in ORDERS:
                yield simulate(queries, kappa, order, repetitions)


if __name__ == "__main__":
    parser = ArgumentParser(prog="python -m benchmarks.label_choice")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--repetitions", type=int, default=500)
    options = parser.parse_args()
    for row in rows(options.repetitions):
        print(row, flush=True)
