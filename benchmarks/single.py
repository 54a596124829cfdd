"""Single calls of the metrics of ids: `karat.compat.ragas` against ragas, with equal scores."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from benchmarks.outcome import Outcome, slowdown, write_outcomes
from benchmarks.ragas_environment import run_with_ragas
from benchmarks.timing import Entry, best

_SEED = 20
_SAMPLES, _DEPTH, _GOLD = 100, 20, 4
_REPETITIONS = 30
_TARGET = 1
_METRICS = ("IDBasedContextPrecision", "IDBasedContextRecall")


def measure() -> list[Outcome]:
    """Compare karat with ragas, both in one process of ragas' environment."""
    return run_with_ragas("single")


def _here() -> list[Outcome]:
    return [outcome for name in _METRICS for outcome in _compare(name)]


def _compare(name: str) -> list[Outcome]:
    """One metric, called for each sample, and awaited for each sample."""
    import ragas
    from ragas import metrics as theirs

    from karat.compat import ragas as compat
    from karat.compat.ragas import metrics as ours

    samples = _samples()
    ragas_metric, ragas_samples = getattr(theirs, name)(), [ragas.SingleTurnSample(**sample) for sample in samples]
    own_metric, own_samples = getattr(ours, name)(), [compat.SingleTurnSample(**sample) for sample in samples]
    return [
        _outcome(f"{name}, {way}", partial(call, own_metric, own_samples), partial(call, ragas_metric, ragas_samples))
        for way, call in (("called", _called), ("awaited", _awaited))
    ]


def _outcome(what: str, karat: Callable[[], list[float]], ragas: Callable[[], list[float]]) -> Outcome:
    """The time of one call of each."""
    assert karat() == ragas(), f"{what}: scores differ from those of ragas"
    least = best(
        {
            "karat": Entry(lambda _: karat(), lambda: None, _REPETITIONS),
            "ragas": Entry(lambda _: ragas(), lambda: None, _REPETITIONS),
        }
    )
    ours, theirs = least["karat"] / _SAMPLES, least["ragas"] / _SAMPLES
    return slowdown("single-ragas", f"ragas, {what}", ours=ours, theirs=theirs, target=_TARGET, note="equal scores")


def _called(metric: Any, samples: Sequence[Any]) -> list[float]:
    return [metric.single_turn_score(sample) for sample in samples]


def _awaited(metric: Any, samples: Sequence[Any]) -> list[float]:
    async def each() -> list[float]:
        return [await metric.single_turn_ascore(sample) for sample in samples]

    return asyncio.run(each())


def _samples() -> list[dict[str, Any]]:
    """Rankings of ids, with some of their gold."""
    random = Random(_SEED)
    samples = []
    for _ in range(_SAMPLES):
        ids = [f"doc{number}" for number in random.sample(range(1_000), _DEPTH + _GOLD)]
        gold = random.sample(ids, _GOLD)
        samples.append({"retrieved_context_ids": ids[:_DEPTH], "reference_context_ids": gold})
    return samples


if __name__ == "__main__":
    write_outcomes(_here() if sys.argv[1:] == ["here"] else measure())
