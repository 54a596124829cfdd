"""REMem's retrieval metrics: `from karat.compat.remem import RetrievalRecall`, and nothing else changes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from karat.errors import BadArgument
from karat.evaluation import evaluate
from karat.judges import find_judge
from karat.run import Run
from karat.samples import read_samples

_LOG = logging.getLogger(__name__)
_FROM_ORIGINAL = "contains(chunk_in_gold, strip=(date, speaker, json), fold=())"

Scores = dict[str, float]


def is_chunk_from_original(chunk: str, original: str) -> bool:
    """Whether a chunk comes from a document; a date line, a speaker and JSON escapes do not matter."""
    samples = read_samples(retrieved=[[chunk]], gold=[[original]])
    return len(find_judge(_FROM_ORIGINAL)(samples, evaluate_convention())) > 0


class _RetrievalMetric:
    """What the four have in common: the call, the keys, the shape of the result."""

    metric_name: ClassVar[str]
    _key: ClassVar[str]
    _metric: ClassVar[str]
    _judge: ClassVar[str] = _FROM_ORIGINAL

    def __init__(self, global_config: Any = None) -> None:
        self.global_config = global_config

    def calculate_metric_scores(
        self,
        gold_docs: Sequence[Sequence[str]],
        retrieved_chunks: Sequence[Sequence[str]],
        k_list: Iterable[int] = (1, 5, 10, 20),
    ) -> tuple[Scores, list[Scores]]:
        """The means, rounded to four places, and the scores of each example, not rounded."""
        ks = sorted(set(k_list))
        keys = {f"{self._metric}@{k}": f"{self._key}@{k}" for k in ks}
        if not ks:
            raise BadArgument("k_list is empty", hint="[1, 5, 10, 20]")
        if len(gold_docs) == 0:
            return dict.fromkeys(keys.values(), 0.0), []
        for number, chunks in enumerate(retrieved_chunks, 1):
            if len(chunks) < ks[-1]:
                _LOG.warning("example %d: %d chunks were retrieved, fewer than k = %d", number, len(chunks), ks[-1])
        run = self._run(gold_docs, retrieved_chunks, list(keys))
        columns = {key: run.scores[name].tolist() for name, key in keys.items()}
        each = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {key: run.mean[name] for name, key in keys.items()}, each

    def _run(self, gold: Sequence[Sequence[str]], retrieved: Sequence[Sequence[str]], metrics: list[str]) -> Run:
        return evaluate(
            retrieved=list(retrieved), gold=list(gold), metrics=metrics, judge=self._judge, convention="remem"
        )
