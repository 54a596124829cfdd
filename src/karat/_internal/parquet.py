"""Parquet files before Polars reads them: counts and sizes that the file cannot hold would make it crash or hang.

Polars allocates what the footer and the page headers claim, and ends the process if there is not so much memory. So
each claim is compared with the file: a list cannot have more elements than bytes, a column not more values than its
pages. Run files also have a checksum, so that a change of a byte is noticed; files of other programs have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from mmap import ACCESS_READ, mmap
from os import SEEK_END, PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, overload

MAGIC = b"PAR1"
_TAIL = 8
"""The length of the footer, in four bytes, and the magic number."""
_MARK, _DIGEST = b"karat.blake2b", 16
"""The bytes before a checksum, and the length of the checksum."""
_LARGEST_FOOTER = 2**22
"""Larger footers, of files with thousands of row groups, would take seconds to check. No run file has one."""
_MANY_VALUES = 10_000_000
_LARGEST_FILE = 2**28
"""The page headers of larger files are not checked: they are all over the file."""
DEEPEST = 64
"""Levels of nesting in the schema; code that reads one level per call runs out of stack."""
_ENDING, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 0, 1, 2, 3, 7, 8, 12
_INTEGERS, _LISTS = (4, 5, 6), (9, 10)
_ONE_BYTE = 128
"""Smaller bytes are the last one of a number."""
# Numbers of fields in the format's definition.
_SCHEMA, _ROWS, _ROW_GROUPS = 2, 3, 4
_CHILDREN = 5
_CHUNKS, _GROUP_ROWS = 1, 3
_META = 3
_VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY = 5, 6, 7, 9, 11
_PAGE_UNPACKED, _PAGE_PACKED, _DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 2, 3, 5, 7, 8

_BLOCK, _CHUNK = 2**12, 2**20
"""Bytes that are read at once: of page headers, and for a checksum."""


class Damaged(ValueError):
    """A file whose structure contradicts itself."""


class FileBytes:
    """The bytes of an open file, read when they are asked for.

    A file that another process cuts off is damaged; a mapping of it would end this process.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._size = file, file.seek(0, SEEK_END)
        self._first, self._block = 0, b""

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> bytes: ...
    def __getitem__(self, at: int | slice) -> int | bytes:
        if isinstance(at, slice):
            first, last, _ = at.indices(self._size)
            return self._read(first, max(last - first, 0))
        if not 0 <= at - self._first < len(self._block):
            if not 0 <= at < self._size:
                raise IndexError(at)
            self._first, self._block = at, self._read(at, min(_BLOCK, self._size - at))
        return self._block[at - self._first]

    def _read(self, first: int, size: int) -> bytes:
        self._file.seek(first)
        found = self._file.read(size)
        if len(found) < size:
            raise Damaged("it is cut off, or its end is damaged")
        return found


Bytes: TypeAlias = bytes | mmap | FileBytes
Struct: TypeAlias = dict[int, Any]


def check_parquet_file(path: str | PathLike[str]) -> None:
    """Raise Damaged if a file claims what it cannot hold. A file is checked again only after a change."""
    state = Path(path).stat()
    _check_file(str(Path(path).absolute()), state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=1024)
