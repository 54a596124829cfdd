"""REMem's metrics on conversations: karat against nested loops over the definitions, with equal scores.

10,000 examples of 20 chunks of 1,000 characters and 2 gold documents; three metrics at four k. The nested loops
apply the definitions literally.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import log2
from random import Random
from typing import Any, NamedTuple

from benchmarks.outcome import Outcome, speedup, write_outcomes
from benchmarks.prose import passage
from benchmarks.timing import Entry, best

_SEED = 20
_EXAMPLES = 10_000
_DEPTH = 20
_CHUNK = 1_000
_MESSAGES = 6
_POOL = 5_000_000
_FROM_EACH = (0, 3)
_PLAIN = 5
_KS = [1, 5, 10, 20]

_REPETITIONS = 5
_LOOP_REPETITIONS = 2
_TARGET = 10

Scores = dict[str, float]
Metric = Callable[[list[str], list[str], int], float]


class Memory(NamedTuple):
    """Gold documents and retrieved chunks, one list per example."""

    gold: list[list[str]]
    retrieved: list[list[str]]


def measure() -> list[Outcome]:
    """Compare the three metrics of REMem."""
    text = json.dumps(memories(_EXAMPLES))

    def load() -> Memory:
        """A fresh copy: Python caches the hash of a string."""
        return Memory(*json.loads(text))

    check(load())
    entries = {"karat": Entry(by_karat, load, _REPETITIONS), "loops": Entry(by_loops, load, _LOOP_REPETITIONS)}
    least = best(entries)
    ours, theirs = least["karat"], least["loops"]
    return [speedup("remem", "nested loops", ours=ours, theirs=theirs, target=_TARGET, note="equal scores")]


def memories(count: int) -> Memory:
    """Examples with two gold documents, of which up to three chunks each were retrieved among others.

    A document is a conversation as JSON, as REMem stores it. A chunk is one message with date and speaker.
    In every fifth example documents are plain texts, retrieved whole.
    """
    random = Random(_SEED)
    pool = passage(random, _POOL)
    examples = [_plain(random, pool) if i % _PLAIN == 0 else _talk(random, pool) for i in range(count)]
    return Memory([gold for gold, _ in examples], [chunks for _, chunks in examples])


def _talk(random: Random, pool: str) -> tuple[list[str], list[str]]:
    gold: list[str] = []
    chunks: list[str] = []
    for _ in range(2):
        date = f"2025/05/{random.randint(10, 28)}"
        heads = [f"Date: {date}\n{speaker}: " for speaker in ("user", "assistant")] * (_MESSAGES // 2)
        said = [_cut(random, pool, _CHUNK - len(head)) for head in heads]
        messages = [{"role": head.split()[-1][:-1], "content": text} for head, text in zip(heads, said, strict=True)]
        gold.append(json.dumps({"date": date, "messages": messages}))
        chunks += random.sample([head + text for head, text in zip(heads, said, strict=True)], _some(random))
    return gold, _among_others(random, pool, chunks)


def _plain(random: Random, pool: str) -> tuple[list[str], list[str]]:
    gold = [_cut(random, pool, _CHUNK) for _ in range(2)]
    return gold, _among_others(random, pool, random.sample(gold, random.randint(0, 2)))


def _some(random: Random) -> int:
    return random.randint(*_FROM_EACH)


def _among_others(random: Random, pool: str, chunks: list[str]) -> list[str]:
    head = "Date: 2025/06/01\nuser: "
    others = [head + _cut(random, pool, _CHUNK - len(head)) for _ in range(_DEPTH - len(chunks))]
    return random.sample(chunks + others, _DEPTH)


def _cut(random: Random, pool: str, size: int) -> str:
    """A random part of the pool without colons, which would end the speaker's text early."""
    begin = random.randrange(len(pool) - size)
    return pool[begin : begin + size].replace(": ", ", ")


def by_karat(data: Memory) -> list[Any]:
    """Evaluate with karat.compat.remem."""
    from karat.compat.remem import RetrievalNDCGAny, RetrievalRecall, RetrievalRecallAll

    metrics = (RetrievalRecall(), RetrievalRecallAll(), RetrievalNDCGAny())
    return [metric.calculate_metric_scores(data.gold, data.retrieved, _KS) for metric in metrics]


def by_loops(data: Memory) -> list[Any]:
    """Evaluate each definition literally, for each example and each k."""
    metrics: dict[str, Metric] = {"Recall": recall, "Recall_all": recall_all, "NDCG_any": ndcg_any}
    return [_pooled(name, metric, data) for name, metric in metrics.items()]


def _pooled(name: str, metric: Metric, data: Memory) -> tuple[Scores, list[Scores]]:
    examples = zip(data.gold, data.retrieved, strict=True)
    each = [{f"{name}@{k}": metric(gold, chunks, k) for k in _KS} for gold, chunks in examples]
    return {key: round(sum(row[key] for row in each) / len(each), 4) for key in each[0]}, each


def recall(gold: list[str], chunks: list[str], k: int) -> float:
    return len(set(chunks[:k]) & set(gold)) / len(set(gold)) if gold else 0.0


def recall_all(gold: list[str], chunks: list[str], k: int) -> float:
    found = set()
    for document in gold:
        for chunk in chunks[:k]:
            if comes_from(chunk, document):
                found.add(document)
                break
    return float(bool(gold) and len(found) == len(gold))


def ndcg_any(gold: list[str], chunks: list[str], k: int) -> float:
    relevant = [int(any(comes_from(chunk, document) for document in gold)) for chunk in chunks]
    best_first = sorted(relevant, reverse=True)
    return _dcg(relevant[:k]) / _dcg(best_first[:k]) if any(relevant) else 0.0


def _dcg(relevant: list[int]) -> float:
    return relevant[0] + sum(relevant[i] / log2(i + 1) for i in range(1, len(relevant)))


def comes_from(chunk: str, document: str) -> bool:
    """True by REMem's rule: without the date line, a speaker's line up to the next colon, as it is or as JSON."""
    if chunk.startswith("Date: "):
        chunk = "\n".join(chunk.split("\n")[1:])
    if chunk.startswith(("user: ", "assistant: ")):
        return chunk.split(": ")[1] in document or json.dumps(chunk).split(": ")[1] in document
    return chunk in document or json.dumps(chunk) in document


def check(data: Memory) -> None:
    """Check the results before timing: equal means, and equal scores up to rounding."""
    for (mean, each), (expected, by_example) in zip(by_karat(data), by_loops(data), strict=True):
        assert mean == expected, f"loops: {expected}, karat: {mean}"
        assert any(0 < value < 1 for value in mean.values()), "every mean is 0 or 1"
        for row, other in zip(each, by_example, strict=True):
            assert list(row) == list(other), "the keys differ"
            assert all(abs(row[key] - other[key]) < 1e-12 for key in row), f"loops: {other}, karat: {row}"


if __name__ == "__main__":
    write_outcomes(measure())
