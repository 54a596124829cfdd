"""The classes of all metrics under their path in ragas: separate, because that path is imported."""

from __future__ import annotations

from enum import Enum

from karat.compat.ragas.metrics.llm_metrics import ByLLM as MetricWithLLM
from karat.compat.ragas.metrics.metric import Metric
from karat.compat.ragas.metrics.metric import Metric as SingleTurnMetric

__all__ = ["Metric", "MetricOutputType", "MetricType", "MetricWithLLM", "SingleTurnMetric"]


class MetricType(Enum):
    """The kind of samples that a metric reads."""

    SINGLE_TURN = "single_turn"
    MULTI_TURN = "multi_turn"


class MetricOutputType(Enum):
    """The kind of scores that a metric has."""

    BINARY = "binary"
    DISCRETE = "discrete"
    CONTINUOUS = "continuous"
    RANKING = "ranking"
