"""ragas' interface for retrieval: write `karat.compat.ragas` for `ragas` in import lines; the calls stay the same."""

from __future__ import annotations

import sys
from importlib import import_module

from karat.compat.ragas import absent, backends, metrics
from karat.compat.ragas.cache import CacheInterface, DiskCacheBackend, cacher
from karat.compat.ragas.dataset import Dataset, DataTable
from karat.compat.ragas.dataset_schema import EvaluationDataset, EvaluationResult, SingleTurnSample
from karat.compat.ragas.evaluation import aevaluate, evaluate
from karat.compat.ragas.experiment import Experiment, experiment
from karat.compat.ragas.llms import llm_factory
from karat.compat.ragas.metrics import *  # noqa: F403
from karat.compat.ragas.run_config import RunConfig

_PATHS = {
    "backends.base": "backends",
    "backends.inmemory": "backends",
    "backends.local_csv": "backends",
    "backends.local_jsonl": "backends",
    "llms.haystack_wrapper": "llms",
    "llms.litellm_llm": "llms",
    "metrics._context_entities_recall": "metrics",
    "metrics._context_precision": "metrics",
    "metrics._context_recall": "metrics",
    "metrics._noise_sensitivity": "metrics",
    "metrics._nv_metrics": "metrics",
    "metrics._string": "metrics",
    "metrics.collections.base": "metrics.collections",
    "metrics.collections.context_entity_recall": "metrics.collections",
    "metrics.collections.context_precision": "metrics.collections",
    "metrics.collections.context_recall": "metrics.collections",
    "metrics.collections.context_relevance": "metrics.collections",
    "metrics.collections.noise_sensitivity": "metrics.collections",
}
"""Deeper paths of ragas, and the module that has their names."""
for _path, _home in _PATHS.items():
    sys.modules[f"{__name__}.{_path}"] = import_module(f"{__name__}.{_home}")

__version__ = "0.4.3"
"""The version of ragas whose interface this is: programs that ask for it choose their calls by it."""
__getattr__ = absent.refuse(__name__)

__all__ = [
    "CacheInterface",
    "DataTable",
    "Dataset",
    "DiskCacheBackend",
    "EvaluationDataset",
    "EvaluationResult",
    "Experiment",
    "RunConfig",
    "SingleTurnSample",
    "__version__",
    "aevaluate",
    "backends",
    "cacher",
    "evaluate",
    "experiment",
    "llm_factory",
]  # fmt: skip
__all__ += metrics.__all__
