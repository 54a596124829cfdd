"""Labels until a difference is known, simulated: random order, a judge, the weight of a label, and its uncertainty.

    python -m benchmarks.label_choice                    # print the tables
    python -m benchmarks.label_choice --write            # and write them into docs/label-order.md
    python -m benchmarks.label_choice --repetitions 50   # fewer than 500 repetitions
    python -m benchmarks.label_choice --seed 22          # other worlds

Two retrievers share about 80 % of each top 10. They rank by the quality of an item plus noise, so relevance depends on
the rank; queries differ in how many relevant items they have. The judge grades 0 to 3 and agrees with the truth, which
is relevant from grade 2 on, by Cohen's kappa. Every repetition is a new world. A person labels, the interval is looked
at after every 10 labels (less often while it is far too wide), and the work stops once its half-width is at most 0.02.

The second table looks at both intervals 15 times until all is labelled, whatever they say.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.gold.choice import Design, design
from karat.gold.label_estimate import FEWEST, DifferenceEstimate, estimate

PAGE = Path(__file__).parents[1] / "docs" / "label-order.md"
KAPPAS = (None, 0.3, 0.53, 0.7)
QUERIES = (200, 50)
ORDERS = ("random", "weight", "weight × uncertainty")
SIZES = (50, 150)
"""Fixed numbers of labels at which coverage is counted, too."""
METRIC, HALF = "precision(rel=2)@10", 0.02
LOOKED = (
    (METRIC, 200, 0.53, 0.0), (METRIC, 50, 0.53, 0.0), (METRIC, 20, None, 0.0), (METRIC, 50, None, -3.5),
    ("recall(rel=2)@5", 200, 0.53, 0.0), ("recall(rel=2)@5", 50, None, -2.0), ("ndcg@10", 50, 0.53, 0.0),
    ("hit(rel=2)@5", 50, None, -2.0), ("rr(rel=2)@10", 50, 0.53, 0.0),
)  # fmt: skip
"""Cases of the second table: metric, queries, kappa, and the shift of the logit of being relevant."""
SEED = 21
_CANDIDATES, _TOP, _NOISE, _EVERY = 30, 10, 4.0, 10
_LOOKS, _ROUNDING = 15, 1e-9


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
    grade: Floats = np.where(drawn, 2.0, 0.0) + (rng.random(drawn.shape) < 0.5)
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


class Labelling(NamedTuple):
    """One labelling from the first label to the stop."""

    labels: int
    stopped: DifferenceEstimate
    at: tuple[DifferenceEstimate, ...]
    truth: float


def labelled(rng: np.random.Generator, seen: World, made: Design, order: str) -> Labelling:
    """Label in this order until the interval is narrow enough."""
    pairs = made.order()
    truth = float(made.contributions(seen.grade)[0].sum()) / made.queries
    # In random order, the pairs that cannot matter are asked for too: the turn of each pair that can.
    others = len(made.query) - len(pairs) if order == "random" else 0
    turn = np.sort(rng.permutation(len(pairs) + others)[: len(pairs)]) + 1

    def after(labels: int) -> DifferenceEstimate:
        count = int(np.searchsorted(turn, labels, side="right"))
        return estimate(made, pairs[:count], seen.grade[pairs[:count]], tolerance=HALF)

    every = len(pairs) + others
    labels, found = _EVERY, after(_EVERY)
    while (half := (found.high - found.low) / 2) > HALF and labels < every:
        reached = 1 / (1 / every + (1 / labels - 1 / every) * (HALF / half) ** 2)
        labels = max(labels + _EVERY, int(0.7 * reached / _EVERY) * _EVERY)
        found = after(labels)
    return Labelling(min(labels, every), found, tuple(after(size) for size in SIZES), truth)


class Row(NamedTuple):
    """A row of the first table: means over the repetitions."""

    queries: int
    kappa: float | None
    order: str
    pool: float
    labels: float
    covers: float
    at: tuple[float, ...]
    total: float


def covers(found: DifferenceEstimate, truth: float) -> bool:
    """True if the interval contains the truth."""
    return found.low - _ROUNDING <= truth <= found.high + _ROUNDING


def simulate(queries: int, kappa: float | None, order: str, repetitions: int, seed: int = SEED) -> Row:
    """Repeat the labelling in new worlds; the same worlds for every order."""
    done, pools = [], []
    for number in range(repetitions):
        rng = np.random.default_rng([seed, queries, number])
        seen = world(rng, queries)
        opinion = judged(rng, seen.relevant, kappa)
        made = design(METRIC, *seen.ranks, query=seen.query, queries=queries, opinion=opinion, seed=number)
        done.append(labelled(rng, seen, ordered(made, order), order))
        pools.append(len(seen.query))
    mean = float(np.mean([one.truth for one in done]))
    return Row(
        queries, kappa, order, float(np.mean(pools)), float(np.mean([one.labels for one in done])),
        float(np.mean([covers(one.stopped, one.truth) for one in done])),
        tuple(float(np.mean([covers(one.at[i], one.truth) for one in done])) for i in range(len(SIZES))),
        float(np.mean([one.stopped.total.low <= mean <= one.stopped.total.high for one in done])),
    )  # fmt: skip


def first_repetitions() -> str:
    """A sentence on the first repetitions: it is out of date if the tables are, and a test computes it again."""
    row = simulate(50, None, ORDERS[-1], 20)
    return f"The first 20 repetitions with 50 queries, no judge and weight × uncertainty need {row.labels:.1f} labels."


class Looked(NamedTuple):
    """A row of the second table: a person looks after every few labels."""

    metric: str
    queries: int
    kappa: float | None
    relevant: float
    plain: float
    """The share of repetitions in which the interval covers at every look."""
    always: float
    """The same of the interval that always holds, from the fewest units on with which something is decided."""
    covers: float
    """The share in which the interval covers once it is narrow enough."""
    decided: float
    """The share in which something was decided before everything was labelled."""
    wrong: float
    """The share in which that is wrong."""
    labels: float
    """The labels until then, as a share of all."""


def look(metric: str, queries: int, kappa: float | None, shift: float, repetitions: int, seed: int = SEED) -> Looked:
    """Look at the intervals until all is labelled."""
    half = HALF if metric.startswith("precision") else 2.5 * HALF
    outcomes, shares = [], []
    for number in range(repetitions):
        rng = np.random.default_rng([seed, queries, number])
        seen = world(rng, queries, shift=shift)
        opinion = judged(rng, seen.relevant, kappa)
        made = design(metric, *seen.ranks, query=seen.query, queries=queries, opinion=opinion, seed=number)
        pairs, truth = made.order(), float(made.contributions(seen.grade)[0].sum()) / queries
        looks = [
            estimate(made, pairs[:count], seen.grade[pairs[:count]], tolerance=half)
            for count in range(len(pairs) // _LOOKS, len(pairs), len(pairs) // _LOOKS)
        ]
        enough = [one for one in looks if one.drawn >= FEWEST]
        always = [one.always_low - _ROUNDING <= truth <= one.always_high + _ROUNDING for one in enough]
        narrow = next((one for one in looks if (one.high - one.low) / 2 <= half), None)
        claim = next((one for one in looks if one.stop in ("decided", "equal")), None)
        false = claim is not None and (claim.difference * truth <= 0 if claim.stop == "decided" else abs(truth) > half)
        outcomes.append(
            (all(covers(one, truth) for one in looks), all(always), narrow is None or covers(narrow, truth),
             claim is not None, false)
        )  # fmt: skip
        shares.append((seen.relevant.mean(), claim.labels / len(pairs) if claim else 1.0))
    plain, always_, narrow_, decided, wrong = (float(mean) for mean in np.mean(outcomes, axis=0))
    relevant, labels = (float(mean) for mean in np.mean(shares, axis=0))
    return Looked(metric, queries, kappa, relevant, plain, always_, narrow_, decided, wrong, labels)


def first_table(found: Sequence[Row]) -> str:
    """Labels and coverage of every order."""
    head = ["queries", "judge's kappa", "order", "labels to ±0.02", "of random order", "interval covers at the stop",
            *(f"at {size} labels" for size in SIZES), "total interval covers"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in found:
        base = next(one for one in found if (one.queries, one.kappa, one.order) == (row.queries, row.kappa, "random"))
        kappa = "no judge" if row.kappa is None else f"{row.kappa:g}"
        shares = [row.labels / base.labels, row.covers, *row.at, row.total]
        cells = [str(row.queries), kappa, row.order, f"{row.labels:.0f}", *(f"{100 * one:.1f} %" for one in shares)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def second_table(found: Sequence[Looked]) -> str:
    """Looking after every few labels."""
    head = ["metric", "queries", "judge's kappa", "relevant items", "interval covers when it is narrow enough",
            "covers at all looks", "the one that always holds does", "decided early", "wrongly", "labels"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in found:
        kappa = "no judge" if row.kappa is None else f"{row.kappa:g}"
        shares = [row.relevant, row.covers, row.plain, row.always, row.decided, row.wrong, row.labels]
        cells = [f"`{row.metric}`", str(row.queries), kappa, *(f"{100 * one:.1f} %" for one in shares)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write(name: str, made: str) -> None:
    """Put a table between its comments on the page."""
    text = PAGE.read_text("utf-8")
    pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    PAGE.write_text(re.sub(pattern, lambda part: f"{part[1]}{made}\n{part[2]}", text, flags=re.DOTALL), "utf-8")


def main() -> None:
    """Print both tables; with --write, put them into the page."""
    parser = ArgumentParser(prog="python -m benchmarks.label_choice")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/label-order.md")
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=SEED, help="the seed of the worlds")
    options = parser.parse_args()
    cases = [(queries, kappa, order) for queries in QUERIES for kappa in KAPPAS for order in ORDERS]
    with ProcessPoolExecutor(2) as workers:
        rows = [workers.submit(partial(simulate, *case), options.repetitions, options.seed) for case in cases]
        looks = [workers.submit(partial(look, *case), options.repetitions, options.seed) for case in LOOKED]
        tables = {"label-order": first_table([row.result() for row in rows])}
        tables["label-looks"] = second_table([row.result() for row in looks])
    tables["label-check"] = first_repetitions()
    for name, made in tables.items():
        print(f"{made}\n")
        if options.write:
            write(name, made)


if __name__ == "__main__":
    main()
