"""The classes of metrics under their path in ragas: separate, because that path is imported."""

from __future__ import annotations

from karat.compat.ragas.metrics.llm_metrics import ByLLM as MetricWithLLM
from karat.compat.ragas.metrics.metric import Metric
from karat.compat.ragas.metrics.own_metric import MetricOutputType, MetricType, SingleTurnMetric

__all__ = ["Metric", "MetricOutputType", "MetricType", "MetricWithLLM", "SingleTurnMetric"]
