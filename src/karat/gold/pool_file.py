"""The file of a pool: Parquet, one row per query and item, then the gold that is known; atomic, with a checksum."""

from __future__ import annotations

import os
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np

from karat import __version__
from karat._internal.arrays import starts
from karat._internal.output import atomic_path, check_outputs, is_special
from karat._internal.panics import panics_as_errors
from karat._internal.parquet import MAGIC, Damaged, add_checksum, check_checksum, check_parquet
from karat.errors import BadArgument, KaratError, RunFileError, first_line
from karat.gold.known_gold import KnownGold
from karat.gold.pool import Pool, PoolItem, PoolQuery
from karat.gold.pool_sources import POOL_KEY
from karat.run.check import Texts
from karat.run.file import nest
from karat.run.file_version import PER_BYTE
from karat.run.frame import text_series
from karat.samples.notes import Note

if TYPE_CHECKING:
    import polars as pl

_FORMAT = 1
_TYPES = {
    "query_id": "String", "query": "String", "key": "String", "id": "String", "text": "Categorical", "doc": "String",
    "start": "Int64", "end": "Int64", "ranks": "List(Int64)", "judged": "Float64", "copies": "List(String)",
    "length": "Int64", "model": "Float64", "gold": "String",
}  # fmt: skip
"""The columns and their types. A row is an item, or, if it has `gold`, the known gold of a query as JSON."""


class _About(TypedDict):
    """The metadata of the file."""

    format: int
    karat: str
    runs: list[str]
    depth: int
    notes: list[dict[str, Any]]


def check_pool_path(path: str | os.PathLike[str], inputs: Any = (), option: str = "") -> None:
    """Refuse a path at which no pool can be saved, that promises another format, or that is one of the inputs."""
    if Path(path).suffix.lower() not in ("", ".parquet", ".pq"):
        raise BadArgument("a pool is saved as Parquet", got=str(path), hint=str(Path(path).with_suffix(".parquet")))
    check_outputs({option: path}, inputs)
    if is_special(path):
        raise BadArgument(f"cannot write {path}: it is not a file", hint=f"{option} pool.parquet".strip())


def save_pool(pool: Pool, path: str | os.PathLike[str]) -> None:
    """Write a pool to a temporary file, then rename it; the same pool gives the same bytes."""
    import msgspec
    import polars as pl

    check_pool_path(path)
    notes = [note.to_dict() for note in pool.notes]
    about = _About(format=_FORMAT, karat=__version__, runs=pool.runs, depth=pool.depth, notes=notes)
    frame = _frame(pool)
    try:
        with atomic_path(path) as place:
            with place.open("wb") as file:
                frame.write_parquet(file, compression_level=1, metadata={POOL_KEY: msgspec.json.encode(about).decode()})
            add_checksum(place)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise RunFileError(f"cannot write {path}: {first_line(error).rpartition('IO error: ')[2]}") from error


def _frame(pool: Pool) -> pl.DataFrame:
    import msgspec
    import polars as pl

    items = [item for query in pool.queries for item in query.items]
    sizes, known = [len(query.items) for query in pool.queries], pool.known
    nothing: list[None] = [None] * len(known)

    def repeated(cells: list[Any]) -> list[Any]:
        return [cell for cell, size in zip(cells, sizes, strict=True) for _ in range(size)]

    columns: dict[str, list[Any]] = {
        "query_id": [*repeated([query.id for query in pool.queries]), *(one.query_id for one in known)],
        "query": [*repeated([query.text for query in pool.queries]), *(one.query for one in known)],
    }
    cells = zip(PoolItem._fields, zip(*items, strict=True) if items else [()] * len(PoolItem._fields), strict=True)
    columns |= {name: [*own, *nothing] for name, own in cells}
    written = [{"gold": one.gold, "answerable": one.answerable} for one in known]
    columns["gold"] = [*([None] * len(items)), *(msgspec.json.encode(one).decode() for one in written)]
    kinds: dict[str, Any] = dict.fromkeys(("start", "end", "length"), pl.Int64)
    kinds |= dict.fromkeys(("judged", "model"), pl.Float64)

    def series(name: str) -> pl.Series:
        if name in ("ranks", "copies"):
            return _lists(columns[name], pl.Int64 if name == "ranks" else pl.String)
        return pl.Series(columns[name], dtype=kinds[name]) if name in kinds else text_series(columns[name])

    return pl.DataFrame({name: series(name) for name in _TYPES}).with_columns(pl.col("text").cast(pl.Categorical))


def _lists(cells: list[Any], kind: Any) -> pl.Series:
    """A column of lists; an empty one where there is nothing."""
    import polars as pl

    each = [own or () for own in cells]
    flat = pl.DataFrame({"flat": pl.Series(list(chain.from_iterable(each)), dtype=kind)})
    return nest(flat, starts(np.fromiter(map(len, each), np.int64, len(each))), records=False)


