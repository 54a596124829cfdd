"""Runs of two legs, a better one and a worse one."""

from __future__ import annotations

import random

import karat


def two_legs(queries=100, seed=5):
    """A better leg and a worse one; both rank the gold item high if they retrieve it, and differ in the others."""
    rng = random.Random(seed)
    gold = {f"q{n}": ["gold"] for n in range(queries)}
    legs = []
    for found in (0.9, 0.7):
        leg = {}
        for query in gold:
            leg[query] = {f"d{i}": rng.random() for i in rng.sample(range(30), 8)}
            if rng.random() < found:
                leg[query]["gold"] = rng.uniform(0.6, 1.2)
        legs.append(leg)
    return [karat.evaluate(retrieved=leg, gold=gold, metrics="recall@1,3 rr") for leg in legs]
