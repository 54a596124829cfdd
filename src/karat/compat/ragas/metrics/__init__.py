"""ragas' metrics of retrieval, as classes and as ready instances (`context_recall`, `context_precision`)."""

from __future__ import annotations

from karat.compat.ragas import absent
from karat.compat.ragas.dataset_schema import MetricResult
from karat.compat.ragas.metrics.llm_metrics import ByLLM as MetricWithLLM
from karat.compat.ragas.metrics.llm_metrics import (
    ContextPrecision,
    ContextPrecisionWithoutReference,
    ContextPrecisionWithReference,
    ContextRecall,
    ContextUtilization,
    LLMContextPrecisionWithoutReference,
    LLMContextPrecisionWithReference,
    LLMContextRecall,
)
from karat.compat.ragas.metrics.metric import IDBasedContextPrecision, IDBasedContextRecall, Metric
from karat.compat.ragas.metrics.own_metric import MetricOutputType, MetricType, SingleTurnMetric
from karat.compat.ragas.metrics.string_metrics import (
    DistanceMeasure,
    ExactMatch,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    NonLLMStringSimilarity,
    StringPresence,
)
from karat.compat.ragas.metrics.whole_context import ContextEntityRecall, ContextRelevance, NoiseSensitivity

context_recall = LLMContextRecall()
context_precision = ContextPrecision()
context_entity_recall = ContextEntityRecall()
__getattr__ = absent.refuse(__name__)

__all__ = [
    "ContextEntityRecall", "ContextPrecision", "ContextPrecisionWithReference", "ContextPrecisionWithoutReference",
    "ContextRecall", "ContextRelevance", "ContextUtilization", "DistanceMeasure", "ExactMatch",
    "IDBasedContextPrecision", "IDBasedContextRecall", "LLMContextPrecisionWithReference",
    "LLMContextPrecisionWithoutReference", "LLMContextRecall", "Metric", "MetricOutputType", "MetricResult",
    "MetricType", "MetricWithLLM", "NoiseSensitivity", "NonLLMContextPrecisionWithReference", "NonLLMContextRecall",
    "NonLLMStringSimilarity", "SingleTurnMetric", "StringPresence", "context_entity_recall", "context_precision",
    "context_recall",
]  # fmt: skip
