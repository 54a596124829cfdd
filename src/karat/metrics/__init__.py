"""Metrics: hits in, one number per query out. Each is a few lines in `sets.py`, `ranks.py`, `each.py` or `spans.py`."""

from karat.metrics import each, ranks, sets, spans
from karat.metrics.names import DEFAULT, Budget, Metric, parse, parse_all
from karat.metrics.registry import METRICS, Definition, find_metric, metric

__all__ = [
    "DEFAULT",
    "METRICS",
    "Budget",
    "Definition",
    "Metric",
    "each",
    "find_metric",
    "metric",
    "parse",
    "parse_all",
    "ranks",
    "sets",
    "spans",
]
