"""Search in the rows of a run file: every word of a text, in any of the texts of a row, in upper or lower case."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import numpy as np

from karat._internal.arrays import Bools, Ints
from karat.run.check import GOLD_ITEMS, META, RETRIEVED

if TYPE_CHECKING:
    import polars as pl

BATCH = 65_536
"""Rows that are read at a time."""
_BATCH_OF_TEXTS = 8_192
_FIELDS = ("id", "doc", "text", "item")
_SAME = {"ß": "ss", "ς": "σ", "i̇": "i"}
"""Lower-case signs that upper case cannot tell apart."""


def fold(text: str) -> str:
    """A text in which upper and lower case, and the ways to write one letter, are the same."""
    folded = unicodedata.normalize("NFKC", text).lower()
    for sign, other in _SAME.items():
        folded = folded.replace(sign, other)
    return folded


class Search:
    """The words of a text, looked for in the columns of a run file."""

    def __init__(self, text: str, schema: pl.Schema) -> None:
        words = sorted({fold(word) for word in text.split()}, key=len, reverse=True)
        self._words = [word for i, word in enumerate(words) if not any(word in longer for longer in words[:i])]
        self.columns = [name for name, dtype in schema.items() if _is_searched(name, dtype)]
        """The columns that are searched."""
        texts = any('"text"' in str(schema[name]) or "'text'" in str(schema[name]) for name in self.columns)
        self.batch = _BATCH_OF_TEXTS if texts else BATCH
        """The number of rows to search at a time, so that little memory is needed."""

    def rows(self, frame: pl.DataFrame) -> Ints:
        """The rows of a frame of these columns in which every word occurs."""
        found = np.zeros((len(self._words), len(frame)), bool)
        for name in self.columns:
            self._mark(frame[name], np.arange(len(frame)), found)
        rows: Ints = np.flatnonzero(found.all(axis=0))
        return rows

    def _mark(self, column: pl.Series, row: Ints, found: Bools) -> None:
        """Mark the words that occur in the texts of a column, of which each belongs to a row."""
        import polars as pl

        if isinstance(column.dtype, pl.List):
            sizes = column.list.len().to_numpy()
            self._mark(column.explode(empty_as_null=False, keep_nulls=False), np.repeat(row, sizes), found)
        elif isinstance(column.dtype, pl.Struct):
            for name in column.struct.fields:
                if name in _FIELDS and _is_text(column.struct.field(name).dtype):
                    self._mark(column.struct.field(name), row, found)
        else:
            self._mark_texts(column, row, found)

    def _mark_texts(self, column: pl.Series, row: Ints, found: Bools) -> None:
        import polars as pl

        if column.dtype == pl.Categorical:  # texts that repeat: each is searched once
            different = column.unique()
            codes, texts = different.to_physical().to_numpy(), _folded(different.cast(pl.String))
            own = column.to_physical().to_numpy()
            for word, flags in zip(self._words, found, strict=True):
                flags[row[np.isin(own, codes[_contains(texts, word)])]] = True
            return
        texts = _folded(column.cast(pl.String))
        for word, flags in zip(self._words, found, strict=True):
            flags[row[_contains(texts, word)]] = True


def _contains(texts: pl.Series, word: str) -> Bools:
    flags: Bools = texts.str.contains(word, literal=True).fill_null(value=False).to_numpy()
    return flags


def _folded(texts: pl.Series) -> pl.Series:
    """The texts as `fold` makes them; only those with other signs than those of ASCII take time."""
    if texts.str.len_bytes().sum() == texts.str.len_chars().sum():
        return texts.str.to_lowercase()
    texts = texts.str.normalize("NFKC").str.to_lowercase()
    for sign, other in _SAME.items():
        texts = texts.str.replace_all(sign, other, literal=True)
    return texts


def _is_searched(name: str, dtype: pl.DataType) -> bool:
    if name.startswith(META):
        return _is_text(dtype) or dtype.is_integer()
    return name in ("query_id", "query", "gold", RETRIEVED, GOLD_ITEMS)


def _is_text(dtype: pl.DataType) -> bool:
    import polars as pl

    return dtype in (pl.String, pl.Categorical)