def _check_file(path: str, *_state: int) -> None:
    """Check a file in some state; an error is not remembered."""
    with Path(path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        check_parquet(content)


def check_parquet(content: Bytes, per_byte: int | None = None) -> None:
    """Raise Damaged if a file claims what it cannot hold; with `per_byte`, also if it is much larger when unpacked."""
    begin = footer_start(content)
    if len(content) - begin > _LARGEST_FOOTER:
        if per_byte is None:
            return
        raise Damaged(f"its footer has {len(content) - begin:,} bytes")
    try:
        footer, end = _struct(content[begin:], 0, 0)
        if begin + end > len(content) - _TAIL:
            raise Damaged("its footer is cut off")
        groups = footer[_ROW_GROUPS]
        _check_schema(footer[_SCHEMA])
        pages = len(content) <= _LARGEST_FILE or per_byte is not None
        sizes = [_check_group(content, begin, group, pages=pages) for group in groups]
        if sum(group[_GROUP_ROWS] for group in groups) != footer[_ROWS]:
            raise Damaged("its footer contradicts itself: the number of rows")
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise Damaged("its footer or a page header is malformed") from error
    if per_byte is not None:
        check_size(sum(size.values for size in sizes), "values", len(content), per_byte, _MANY_VALUES)
        check_size(sum(size.unpacked for size in sizes), "bytes", len(content), per_byte)


def check_size(size: int, unit: str, packed: int, per_byte: int, most: int = 2**28) -> None:
    """Raise Damaged if a file of some bytes contains much more: more than `most`, and than `per_byte` in each byte."""
    if size > per_byte * packed + most:
        raise Damaged(f"it claims {size:,} {unit} in {packed:,} bytes")


def footer_start(content: Bytes) -> int:
    """The offset of the footer."""
    if content[:4] != MAGIC:
        raise Damaged("it is not a Parquet file")
    begin = len(content) - _TAIL - int.from_bytes(content[-_TAIL:-4], "little")
    if content[-4:] != MAGIC or begin < len(MAGIC):
        raise Damaged("it is cut off, or its end is damaged")
    return begin


def add_checksum(path: Path) -> None:
    """Insert a checksum of everything else before the footer, where Parquet readers do not look."""
    with path.open("r+b") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        begin = footer_start(content)
        checksum, footer = _checksum(content, begin, begin), content[begin:]
        file.seek(begin)
        file.write(_MARK + checksum + footer)


def check_checksum(content: Bytes) -> bool:
    """Raise Damaged if a file does not match its checksum; False for files of other programs, which have none."""
    begin = footer_start(content)
    mark = begin - _DIGEST - len(_MARK)
    if mark < len(MAGIC) or content[mark : mark + len(_MARK)] != _MARK:
        return False
    if content[begin - _DIGEST : begin] != _checksum(content, mark, begin):
        raise Damaged("its checksum does not match: some of its bytes were changed")
    return True


def _checksum(content: Bytes, end: int, begin: int) -> bytes:
    """A digest of the bytes up to `end`, and from `begin` on."""
    digest = blake2b(digest_size=_DIGEST)
    for first, last in ((0, end), (begin, len(content))):
        for at in range(first, last, _CHUNK):
            digest.update(content[at : min(at + _CHUNK, last)])
    return digest.digest()


def _check_schema(elements: Sequence[Struct]) -> None:
    """Refuse a tree of columns that is too deep, or has other elements than it claims."""
    open_children: list[int] = []
    for element in elements:
        if len(open_children) > DEEPEST:
            raise Damaged(f"its columns are nested more than {DEEPEST} levels deep")
        if open_children:
            open_children[-1] -= 1
        open_children.append(element.get(_CHILDREN, 0))
        while open_children and open_children[-1] == 0:
            open_children.pop()
        if open_children and not 0 < open_children[-1] <= len(elements):
            raise Damaged("its schema contradicts itself")
    if open_children:
        raise Damaged("its schema contradicts itself")


class _Size(NamedTuple):
    """The size of a row group or of a column in it."""

    values: int
    unpacked: int


def _check_group(content: Bytes, end: int, group: Struct, *, pages: bool) -> _Size:
    """The size of a row group; each column must have pages for all of its values."""
    rows, values, unpacked = group[_GROUP_ROWS], 0, 0
    for chunk in group[_CHUNKS]:
        meta = chunk[_META]
        first = min([at for at in (meta[_DATA], meta.get(_DICTIONARY)) if at], default=0)
        last = first + meta[_PACKED]
        if first != last and not len(MAGIC) <= first <= last <= end:
            raise Damaged("the place of a column is outside the file")
        size = _page_sizes(content, first, last, meta) if pages else _Size(meta[_VALUES], meta[_UNPACKED])
        if not 0 <= rows <= meta[_VALUES] == size.values:
            raise Damaged("a column has fewer or more values than its footer claims")
        values, unpacked = values + size.values, unpacked + size.unpacked
    return _Size(values, unpacked)


def _page_sizes(content: Bytes, first: int, last: int, meta: Struct) -> _Size:
    """The size of the pages of a column."""
    values, total, most = 0, 0, max(meta[_VALUES], 0)
    while first < last:
        header, first = _struct(content, first, 0)
        unpacked, packed = header[_PAGE_UNPACKED], header[_PAGE_PACKED]
        if not (0 <= packed <= last - first and 0 <= unpacked <= max(meta[_UNPACKED], packed)):
            raise Damaged("a page is larger than its column")
        first, total = first + packed, total + unpacked
        page = header.get(_DATA_PAGE) or header.get(_DATA_PAGE_2)
        own = (page or header[_DICTIONARY_PAGE])[1]
        if not 0 <= own <= (most if page else unpacked + most):
            raise Damaged("a page claims more values than its column has")
        values += own if page else 0
    return _Size(values, total)


def _struct(content: Bytes, at: int, depth: int) -> tuple[Struct, int]:
    """A struct in Thrift's compact protocol: numbers and nested structs by field number; texts are skipped."""
    if depth > DEEPEST:
        raise Damaged("its footer is nested too deeply")
    found: Struct = {}
    number = 0
    while kind := content[at]:
        at += 1
        if step := kind >> 4:
            number += step
        else:
            number, at = _integer(content, at)
        kind &= 15
        if kind in (_TRUE, _FALSE):
            continue
        if kind in _INTEGERS and (byte := content[at]) < _ONE_BYTE:  # most of all values: a call takes longer
            found[number], at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            found[number], at = _value(content, at, kind, depth)
    return found, at + 1


def _value(content: Bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(content, at)
    if kind == _BINARY:
        size, at = _varint(content, at)
        return None, _inside(content, at + size)
    if kind == _STRUCT:
        return _struct(content, at, depth + 1)
    if kind in (_BYTE, _TRUE, _FALSE, _DOUBLE):
        return None, _inside(content, at + (8 if kind == _DOUBLE else 1))
    if kind not in _LISTS:
        raise Damaged("its footer or a page header is malformed")
    if depth > DEEPEST:
        raise Damaged("its footer is nested too deeply")
    size, kind = content[at] >> 4, content[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(content, at)
    _inside(content, at + size)  # an element has at least one byte
    elements = []
    for _ in range(size):
        element, at = _value(content, at, kind, depth + 1)
        elements.append(element)
    return elements, at


def _inside(content: Bytes, at: int) -> int:
    if at > len(content):
        raise Damaged("its footer claims more than the file holds")
    return at


def _integer(content: Bytes, at: int) -> tuple[int, int]:
    number, at = _varint(content, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(content: Bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in count(0, 7):
        byte = content[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < _ONE_BYTE:
            return number, at
        if shift > 63:
            break
    raise Damaged("its footer or a page header is malformed")
