"""Arrow files before Polars reads them: columns that are nested too deeply would overflow its stack.

The schema is in the footer, as FlatBuffers: a table begins with the distance to its list of offsets, which has one for
each field. Offsets point forwards, so that a schema has no cycles; but parts of it may be shared, so they are counted.
"""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from os import PathLike
from pathlib import Path
from struct import error as OutOfBounds  # noqa: N812
from struct import unpack_from

from karat._internal.parquet import DEEPEST, Damaged

_MAGIC = b"ARROW1"
_SCHEMA, _FIELDS, _CHILDREN = 1, 1, 5
"""Numbers of fields in the tables Footer, Schema and Field."""
_SMALLEST_FIELD = 8
"""Bytes of the smallest table."""


def check_arrow_file(path: str | PathLike[str]) -> None:
    """Raise Damaged if the columns of a file are nested too deeply; all other damage is left to Polars."""
    with Path(path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        check_arrow(content)


def check_arrow(content: bytes | mmap) -> None:
    """Raise Damaged if the columns are nested too deeply."""
    end = len(content) - len(_MAGIC) - 4
    if end < 0 or content[-len(_MAGIC) :] != _MAGIC:
        return
    size = int.from_bytes(content[end : end + 4], "little")
    footer = content[max(end - size, 0) : end]
    try:
        _check_depth(footer)
    except OutOfBounds:
        raise Damaged("its footer is malformed") from None


def _check_depth(footer: bytes) -> None:
    (root,) = unpack_from("<I", footer, 0)
    schema = _table(footer, root, _SCHEMA)
    left = [] if schema is None else [(field, 1) for field in _tables(footer, schema, _FIELDS)]
    seen = len(left)
    while left:
        field, depth = left.pop()
        children = _tables(footer, field, _CHILDREN)
        seen += len(children)
        if depth > DEEPEST or seen * _SMALLEST_FIELD > len(footer):
            raise Damaged(f"its columns are nested more than {DEEPEST} levels deep, or contain one another")
        left += [(child, depth + 1) for child in children]


def _table(footer: bytes, table: int, number: int) -> int | None:
    """The place of what a field of a table refers to; None if the field is absent."""
    (back,) = unpack_from("<i", footer, table)
    offsets = table - back
    if offsets < 0:
        raise OutOfBounds
    (size,) = unpack_from("<H", footer, offsets)
    if 4 + 2 * number >= size:
        return None
    (offset,) = unpack_from("<H", footer, offsets + 4 + 2 * number)
    if not offset:
        return None
    (distance,) = unpack_from("<I", footer, table + offset)
    return int(table + offset + distance)


def _tables(footer: bytes, table: int, number: int) -> list[int]:
    """The places of the tables in a list."""
    begin = _table(footer, table, number)
    if begin is None:
        return []
    (size,) = unpack_from("<I", footer, begin)
    if size > len(footer):
        raise OutOfBounds
    places = range(begin + 4, begin + 4 + 4 * size, 4)
    return [place + unpack_from("<I", footer, place)[0] for place in places]
