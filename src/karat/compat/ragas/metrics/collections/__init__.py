"""The metrics under the path that ragas recommends; the same classes as in `karat.compat.ragas.metrics`."""

from __future__ import annotations

from karat.compat.ragas.metrics.llm_metrics import ContextPrecision as ContextPrecision
from karat.compat.ragas.metrics.llm_metrics import ContextPrecisionWithoutReference as ContextPrecisionWithoutReference
from karat.compat.ragas.metrics.llm_metrics import ContextPrecisionWithReference as ContextPrecisionWithReference
from karat.compat.ragas.metrics.llm_metrics import ContextRecall as ContextRecall
from karat.compat.ragas.metrics.llm_metrics import ContextUtilization as ContextUtilization
from karat.compat.ragas.metrics.metric import DistanceMeasure as DistanceMeasure
from karat.compat.ragas.metrics.metric import Metric as BaseMetric
from karat.compat.ragas.metrics.metric import NonLLMStringSimilarity as NonLLMStringSimilarity

__all__ = [
    "BaseMetric", "ContextPrecision", "ContextPrecisionWithReference", "ContextPrecisionWithoutReference",
    "ContextRecall", "ContextUtilization", "DistanceMeasure", "NonLLMStringSimilarity",
]  # fmt: skip
