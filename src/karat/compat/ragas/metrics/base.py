"""The class of all metrics under its path in ragas: separate, because that path is imported."""

from __future__ import annotations

from karat.compat.ragas.metrics.llm_metrics import ByLLM as MetricWithLLM
from karat.compat.ragas.metrics.metric import Metric
from karat.compat.ragas.metrics.metric import Metric as SingleTurnMetric

__all__ = ["Metric", "MetricWithLLM", "SingleTurnMetric"]
