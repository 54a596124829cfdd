"""Collecting: a fake retriever of 20 ms, as a function and as a coroutine function, with a journal and without.

1,600 queries, 16 at a time.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import karat
from benchmarks.outcome import Outcome, slowdown, write_outcomes

_QUERIES, _LATENCY, _CONCURRENCY = 1_600, 0.02, 16
_REPETITIONS = 5
_TARGET = 1.1
_ITEMS = [{"id": f"doc-{number}", "text": "a text of some length " * 10, "score": 1.0} for number in range(20)]


def search(query: str) -> list[dict[str, Any]]:
    """The same items for every query, after 20 ms."""
    time.sleep(_LATENCY)
    return _ITEMS


async def search_later(query: str) -> list[dict[str, Any]]:
    """The same without blocking a thread."""
    await asyncio.sleep(_LATENCY)
    return _ITEMS


def measure() -> list[Outcome]:
    """The time of a collection, divided by that of calls without any overhead."""
    gold = [{"id": f"q{number}", "query": f"query {number}", "gold": ["doc-1"]} for number in range(_QUERIES)]
    ideal = _QUERIES * _LATENCY / _CONCURRENCY
    outcomes = []
    _seconds(search, gold[:_CONCURRENCY], None)  # warm-up: imports
    with TemporaryDirectory() as folder:
        for name, retriever in {"function": search, "coroutine": search_later}.items():
            for journal in (False, True):
                output = Path(folder, f"{name}.jsonl") if journal else None
                least = min(_seconds(retriever, gold, output) for _ in range(_REPETITIONS))
                lost = (least - ideal) / _QUERIES * 1e3
                note = f"{_QUERIES:,} queries of 20 ms, {_CONCURRENCY} at a time: {lost:.2f} ms more per query"
                peer = f"ideal, {name}{', with a journal' if journal else ''}"
                outcomes.append(slowdown("collect", peer, ours=least, theirs=ideal, target=_TARGET, note=note))
    return outcomes


def _seconds(retriever: Any, gold: Any, output: Path | None) -> float:
    began = time.perf_counter()
    found = karat.collect(retriever, gold, concurrency=_CONCURRENCY, output=output, fresh=True, progress=False)
    taken = time.perf_counter() - began
    assert len(found) == len(gold)
    assert not found.failures
    return taken


if __name__ == "__main__":
    write_outcomes(measure())
