"""Workloads: seeded results and gold, in memory as after loading a file."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

_SEED = 20
_IDS = range(100_000, 1_000_000)  # all ids have one length: ranx compiles again for each length
_MOST_GOLD = 20
_FOUND = 0.6
_GRADES = range(4)


class Size(NamedTuple):
    """The number of queries, and of retrieved items per query."""

    queries: int
    depth: int


SIZES = {
    "tiny": Size(10, 20),
    "W1": Size(1_000, 100),
    "W2": Size(10_000, 100),
    "W3": Size(10_000, 1_000),
}


class Data(NamedTuple):
    """Results and gold by query: dicts of scores and grades, or lists of ids."""

    run: dict[str, Any]
    gold: dict[str, Any]


class Texts(NamedTuple):
    """The data as JSON, to load fresh copies."""

    run: str
    gold: str

    def load(self) -> Data:
        """A fresh copy: Python caches the hash of a string."""
        return Data(json.loads(self.run), json.loads(self.gold))

    def save(self, folder: Path) -> tuple[Path, Path]:
        """Write both files for another process."""
        run, gold = folder / "run.json", folder / "gold.json"
        run.write_text(self.run, encoding="ascii")
        gold.write_text(self.gold, encoding="ascii")
        return run, gold


def dicts(size: Size) -> Data:
    """Unordered items with scores, and up to 20 gold items with grades from 0 to 3 per query."""
    random = Random(_SEED)
    run: dict[str, dict[str, float]] = {}
    gold: dict[str, dict[str, int]] = {}
    for number in range(size.queries):
        count = random.randint(1, _MOST_GOLD)
        ids = [f"doc{i}" for i in random.sample(_IDS, count + size.depth)]
        relevant, others = ids[:count], ids[count:]
        found = [item for item in relevant if random.random() < _FOUND]
        retrieved = found + others[: size.depth - len(found)]
        random.shuffle(retrieved)
        run[f"q{number}"] = {item: random.random() for item in retrieved}
        gold[f"q{number}"] = {item: random.choice(_GRADES) for item in relevant}
    # Loading a copy while the original is alive fills fresh memory, as after reading a file.
    return as_json(Data(run, gold)).load()


def in_rank_order(scored: Data) -> Data:
    """The same data as a retriever returns it: the items of each query from the best score to the worst."""
    run = {query: dict(sorted(items.items(), key=_by_score, reverse=True)) for query, items in scored.run.items()}
    return as_json(Data(run, scored.gold)).load()


def _by_score(item: tuple[str, float]) -> float:
    return item[1]


def lists(scored: Data) -> Data:
    """The same data without scores: items best first, and the relevant items."""
    run = {query: sorted(items, key=items.__getitem__, reverse=True) for query, items in scored.run.items()}
    gold = {query: [item for item, grade in items.items() if grade] for query, items in scored.gold.items()}
    return as_json(Data(run, gold)).load()


def with_scores(ranked: Data) -> Data:
    """Ranked lists as dicts for peers that accept nothing else: descending scores, grade 1."""
    run = {
        query: {item: float(len(items) - rank) for rank, item in enumerate(items)}
        for query, items in ranked.run.items()
    }
    gold = {query: dict.fromkeys(items, 1) for query, items in ranked.gold.items()}
    return as_json(Data(run, gold)).load()


def as_json(data: Data) -> Texts:
    """Results and gold, each as JSON text."""
    return Texts(json.dumps(data.run), json.dumps(data.gold))
