"""Metrics: hits in, one number per query out. Each is a few lines, in `sets.py`, `ranks.py` and their neighbours."""

from __future__ import annotations

# In the order in which they are listed to users.
from karat.metrics import sets, ranks, texts  # isort: skip
from karat.metrics.names import DEFAULT, Budget, Metric, parse, parse_all
from karat.metrics.registry import METRICS, Definition, find_metric, metric

__all__ = [
    "DEFAULT",
    "METRICS",
    "Budget",
    "Definition",
    "Metric",
    "find_metric",
    "metric",
    "parse",
    "parse_all",
    "ranks",
    "sets",
    "texts",
]
