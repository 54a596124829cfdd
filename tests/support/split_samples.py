"""Samples for whatever splits them: every kind of query, some of which share documents."""

from __future__ import annotations

from random import Random

WORDS = ["gold", "silver", "copper", "tin", "lead", "iron", "zinc", "nickel", "cobalt", "chrome"]


def made(queries: int = 41, seed: int = 3) -> list[dict]:
    """Records with ids, texts, documents, scores and meta; some queries without gold, some without retrieved."""
    random = Random(seed)

    def text() -> str:
        return " ".join(random.choices(WORDS, k=random.randrange(3, 9)))

    documents = {f"d{n}": text() for n in range(60)}
    samples = []
    for number in range(queries):
        ranked = random.sample(sorted(documents), random.choice((0, 3, 12, 19)))
        wanted = random.sample(sorted(documents), random.choice((0, 1, 2, 4)))
        samples.append(
            {
                "id": f"q{number}",
                "query": f"question {number}",
                "retrieved": [
                    {
                        "id": name,
                        "text": documents[name].upper(),
                        "doc": f"doc-{name}",
                        "score": round(random.random(), 1),
                    }
                    for name in ranked
                ],
                "gold": [
                    {
                        "id": name,
                        "text": documents[name],
                        "grade": random.choice((0, 1, 2)),
                        "group": random.choice(("a", name)),
                    }
                    for name in wanted
                ],
                "topic": random.choice(("ore", "coin", None)),
            }
        )
    return samples


def saved(run, path) -> bytes:
    """A run as the bytes of its file."""
    run.save(path)
    return path.read_bytes()


def own_judge_source() -> str:
    """A file of the user's: a metric, a judge and a counter of tokens."""
    return '''
"""What somebody defines for themselves."""

import numpy as np

import karat
from karat.judges.protocol import judge as named


@karat.metric
def deep(hits, k, c):
    """The share of ten that came back."""
    return np.broadcast_to(np.minimum(hits.depth, 10) / 10, (len(k), hits.queries)).copy()


@named("initial")
class Initial:
    """The same first letter."""

    name = "initial"

    def __call__(self, samples, convention):
        query, rank, gold = [], [], []
        start = samples.gold.start.tolist()
        depth = []
        for number, texts in enumerate(samples.retrieved.each("text", convention)):
            depth.append(len(texts))
            for place, text in enumerate(texts, 1):
                for item in range(start[number], start[number + 1]):
                    if samples.gold.columns["text"][item][0].lower() == text[0].lower():
                        query.append(number)
                        rank.append(place)
                        gold.append(item)
        ints = lambda values: np.array(values, np.int64)
        of = karat.Gold(list(samples.gold.columns["text"]), samples.gold.start, samples.gold.grade)
        return karat.Hits(ints(query), ints(rank), ints(gold), depth=ints(depth), gold_items=of, why="same letter")


def letters(text):
    """Letters as tokens."""
    return len(text)
'''
