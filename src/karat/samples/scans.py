"""Tables that Polars reads a piece at a time: Parquet, Arrow and CSV files, one or many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from karat.errors import InputError, first_line
from karat.samples.fields import LONG, is_long, long_column
from karat.samples.long_records import has_records
from karat.samples.sources import Source

if TYPE_CHECKING:
    import polars as pl


@contextmanager
def told(source: Source) -> Iterator[None]:
    """Turn what Polars and the system say of a file into an error that names it."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source.name}: cannot be read: {first_line(error)}") from error


def scan(source: Source, side: str | None = None) -> pl.LazyFrame:
    """The table, of which only the columns that are needed will be read."""
    with told(source):
        frame = _scan(source)
        names = frame.collect_schema().names()
        wanted = needed(names, side)
        if source.is_table and len(source.files) > 1:
            _check_columns(source, wanted)
    return frame.select(wanted)


def needed(columns: Sequence[str], side: str | None = None) -> list[str]:
    """The columns of a long table that play a part; all columns if there is more to an item than its id."""
    if not is_long(columns) or has_records(columns):
        return list(columns)
    found = {role: name for role in LONG if (name := long_column(columns, role)) is not None}
    if not found.keys() & {"score", "rank", "grade"}:
        return list(columns)  # whoever reads it looks for a column that is misnamed
    if side == "retrieved" and "score" in found:
        found = {role: found[role] for role in ("query", "item", "score") if role in found}
    return list(dict.fromkeys(found.values()))


def _scan(source: Source) -> pl.LazyFrame:
    import polars as pl

    files: Any = list(source.files)
    if source.remote:
        files = files[0]
    options: dict[str, Any] = {"glob": source.remote}
    if source.kind == ".parquet":
        return pl.scan_parquet(files, hive_partitioning=source.hive, extra_columns="ignore", **options)
    if source.kind == ".arrow":
        return pl.scan_ipc(files, hive_partitioning=source.hive, **options)
    separator = "\t" if source.kind == ".tsv" else ","
    # Cells as text; only what is a list is read further, by whoever wants one.
    frame = pl.scan_csv(files, separator=separator, infer_schema=False, encoding="utf8", **options)
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines


def _check_columns(source: Source, wanted: Sequence[str]) -> None:
    """Refuse a file whose columns are of other types than those of the first, naming both."""
    import polars as pl

    first: dict[str, Any] | None = None
    for file in source.files:
        with told(source._replace(name=file)):
            own = pl.read_parquet_schema(file) if source.kind == ".parquet" else pl.read_ipc_schema(file)
        types = {name: own[name] for name in wanted if name in own}
        first = types if first is None else first
        for name in [name for name in wanted if types.get(name) != first.get(name)]:
            mine, theirs = (str(known.get(name, "missing")) for known in (types, first))
            raise InputError(f'{file}: column "{name}" is {mine}, but {theirs} in {source.files[0]}')
