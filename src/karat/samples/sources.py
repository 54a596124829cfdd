"""Sources: a file, a folder, a glob pattern, Hive partitions, or an address in an object store."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Sequence
from glob import glob, has_magic
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from karat.errors import InputError, first_line, nearest_file

if TYPE_CHECKING:
    from karat.samples.field_map import FieldMap

_COMPRESSED = (".gz", ".zst")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_PACKINGS = {_GZIP: "gzip", _ZSTD: "zstd"}
"""The first bytes of compressed files, by which Polars recognizes them, too."""
_ZLIB = (b"\x78\x01", b"\x78\x9c", b"\x78\xda")
"""The first bytes of what Polars takes for compressed in another way, if it is not a file."""
_TABLES = {".parquet": ".parquet", ".arrow": ".arrow", ".ipc": ".arrow", ".feather": ".arrow"}
_ROWS = {".jsonl": ".jsonl", ".ndjson": ".jsonl"}
_KINDS = {**_TABLES, **_ROWS, ".csv": ".csv", ".tsv": ".tsv", ".json": ".json"}
MIXED = "mixed"
"""The kind of files of different formats, which only traces may have."""
_REMOTE = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_PARTITION = re.compile(r"[^/\\=]+=[^/\\]*")
STANDARD_INPUT = "-"
_HEAD = 1 << 16
"""The bytes of the first line that is not blank, which decides the format; it may be larger than memory."""
_HEAD_LINES = 1000
"""The number of lines searched for it, where only Polars can unpack them."""


class Source(NamedTuple):
    """One or more files that form one table."""

    name: str
    """The name for messages."""
    kind: str
    """`.parquet`, `.arrow`, `.csv`, `.tsv`, `.jsonl` or `.json`; for other endings the first line decides; or MIXED."""
    files: tuple[str, ...]
    size: int = 0
    """The size of all files in bytes; 0 if they are remote."""
    remote: bool = False
    hive: bool = False
    fields: FieldMap | None = None
    """The columns that are read as karat's fields, if the caller names them."""

    @property
    def is_table(self) -> bool:
        """True if the files have a schema."""
        return self.kind in (".parquet", ".arrow")

    def each(self) -> list[Source]:
        """The files one by one, as far as they are known."""
        if len(self.files) == 1:
            return [self]
        return [self._replace(name=file, files=(file,), kind=kind_of(file)) for file in self.files]


def find_source(value: str | PathLike[str]) -> Source:
    """The files of a path, a folder, a pattern or an address."""
    name = str(value)
    if name == STANDARD_INPUT:
        return Source("standard input", "", (name,))
    if _REMOTE.match(name) and not name.startswith("file://"):
        return _remote(name)
    path = Path(name.removeprefix("file://"))
    try:
        if path.is_dir():
            return _of_files(name, [file for file in sorted(path.rglob("*")) if _is_data(file, path)], path)
        if not path.exists() and has_magic(name):
            found = [Path(file) for file in sorted(glob(name, recursive=True))]  # noqa: PTH207
            return _of_files(name, [file for file in found if file.is_file()], None)
        if not path.exists():
            raise _no_file(path)
        size = path.stat().st_size if path.is_file() else 0
        if path.is_file() and size == 0:
            raise InputError(f"{path}: the file is empty")
        _check_name(path)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name[:80]}: cannot be opened: {first_line(error)}") from error
    return Source(str(path), kind_of(path.name), (str(path),), size)


def kind_of(name: str) -> str:
    """The format by the ending of a name: `.jsonl` for `results.ndjson.gz`."""
    name = name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    ending = Path(name).suffix
    return _KINDS.get(ending, ending)


def packing(file: str | PathLike[str]) -> str:
    """The compression of a local file, "gzip", "zstd" or "", whatever its ending."""
    with Path(file).open("rb") as stream:
        begin = stream.read(4)
    return next((name for first, name in _PACKINGS.items() if begin.startswith(first)), "")


def open_unpacked(file: str | PathLike[str]) -> BinaryIO | None:
    """The bytes of a local file, unpacked; None if only Polars can unpack it: zstd, where PyArrow is not installed."""
    kind = packing(file)
    if kind != "zstd":
        return cast("BinaryIO", gzip.open(file)) if kind else Path(file).open("rb")
    if find_spec("pyarrow") is None:
        return None
    return cast("BinaryIO", import_module("pyarrow").CompressedInputStream(str(file), "zstd"))


