"""The result of a metric, under its path in ragas."""

from __future__ import annotations

from karat.compat.ragas.dataset_schema import MetricResult as MetricResult
