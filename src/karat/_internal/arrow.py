"""Arrow files before Polars reads them: claims that the file cannot hold, or deep nesting, would end the process.

A file is a row of messages with the data, and a footer with the schema and the places of the messages. Both are
FlatBuffers: a table begins with the distance to its list of offsets, one for each field. Offsets point forwards, so
that there are no cycles; but parts may be shared, so they are counted.
"""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from os import PathLike
from pathlib import Path
from struct import error as OutOfBounds  # noqa: N812
from struct import iter_unpack, unpack_from
from typing import NamedTuple

from karat._internal.parquet import DEEPEST, Damaged, check_size

_MAGIC = b"ARROW1"
_CONTINUES = b"\xff\xff\xff\xff"
_SMALLEST_TABLE = 8
# Numbers of fields in the format's definition.
_SCHEMA, _DICTIONARIES, _BATCHES = 1, 2, 3
_FIELDS, _CHILDREN = 1, 5
_HEADER_TYPE, _HEADER, _BODY = 1, 2, 3
_SCHEMA_MESSAGE = 1
_DICTIONARY_BATCH, _DICTIONARY_DATA = 2, 1
_NODES, _BUFFERS, _COMPRESSION, _VARIADIC = 1, 2, 3, 4
_EXPANSION = 2**16
"""The bytes that a compressed byte may become, and more: zstd reaches about 44,000."""
_EMPTY_ROWS = 10**6
"""The rows of a batch whose columns need no bytes, because all of their values are missing."""