def is_packed(content: bytes) -> bool:
    """True for the bytes of a compressed file, which Polars would unpack."""
    return content.startswith((_GZIP, _ZSTD, *_ZLIB))


def unpacked(content: bytes, most: int) -> bytes:
    """The bytes of a compressed file in memory that may be from anybody: at most one more than `most`.

    Raises an OSError, EOFError or zlib.error if it cannot be unpacked.
    """
    if content.startswith(_ZSTD):
        if find_spec("pyarrow") is None:
            raise OSError("it is compressed by zstd; gzip is read without pyarrow")
        stream = import_module("pyarrow").CompressedInputStream(BytesIO(content), "zstd")
    elif content.startswith(_GZIP):
        stream = gzip.GzipFile(fileobj=BytesIO(content))
    else:
        return zlib.decompressobj().decompress(content, most + 1)
    with stream as file:
        return bytes(file.read(most + 1))


def first_text(source: Source, content: str | bytes) -> str:
    """The first line that is not blank, or its begin if it is long."""
    stream = None if isinstance(content, bytes) or source.remote else open_unpacked(content)
    if stream is None:
        import polars as pl

        head = pl.read_lines(content, n_rows=_HEAD_LINES, glob=False)["line"]
        return next(filter(str.strip, head), "")
    begin = b""
    with stream as file:
        while len(begin) < _HEAD and (block := file.read(_HEAD)):
            begin = (begin + block).lstrip()
    return begin.partition(b"\n")[0].decode(errors="replace")


def text_lines(source: Source, content: str | bytes) -> list[str]:
    """Every line of a text without its end; Polars, which takes long to import, reads what is packed or remote."""
    if source.remote or (packing(content) if isinstance(content, str) else is_packed(content)):
        import polars as pl

        return pl.read_lines(content, glob=False)["line"].to_list()
    with Path(content).open("rb") if isinstance(content, str) else BytesIO(content) as stream:
        lines = TextIOWrapper(stream, "utf-8", newline="\n")
        return [line.removesuffix("\n").removesuffix("\r") for line in lines]


def _of_files(name: str, files: list[Path], folder: Path | None) -> Source:
    """Several files as one table, or as traces of different formats."""
    if not files:
        problem = "the folder has no file that karat can read" if folder else "no file matches"
        raise InputError(f"{name}: {problem}", hint="Parquet, Arrow, CSV, JSONL or TREC files")
    kinds = {kind_of(file.name) for file in files}
    if len(kinds) > 1 and not kinds <= {*_KINDS.values()}:
        raise different_formats(name, files)
    if empty := [file for file in files if file.stat().st_size == 0]:
        raise InputError(f"{empty[0]}: the file is empty")
    for file in files:
        _check_name(file)
    inside = [file.relative_to(folder).parts[:-1] if folder else file.parts[:-1] for file in files]
    return Source(
        name,
        MIXED if len(kinds) > 1 else next(iter(kinds)),
        tuple(map(str, files)),
        sum(file.stat().st_size for file in files),
        hive=any(_PARTITION.fullmatch(part) for parts in inside for part in parts),
    )


def different_formats(name: str, files: Sequence[str | Path]) -> InputError:
    """The error for files that form no table, with a pattern of those that are like the first one."""
    first = {kind_of(str(file)): str(file) for file in reversed(files)}
    pattern = str(Path(files[0]).with_name(f"*{Path(files[0]).suffix}"))
    return InputError(f"{name}: files of different formats", got=", ".join(list(first.values())[:3]), hint=pattern)


def _check_name(file: Path) -> None:
    """Refuse a name that Polars cannot open."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        raise InputError("the name of the file is not valid UTF-8: rename it", got=str(file)) from None


def _is_data(file: Path, folder: Path) -> bool:
    """True unless a file is hidden or a marker such as `_SUCCESS`."""
    hidden = any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    return not hidden and file.is_file()


def _remote(name: str) -> Source:
    kind = kind_of(name.partition("?")[0].rstrip("/*"))
    if kind not in _KINDS.values():
        raise InputError(f"{name}: unknown file format", hint=f"{name.rstrip('/')}/**/*.parquet")
    return Source(name, kind, (name,), remote=True, hive="=" in name)


def _no_file(path: Path) -> InputError:
    if path.with_name(f"{path.name}.collect").exists():
        problem = f"no file {path}: its collection is not finished, and the same command continues it"
        return InputError(problem, hint=f"karat collect … -o {path}")
    return InputError(f"no file {path}", hint=nearest_file(path))
