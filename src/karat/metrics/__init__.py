"""Metrics: hits in, one number per query out. Each is a few lines in `sets.py` or `ranks.py`."""

from karat.metrics import ranks, sets
from karat.metrics.names import DEFAULT, Metric, parse, parse_all
from karat.metrics.registry import METRICS, Definition, find_metric, metric

__all__ = [
    "DEFAULT",
    "METRICS",
    "Definition",
    "Metric",
    "find_metric",
    "metric",
    "parse",
    "parse_all",
    "ranks",
    "sets",
]
