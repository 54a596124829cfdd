"""ragas' metrics of retrieval, as classes and as ready instances (`context_recall`, `context_precision`)."""

from __future__ import annotations

from karat.compat.ragas.dataset_schema import MetricResult
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
from karat.compat.ragas.metrics.metric import (
    DistanceMeasure,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    Metric,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    NonLLMStringSimilarity,
)

context_recall = LLMContextRecall()
context_precision = ContextPrecision()

__all__ = [
    "ContextPrecision", "ContextPrecisionWithReference", "ContextPrecisionWithoutReference", "ContextRecall",
    "ContextUtilization", "DistanceMeasure", "IDBasedContextPrecision", "IDBasedContextRecall",
    "LLMContextPrecisionWithReference", "LLMContextPrecisionWithoutReference", "LLMContextRecall", "Metric",
    "MetricResult", "NonLLMContextPrecisionWithReference", "NonLLMContextRecall", "NonLLMStringSimilarity",
    "context_precision", "context_recall",
]  # fmt: skip