def check_arrow_file(path: str | PathLike[str]) -> None:
    """Raise Damaged if a file claims what it cannot hold, or its columns are nested too deeply."""
    with Path(path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        check_arrow(content)


def check_arrow(content: bytes | mmap, per_byte: int | None = None) -> None:
    """Raise Damaged if a file claims what it cannot hold, or its columns are nested too deeply.

    With `per_byte`, also if it is much larger when unpacked.
    """
    end = len(content) - len(_MAGIC) - 4
    if end < 0 or content[:6] != _MAGIC or content[-6:] != _MAGIC:
        return  # Polars says so
    begin = end - int.from_bytes(content[end : end + 4], "little")
    try:
        if begin < 0:
            raise OutOfBounds
        footer = _root(content[begin:end])
        if (schema := footer.child(_SCHEMA)) is not None:
            _check_depth(schema)
        size = 0
        for number in (_DICTIONARIES, _BATCHES):
            for offset, head, _, body in iter_unpack("<qiiq", footer.vector(number, 24)):
                size += _check_message(content, offset, head, body, begin)
    except (OutOfBounds, OverflowError):
        raise Damaged("its footer or the head of a batch is malformed") from None
    if per_byte is not None:
        check_size(size, "bytes", len(content), per_byte)


def is_arrow_file(content: bytes) -> bool:
    """True for a file; False for a stream, which has the same messages, but neither a mark nor a footer."""
    return content.startswith(_MAGIC)


def check_arrow_stream(content: bytes, per_byte: int) -> None:
    """Raise Damaged if a stream claims what it cannot hold, is nested too deeply, or much larger when unpacked."""
    at = size = 0
    try:
        while at < len(content):
            head = 8 + unpack_from("<i", content, at + 4)[0]
            if content[at : at + 4] != _CONTINUES or head < 8 or at + head > len(content):
                raise Damaged("it is no Arrow stream, or it is cut off")
            if head == 8:  # the end
                break
            message = _root(content[at + 8 : at + head])
            kind, place = message.place(_HEADER_TYPE), message.place(_BODY)
            body = 0 if place is None else unpack_from("<q", message.data, place)[0]
            if kind is not None and message.data[kind] == _SCHEMA_MESSAGE:
                schema = message.child(_HEADER)
                if schema is not None:
                    _check_depth(schema)
            else:
                size += _check_message(content, at, head, body, len(content))
            at += head + body
    except (OutOfBounds, OverflowError, IndexError):
        raise Damaged("the head of a batch is malformed") from None
    check_size(size, "bytes", len(content), per_byte)


class _Table(NamedTuple):
    """A table of FlatBuffers."""

    data: bytes
    at: int

    def place(self, number: int) -> int | None:
        """The place of a field; None if it is absent."""
        offsets = self.at - unpack_from("<i", self.data, self.at)[0]
        if offsets < 0:
            raise OutOfBounds
        if 4 + 2 * number >= unpack_from("<H", self.data, offsets)[0]:
            return None
        offset = unpack_from("<H", self.data, offsets + 4 + 2 * number)[0]
        return self.at + offset if offset else None

    def child(self, number: int) -> _Table | None:
        """The table that a field refers to."""
        place = self.place(number)
        return None if place is None else _Table(self.data, place + unpack_from("<I", self.data, place)[0])

    def vector(self, number: int, width: int) -> bytes:
        """The bytes of a list whose elements have this many."""
        if (table := self.child(number)) is None:
            return b""
        size = unpack_from("<I", self.data, table.at)[0] * width
        found = self.data[table.at + 4 : table.at + 4 + size]
        if len(found) < size:
            raise OutOfBounds
        return found

    def children(self, number: int) -> list[_Table]:
        """The tables of a list."""
        if (table := self.child(number)) is None:
            return []
        distances = [own for (own,) in iter_unpack("<I", self.vector(number, 4))]
        return [_Table(self.data, table.at + 4 + 4 * n + own) for n, own in enumerate(distances)]


def _root(data: bytes) -> _Table:
    return _Table(data, unpack_from("<I", data, 0)[0])


def _check_depth(schema: _Table) -> None:
    left = [(field, 1) for field in schema.children(_FIELDS)]
    seen = len(left)
    while left:
        field, depth = left.pop()
        children = field.children(_CHILDREN)
        seen += len(children)
        if depth > DEEPEST or seen * _SMALLEST_TABLE > len(schema.data):
            raise Damaged(f"its columns are nested more than {DEEPEST} levels deep, or contain one another")
        left += [(child, depth + 1) for child in children]


def _check_message(content: bytes | mmap, offset: int, head: int, body: int, end: int) -> int:
    """Compare the sizes in the head of a batch with its body, and the body with the file; its size when unpacked."""
    if not (offset >= 0 and head >= 8 and body >= 0 and offset + head + body <= end):
        raise Damaged("the place of a batch is outside the file")
    skipped = 8 if content[offset : offset + 4] == _CONTINUES else 4
    message = _root(content[offset + skipped : offset + head])
    batch, kind = message.child(_HEADER), message.place(_HEADER_TYPE)
    if batch is not None and kind is not None and message.data[kind : kind + 1] == bytes([_DICTIONARY_BATCH]):
        batch = batch.child(_DICTIONARY_DATA)
    if batch is None:
        raise OutOfBounds
    buffers = list(iter_unpack("<qq", batch.vector(_BUFFERS, 16)))
    if not all(at >= 0 and size >= 0 and at + size <= body for at, size in buffers):
        raise Damaged("a column is larger than its batch")
    unpacked = sum(size for _, size in buffers)
    if batch.place(_COMPRESSION) is not None:
        unpacked = sum(_unpacked(content, offset + head + at, size) for at, size in buffers)
    lengths = [length for length, _ in iter_unpack("<qq", batch.vector(_NODES, 16))]
    variadic = [count for (count,) in iter_unpack("<q", batch.vector(_VARIADIC, 8))]
    if not all(0 <= own <= 8 * unpacked + _EMPTY_ROWS for own in lengths):
        raise Damaged("a batch claims more values than it holds")
    if not all(0 <= own <= len(buffers) for own in variadic):
        raise Damaged("a batch claims more buffers than it has")
    return int(unpacked)


def _unpacked(content: bytes | mmap, at: int, size: int) -> int:
    """The size of a compressed buffer, which it begins with; -1 if it is stored as it is."""
    if size < 8:
        return size
    claimed = int(unpack_from("<q", content, at)[0])
    if not -1 <= claimed <= size * _EXPANSION:
        raise Damaged("a column claims more bytes than it holds")
    return size if claimed < 0 else claimed
