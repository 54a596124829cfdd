"""Samples: files, frames, lists and dicts, read into columns. Nothing is copied that need not be."""

from karat.samples.columns import Reading, Samples
from karat.samples.gold import GoldItems
from karat.samples.rankings import Field, Found, Keys, Rankings, RepeatedKey
from karat.samples.read import read_samples, read_test_set

__all__ = [
    "Field",
    "Found",
    "GoldItems",
    "Keys",
    "Rankings",
    "Reading",
    "RepeatedKey",
    "Samples",
    "read_samples",
    "read_test_set",
]
