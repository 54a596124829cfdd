"""ragas' interface for retrieval: write `karat.compat.ragas` for `ragas` in import lines; the calls stay the same."""

from __future__ import annotations

from karat.compat.ragas import metrics
from karat.compat.ragas.dataset_schema import EvaluationDataset, EvaluationResult, SingleTurnSample
from karat.compat.ragas.evaluation import aevaluate, evaluate
from karat.compat.ragas.llms import llm_factory
from karat.compat.ragas.metrics import *  # noqa: F403
from karat.compat.ragas.run_config import RunConfig

__all__ = [
    "EvaluationDataset", "EvaluationResult", "RunConfig", "SingleTurnSample", "aevaluate", "evaluate", "llm_factory",
]  # fmt: skip
__all__ += metrics.__all__
