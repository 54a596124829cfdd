"""ragas' interface for retrieval: write `karat.compat.ragas` for `ragas` in import lines; the calls stay the same."""

from __future__ import annotations

from karat.compat.ragas import backends, metrics
from karat.compat.ragas.cache import CacheInterface, DiskCacheBackend, cacher
from karat.compat.ragas.dataset import Dataset, DataTable
from karat.compat.ragas.dataset_schema import EvaluationDataset, EvaluationResult, SingleTurnSample
from karat.compat.ragas.evaluation import aevaluate, evaluate
from karat.compat.ragas.experiment import Experiment, experiment
from karat.compat.ragas.llms import llm_factory
from karat.compat.ragas.metrics import *  # noqa: F403
from karat.compat.ragas.run_config import RunConfig

__all__ = [
    "CacheInterface", "DataTable", "Dataset", "DiskCacheBackend", "EvaluationDataset", "EvaluationResult", "Experiment",
    "RunConfig", "SingleTurnSample", "aevaluate", "backends", "cacher", "evaluate", "experiment", "llm_factory",
]  # fmt: skip
__all__ += metrics.__all__
