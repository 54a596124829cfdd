"""Keys of items, separate because pools, labels and calibration must name an item alike."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from karat.judges.text import fold_space

_BYTES = 8


def folded_text(text: str | None, length: int | None = None) -> str:
    """The text by which two items are copies; `length` is that of the whole text, if this is only its beginning."""
    folded = fold_space(text or "")
    return folded if length is None or not folded else f"{folded}… ({length})"


def item_name(cells: tuple[Any, ...], length: int | None = None) -> str:
    """The name by which an item is recognised in a query: its id, else its text, range or document.

    `cells` are its id, text, document, start and end; `length` is that of the whole text, if it is cut.
    """
    own, text, doc, start, end = cells
    if own is not None:
        return f"id:{own}"
    if text:
        return f"text:{folded_text(text, length)}"
    return f"place:{doc}:{start}-{end}"


def item_key(name: str) -> str:
    """A short digest of the name of an item: its key in pools and labels."""
    return blake2b(name.encode("utf-8", "backslashreplace"), digest_size=_BYTES).hexdigest()
