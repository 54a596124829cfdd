"""Runs to compare: retrievers that find their gold items more or less often."""

from __future__ import annotations

import random

import karat

METRICS = "recall@5 ndcg@10 rr"


def rows(found, queries=60, seed=0):
    """Queries of two gold items, each of which is retrieved with this chance, among ten others."""
    rng = random.Random(seed)
    made = []
    for i in range(queries):
        items = [f"x{j}" for j in range(10)]
        for gold in ("a", "b"):
            if rng.random() < found:
                items.insert(rng.randrange(8), gold)
        made.append({"id": f"q{i}", "query": f"what is {i}?", "retrieved": items, "gold": ["a", "b"]})
    return made


def run(found=0.5, metrics=METRICS, seed=0, queries=60, **settings):
    return karat.evaluate(rows(found, queries, seed), metrics, judge="ids", **settings)


def one(retrieved, gold=("a",), query_id="q", metrics=METRICS):
    return karat.evaluate([{"id": query_id, "retrieved": retrieved, "gold": list(gold)}], metrics, judge="ids")
