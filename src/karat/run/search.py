"""Search in the rows of a run file: every word of a text, in any of the texts of a row, in upper or lower case."""

from __future__ import annotations

import unicodedata
from re import escape
from typing import TYPE_CHECKING

import numpy as np

from karat._internal.arrays import Bools, Ints
from karat._internal.display import valid_utf8
from karat.run.check import GOLD_ITEMS, META, RETRIEVED, fields_of_records

if TYPE_CHECKING:
    import polars as pl

_SHORT, _LISTS = ("query_id", "query"), ("gold", GOLD_ITEMS, RETRIEVED)
_IN_RECORDS = ("id", "doc", "text", "item")
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
        words = sorted({fold(word) for word in valid_utf8([text])[0].split()}, key=len, reverse=True)
        self._words = [word for i, word in enumerate(words) if not any(word in longer for longer in words[:i])]
        """The longest first, which fewer rows have."""
        fields = [name for name, own in schema.items() if name.startswith(META) and (_is_text(own) or own.is_integer())]
        self.columns = [name for name in (*_SHORT, *fields, *_LISTS) if name in schema]
        """The columns that are searched."""

    def rows(self, frame: pl.DataFrame) -> Ints:
        """The rows of a frame of these columns in which every word occurs."""
        rows: Ints = np.arange(len(frame))
        for word in self._words:
            found = np.zeros(len(frame), bool)
            for name in self.columns:
                _mark(frame[name], np.arange(len(frame)), word, found)
            frame, rows = frame.filter(found), rows[found]
        return rows


def _mark(column: pl.Series, row: Ints, word: str, found: Bools) -> None:
    """Mark the rows in whose texts a word occurs; each value of the column belongs to a row."""
    import polars as pl

    if isinstance(column.dtype, pl.List):
        sizes = column.list.len().to_numpy()
        _mark(column.explode(empty_as_null=False, keep_nulls=False), np.repeat(row, sizes), word, found)
    elif isinstance(column.dtype, pl.Struct):
        for name, dtype in fields_of_records(column.dtype).items():
            if name in _IN_RECORDS and _is_text(dtype):
                _mark(column.struct.field(name), row, word, found)
    elif column.dtype == pl.Categorical:  # texts that repeat: each is searched once
        different, own = column.unique(), column.to_physical().to_numpy()
        codes = different.to_physical().to_numpy()
        found[row[np.isin(own, codes[_occurs(different.cast(pl.String), word)])]] = True
    else:
        found[row[_occurs(column.cast(pl.String), word)]] = True


def _occurs(texts: pl.Series, word: str) -> Bools:
    """Flags of the texts in which a word occurs; folding is slow, and texts in ASCII do not need it."""
    found = np.zeros(len(texts), bool)
    other = (texts.str.len_bytes() != texts.str.len_chars()).fill_null(value=False)
    if word.isascii():
        found |= texts.str.contains(f"(?i-u){escape(word)}").fill_null(value=False).to_numpy()
    if other.any():
        found[other.to_numpy()] = _folded(texts.filter(other)).str.contains(word, literal=True).to_numpy()
    return found


def _folded(texts: pl.Series) -> pl.Series:
    """The texts as `fold` makes them."""
    texts = texts.str.normalize("NFKC").str.to_lowercase()
    for sign, other in _SAME.items():
        texts = texts.str.replace_all(sign, other, literal=True)
    return texts


def _is_text(dtype: pl.DataType) -> bool:
    import polars as pl

    return dtype in (pl.String, pl.Categorical)
