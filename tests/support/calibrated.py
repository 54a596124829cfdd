"""Runs with known judgements, and human labels of them."""

from __future__ import annotations

import numpy as np

import karat
from karat._internal.arrays import starts

METRICS = "recall@2,4 recall_all@4 hit@4 precision@2,4 rr ndcg@4 ap"


class Says:
    """A judge with given answers: pairs of rank and gold item, by query."""

    name = "given"
    needs_gold = False

    def __init__(self, pairs, failed=()):
        self.pairs = pairs
        self.failed = failed

    def __call__(self, samples, convention):
        rows = [
            (q, rank, int(samples.gold.start[q]) + gold)
            for q, query in enumerate(samples.ids)
            for rank, gold in sorted(self.pairs[query])
        ]
        query, rank, gold = np.array(rows, np.int64).reshape(-1, 3).T
        labels = samples.gold.columns["text"]
        return karat.Hits(
            query,
            rank,
            gold,
            depth=np.array([4] * len(samples)),
            gold_items=karat.Gold(labels, samples.gold.start, samples.gold.grade),
            failed={samples.ids.index(query): "timed out" for query in self.failed},
        )


class Grades:
    """A judge without gold: it grades each of the four retrieved items."""

    name = "graded"
    needs_gold = False

    def __init__(self, grades):
        self.grades = grades

    def __call__(self, samples, convention):
        size = len(samples)
        return karat.Hits(
            np.repeat(np.arange(size), 4),
            np.tile(np.arange(1, 5), size),
            np.arange(4 * size),
            depth=np.full(size, 4),
            gold_items=karat.Gold(
                [f"{query} text {rank}" for query in samples.ids for rank in range(1, 5)],
                starts(np.full(size, 4)),
                np.concatenate([self.grades[query] for query in samples.ids]).astype(float),
                incomplete=True,
            ),
        )


def data(seed=1, queries=60, claims=3):
    """Samples, human judgements, and those of a judge with few misses and some false alarms."""
    rng = np.random.default_rng(seed)
    ids = [f"q{i}" for i in range(queries)]
    people, judge = {}, {}
    for query in ids:
        cells = [(rank, claim) for rank in range(1, 5) for claim in range(claims)]
        likely = rng.beta(1, 2)
        people[query] = {cell for cell in cells if rng.random() < likely}
        judge[query] = {cell for cell in cells if rng.random() < (0.9 if cell in people[query] else 0.15)}
    samples = [
        {"id": query, "retrieved": [f"t{i}" for i in range(4)], "gold": [f"{query} claim {i}" for i in range(claims)]}
        for query in ids
    ]
    return samples, people, judge


def evaluated(samples, pairs, metrics=METRICS, **kwargs):
    return karat.evaluate(samples, metrics, judge=Says(pairs, **kwargs))


def labels_of(samples, people, kind, some):
    """Every label of some queries."""
    rows = []
    for sample in samples[:some]:
        query = sample["id"]
        found = {gold for _, gold in people[query]}
        relevant = {rank for rank, _ in people[query]}
        if kind == "gold":
            rows += [{"query_id": query, "gold": g, "label": int(i in found)} for i, g in enumerate(sample["gold"])]
        elif kind == "rank":
            rows += [{"query_id": query, "rank": r, "label": int(r in relevant)} for r in range(1, 5)]
        else:
            rows += [
                {"query_id": query, "rank": r, "gold": g, "label": int((r, i) in people[query])}
                for r in range(1, 5)
                for i, g in enumerate(sample["gold"])
            ]
    return rows


DETERMINED = {
    "gold": ["recall@4", "recall_all@4", "hit@4"],
    "rank": ["hit@4", "precision@2", "precision@4", "rr"],
    "pair": ["recall@2", "recall@4", "recall_all@4", "hit@4", "precision@2", "precision@4", "rr", "ndcg@4", "ap"],
}