def read_pool(path: str | os.PathLike[str]) -> Pool:
    """Read a pool that `Pool.save` or `karat pool -o` wrote.

    Args:
        path: the path of the file. A damaged file is refused.
    """
    import polars as pl

    source = Path(path)
    try:
        if not source.is_file():
            raise RunFileError(f"no pool {source}", hint=f"karat pool bm25.jsonl dense.jsonl -o {source}")
        content = source.read_bytes()
        return _read(content, source)
    except RunFileError:
        raise
    except KaratError as error:
        raise RunFileError(f"{source} is a damaged pool: {error.problem}") from error
    except (
        ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError, RecursionError,
        pl.exceptions.PolarsError,
    ) as error:  # fmt: skip
        raise RunFileError(f"{source} is a damaged pool: {first_line(error)}") from error


def _read(content: bytes, source: Path) -> Pool:
    import msgspec
    import polars as pl

    hint = f"karat pool {source} -o pool.parquet"
    if not content.startswith(MAGIC):
        raise RunFileError(f"{source} is not a pool", hint=hint)
    check_checksum(content)
    check_parquet(content, PER_BYTE)
    with panics_as_errors():
        written = pl.read_parquet_metadata(BytesIO(content)).get(POOL_KEY)
        if written is None:
            raise RunFileError(f"{source} is a Parquet file, but not a pool", hint=hint)
        given = msgspec.json.decode(written)
        if isinstance(given, dict) and isinstance(given.get("format"), int) and given["format"] > _FORMAT:
            raise RunFileError(f"{source} was written by a newer karat")
        about = msgspec.convert(given, _About)
        frame = pl.read_parquet(content)
    _check(frame, about)
    texts = Texts(len(content), PER_BYTE)
    columns = {name: texts.read(frame[name]) for name in _TYPES}
    return _pool(columns, about)


def _check(frame: pl.DataFrame, about: _About) -> None:
    """Refuse a frame with other columns than a pool has, or with values that a pool cannot have."""
    for name, kind in _TYPES.items():
        if name not in frame.columns:
            raise Damaged(f'it has no column "{name}"')
        if not str(frame.schema[name]).startswith(kind):
            raise Damaged(f'column "{name}" is {frame.schema[name]}; expected {kind}')
    if frame["query_id"].null_count():
        raise Damaged('column "query_id" has no value in some row')
    for name in ("judged", "model"):
        if not frame[name].drop_nulls().is_finite().all():
            raise Damaged(f'column "{name}" has a grade that is not a finite number')
    _check_items(frame.filter(frame["gold"].is_null()), len(about["runs"]), about["depth"])


def _check_items(items: pl.DataFrame, runs: int, depth: int) -> None:
    if not 0 < depth < 2**31:
        raise Damaged(f"its depth is {depth}")
    for name in ("key", "ranks", "copies"):
        if items[name].null_count():
            raise Damaged(f'column "{name}" has no value for some item')
    if len(items) and not (items["ranks"].list.len() == runs).all():
        raise Damaged(f"an item does not have {runs} ranks, one per run")
    flat = {name: items[name].explode(empty_as_null=False, keep_nulls=False) for name in ("ranks", "copies")}
    if flat["copies"].null_count():
        raise Damaged("a copy of an item has no id")
    if not flat["ranks"].drop_nulls().is_between(1, depth).all():
        raise Damaged(f"a rank is not between 1 and {depth}")


class _Record(TypedDict):
    """A gold item as it is written."""

    grade: float
    id: NotRequired[str]
    text: NotRequired[str]
    doc: NotRequired[str]
    start: NotRequired[int]
    end: NotRequired[int]
    group: NotRequired[str]
    hop: NotRequired[int]
    aspects: NotRequired[list[str]]


class _Gold(TypedDict):
    gold: list[_Record]
    answerable: bool | None


def _pool(columns: dict[str, list[Any]], about: _About) -> Pool:
    import msgspec

    queries: dict[str, PoolQuery] = {}
    known = []
    columns |= {name: list(map(tuple, columns[name])) for name in ("ranks", "copies")}
    cells = list(zip(*(columns[name] for name in PoolItem._fields), strict=True))
    for query, text, gold, own in zip(columns["query_id"], columns["query"], columns["gold"], cells, strict=True):
        if gold is not None:
            read = msgspec.json.decode(gold, type=_Gold)
            known.append(KnownGold(query, text, list(map(dict, read["gold"])), read["answerable"]))
            continue
        item = PoolItem(*own)
        queries.setdefault(query, PoolQuery(query, text, [])).items.append(item)
    for one in queries.values():
        if len({item.key for item in one.items}) < len(one.items):
            raise Damaged(f'two items of the query "{one.id}" have the same key')
    notes = tuple(map(Note.from_dict, about["notes"]))
    return Pool(list(queries.values()), about["runs"], about["depth"], known, notes)
