"""The metrics under the path that ragas recommends: those that call a model need it at once, as in ragas."""

from __future__ import annotations

from karat.compat.ragas import absent
from karat.compat.ragas.metrics.collections.with_model import EntityRecallWithModel as ContextEntityRecall
from karat.compat.ragas.metrics.collections.with_model import NoiseWithModel as NoiseSensitivity
from karat.compat.ragas.metrics.collections.with_model import PrecisionWithModel as ContextPrecision
from karat.compat.ragas.metrics.collections.with_model import RecallWithModel as ContextRecall
from karat.compat.ragas.metrics.collections.with_model import (
    ReferencePrecisionWithModel as ContextPrecisionWithReference,
)
from karat.compat.ragas.metrics.collections.with_model import RelevanceWithModel as ContextRelevance
from karat.compat.ragas.metrics.collections.with_model import (
    ResponsePrecisionWithModel as ContextPrecisionWithoutReference,
)
from karat.compat.ragas.metrics.collections.with_model import UtilizationWithModel as ContextUtilization
from karat.compat.ragas.metrics.metric import Metric as BaseMetric
from karat.compat.ragas.metrics.string_metrics import (
    DistanceMeasure,
    ExactMatch,
    NonLLMStringSimilarity,
    StringPresence,
)

__getattr__ = absent.refuse(__name__)

__all__ = [
    "BaseMetric", "ContextEntityRecall", "ContextPrecision", "ContextPrecisionWithReference",
    "ContextPrecisionWithoutReference", "ContextRecall", "ContextRelevance", "ContextUtilization", "DistanceMeasure",
    "ExactMatch", "NoiseSensitivity", "NonLLMStringSimilarity", "StringPresence",
]  # fmt: skip
