"""Random queries for karat and its peers: ranked lists with copies, scores with ties, and all that is rare in both."""

from __future__ import annotations

import random
from typing import NamedTuple

KS = (1, 2, 3, 5, 10)
COUNT = 540
"""Queries of a suite."""
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 10, 12, 15, 16, 17, 25, 40)
POOL = [f"d{number}" for number in range(60)]


class Case(NamedTuple):
    """One query."""

    id: str
    gold: dict[str, int]
    retrieved: list[str]
    scores: list[float] | None = None

    @property
    def tied(self):
        """Whether equal scores leave the order open; single precision is what some peers compare in."""
        return self.scores is not None and len(set(map(_single, self.scores))) < len(self.scores)

    @property
    def relevant(self):
        return {doc for doc, grade in self.gold.items() if grade > 0}


def _single(score):
    """Roughly: what differs here differs in single precision too."""
    return round(score, 5)


def ranked():
    """Best first, without scores: every third list holds copies."""
    rng = random.Random(40)
    cases = []
    for number in range(COUNT):
        retrieved = rng.sample(POOL, rng.choice(SIZES))
        if retrieved and number % 3 == 0:
            retrieved = rng.choices(retrieved[: rng.randint(1, 8)], k=len(retrieved) + 1)
        cases.append(Case(f"r{number}", _gold(rng, retrieved, (0, 1, 1, 2, 3)), retrieved))
    return cases


def scored():
    """Every doc once, in any order; many ties, scores below zero, and sometimes the query itself among its docs."""
    rng = random.Random(41)
    ways = (
        lambda: float(rng.randint(0, 3)),
        lambda: float(rng.randint(-3, 3)),
        lambda: rng.uniform(0.1, 9.0),
        lambda: rng.uniform(-9.0, 9.0),
        lambda: rng.uniform(-9.0, -0.1),
        lambda: rng.choice((1.0, 1.00000001, 2.0)),
    )
    cases = []
    for number in range(COUNT):
        score = ways[number % len(ways)]
        retrieved = rng.sample(POOL, rng.choice(SIZES))
        if retrieved and number % 20 == 7:
            retrieved[rng.randrange(len(retrieved))] = f"s{number}"
        gold = _gold(rng, retrieved, (-1, 0, 1, 1, 2, 3))
        cases.append(Case(f"s{number}", gold, retrieved, [score() for _ in retrieved]))
    return cases


def _gold(rng, retrieved, grades):
    """Some of what was retrieved and some of what was not; now and then nothing, or nothing relevant."""
    kind = rng.random()
    if kind < 0.06:
        return {}
    found = sorted(set(retrieved))
    some = rng.sample(found, rng.randint(0, min(len(found), 6)))
    missed = sorted(set(POOL) - set(found))
    some += rng.sample(missed, min(len(missed), rng.choice((0, 1, 2, 4, 15))))
    some = some or [rng.choice(POOL)]
    rng.shuffle(some)
    return dict.fromkeys(some, 0) if kind < 0.12 else {doc: rng.choice(grades) for doc in some}


SUITES = {"ranked": ranked, "scored": scored}

# ---- what a peer cannot bear, or cannot be told ---------------------------------------------------------------------


def without_copies(case):
    """For a peer that takes {doc: score}: each doc once, where it first stood."""
    retrieved = list(dict.fromkeys(case.retrieved))
    return case._replace(retrieved=retrieved, scores=case.scores and case.scores[: len(retrieved)])


def without_negative_grades(case):
    return case._replace(gold={doc: grade for doc, grade in case.gold.items() if grade >= 0})


def bearable_for_pytrec_eval(case):
    """Given empty rankings or only negative grades, bpref of 0.5.11 crashes, and nDCG without a k may not end."""
    return case if case.retrieved and max(case.gold.values(), default=0) >= 0 else None


def without_gold_of_only_negative_grades(case):
    return case if max(case.gold.values(), default=0) >= 0 else None
