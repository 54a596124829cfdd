"""Similar texts: karat against ragas with equal scores, in the environment of ragas.

1,000 samples of 5 gold × 10 retrieved texts of 500 characters, by the default metric of ragas.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks.outcome import Outcome, speedup, write_outcomes
from benchmarks.prose import Sample, similar_texts
from benchmarks.ragas_environment import run_with_ragas
from benchmarks.timing import Entry, best

if TYPE_CHECKING:
    from karat import Run

# The default of ragas: a similarity above 0.5.
_JUDGE = "fuzzy(0.5, levenshtein, strict=True)"
_SAMPLES = 1_000
_REPETITIONS = 9
_OF_RAGAS = 3
_TARGETS = {"ragas, one by one": 10, "ragas, evaluate()": 20}


def measure() -> list[Outcome]:
    """Compare karat with ragas, both in one process of ragas' environment."""
    return run_with_ragas("fuzzy")


def _here() -> list[Outcome]:
    samples = similar_texts(_SAMPLES)
    ours = by_karat(samples).scores["recall"].tolist()
    for name, call in (("one by one", one_by_one), ("evaluate()", by_evaluate)):
        assert ours == call(samples), f"ragas, {name}: scores differ from karat's"
    least = best(
        {
            "karat": Entry(by_karat, lambda: samples, _REPETITIONS),
            "ragas, one by one": Entry(one_by_one, lambda: samples, _OF_RAGAS),
            "ragas, evaluate()": Entry(by_evaluate, lambda: samples, _OF_RAGAS),
        }
    )
    return [
        speedup("fuzzy-ragas", peer, ours=least["karat"], theirs=least[peer], target=target, note="equal scores")
        for peer, target in _TARGETS.items()
    ]


def by_karat(samples: list[Sample]) -> Run:
    """Evaluate with karat, from the samples to the scores of every query."""
    import karat

    return karat.evaluate(samples, "recall", judge=_JUDGE)


def one_by_one(samples: list[Sample]) -> list[float]:
    """Call the metric of ragas for each sample."""
    from ragas import SingleTurnSample
    from ragas.metrics import NonLLMContextRecall

    metric = NonLLMContextRecall()
    return [metric.single_turn_score(SingleTurnSample(**sample)) for sample in samples]


def by_evaluate(samples: list[Sample]) -> list[float]:
    """Call ragas.evaluate() with the same metric."""
    from ragas import EvaluationDataset, evaluate
    from ragas.metrics import NonLLMContextRecall

    metric = NonLLMContextRecall()
    data = EvaluationDataset.from_list(samples)
    result = evaluate(data, metrics=[metric], show_progress=False, raise_exceptions=True)
    return [scores[metric.name] for scores in result.scores]


if __name__ == "__main__":
    write_outcomes(_here() if sys.argv[1:] == ["here"] else measure())
