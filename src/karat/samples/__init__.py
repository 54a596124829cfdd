"""Samples: files, frames, lists and dicts → columns. Data is copied only where needed."""

from __future__ import annotations

from karat.samples.columns import Field, Found, GoldItems, Keys, Rankings, Reading, RepeatedKey, Samples
from karat.samples.read import read_samples, read_test_set

__all__ = [
    "Field", "Found", "GoldItems", "Keys", "Rankings", "Reading", "RepeatedKey", "Samples", "read_samples",
    "read_test_set",
]  # fmt: skip
