"""Metrics: hits → one number per query. A metric is one decorated function in any file of this folder."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from karat.metrics.cutoffs import Budget, Level
from karat.metrics.names import DEFAULT, Metric, parse, parse_all
from karat.metrics.registry import MEASURES, METRICS, Definition, find_metric, metric

__all__ = [
    "DEFAULT", "MEASURES", "METRICS", "Budget", "Definition", "Level", "Metric", "find_metric", "metric", "parse",
    "parse_all",
]  # fmt: skip

_FIRST = ("sets", "ranks")
"""The metrics that are listed first."""
for _module in (*_FIRST, *(_each.name for _each in iter_modules(__path__))):
    import_module(f"{__name__}.{_module}")
