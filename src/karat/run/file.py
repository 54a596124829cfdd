"""Run files: one Parquet file, readable with any Parquet reader, with the provenance in its footer.

One row per query: `query_id`, `query` if given, each metric under its name, then what the scores were computed
from: `depth`, `gold` (items and grades), `hits` (rank, gold item, grade, reason), `along.<name>` and `size.<name>` if
texts were measured (cumulative quantities at each rank, and what they are compared with), the stored items
(`retrieved`, `gold_items`), and each field of the samples as `meta.<field>`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from io import BytesIO
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np

from karat._internal.arrays import Ints, row_number, starts
from karat._internal.display import valid_utf8
from karat._internal.grammar import parse_call
from karat._internal.output import atomic_path, check_outputs, is_special
from karat.conventions import CONVENTIONS, STANDARD, Convention
from karat.errors import BadArgument, KaratError, RunFileError, first_line
from karat.hits import Gold, Hits
from karat.hits.totals import Totals
from karat.metrics import Metric
from karat.metrics.names import parse_stored
from karat.run.provenance import Provenance
from karat.run.run import Run
from karat.run.stored_items import Extent, StoredItems, read_marks, strings

if TYPE_CHECKING:
    import polars as pl

_NAN = "nan"
_STORED_AS = {"renames": "calls"}
"""Fields of a convention that run files store under another name."""
_RETRIEVED, _GOLD = "retrieved", "gold_items"
_FORMAT = 1
_KEY = "karat"
_META = "meta."
_ALONG = "along."
_SIZE = "size."

_OTHER_FORMATS = {
    ".csv": 'run.table.write_csv("{}")', ".tsv": r'run.table.write_csv("{}", separator="\t")',
    ".xlsx": 'run.table.write_excel("{}")',
    ".arrow": 'run.table.write_ipc("{}")', ".feather": 'run.table.write_ipc("{}")',
    ".jsonl": 'run.table.write_ndjson("{}")', ".ndjson": 'run.table.write_ndjson("{}")', ".json": "run.to_dict()",
    ".md": "run.to_markdown()", ".txt": "str(run)", ".html": 'run.report("{}")', ".htm": 'run.report("{}")',
}  # fmt: skip
"""Endings of files that are not Parquet, and how to write such a file."""


def check_path(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None], option: str = "") -> None:
    """Refuse a path at which no run can be saved, that promises another format, or that is one of the inputs."""
    other = _OTHER_FORMATS.get(Path(path).suffix.lower())
    if other is not None:
        hint = f"{Path(path).with_suffix('.parquet')}, or {other.format(path)}"
        raise RunFileError("a run is saved as Parquet", got=str(path), hint=hint)
    check_outputs({option: path}, inputs)
    if is_special(path):
        raise BadArgument(f"cannot write {path}: it is not a file", hint=f"{option} run.parquet".strip())


def save(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run to a temporary file, then rename it: there is never a partial run file."""
    import msgspec
    import polars as pl

    sources = [] if run.file else [run.provenance.source, *run.provenance.source.split(", ")]
    try:
        check_path(path, filter(os.path.isfile, sources))  # type: ignore[arg-type]
    except BadArgument as error:
        raise RunFileError(error.problem, hint=error.hint) from error
    about = {
        "format": _FORMAT,
        "provenance": run.provenance.to_dict(),
        "convention": write_choices(run.convention),
        "gold_hash": run.gold_hash,
        "open": run.all_hits.gold_items.incomplete,
        "items": None if run.stored_items is None else about_items(run.stored_items, run.all_hits.gold_items),
    }
    frame = _frame(run)
    try:
        with atomic_path(path) as place:
            frame.write_parquet(place, compression_level=1, metadata={_KEY: msgspec.json.encode(about).decode()})
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise RunFileError(f"cannot write {path}: {first_line(error).rpartition('IO error: ')[2]}") from error


def load(path: str | os.PathLike[str]) -> Run:
    """Load a saved run.

    Args:
        path: the path of a run file, as `run.save` or `karat eval -o` wrote it.

    Returns:
        The run, with its scores, hits, gold, stored items and provenance.

    Example:
        >>> karat.load("run.parquet").mean["recall@5"]
    """
    import msgspec
    import polars as pl

    source = Path(path)
    try:
        content = b""
        if not source.is_file():
            raise RunFileError(f"no run file {source}")
        content = source.read_bytes()  # as bytes: Polars takes brackets in a path for a pattern
        written = pl.read_parquet_metadata(BytesIO(content)).get(_KEY)
        frame = pl.read_parquet(content)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        if isinstance(error, RunFileError):
            raise
        hint = f"karat eval {source} -o run.parquet"
        if content and not content.startswith(b"PAR1"):
            raise RunFileError(f"{source} is not a run file", hint=hint) from error
        raise RunFileError(f"{source} cannot be read: {first_line(error)}") from error
    if written is None:
        hint = f"karat eval {source} -o run.parquet"
        raise RunFileError(f"{source} is a Parquet file, but not a run file", hint=hint)
    try:
        about = msgspec.json.decode(written)
        if about["format"] > _FORMAT:
            raise RunFileError(f"{source} was written by a newer karat ({about['provenance']['karat']})")
        return _run(frame, about, str(source))
    except (msgspec.DecodeError, KeyError, TypeError, KaratError, pl.exceptions.PolarsError) as error:
        if isinstance(error, RunFileError):
            raise
        raise RunFileError(f"{source} is a damaged run file: {first_line(error)}") from error


def as_run(given: object) -> Run:
    """A run itself, or the run of a run file."""
    if isinstance(given, Run):
        return given
    if isinstance(given, str | os.PathLike):
        return load(given)
    raise BadArgument("expected a run, or the path of a run file", got=given, hint='"main.parquet"')


def _frame(run: Run) -> pl.DataFrame:
    import polars as pl

    hits, rows = run.all_hits, len(run)
    within = hits.gold - hits.gold_items.start[hits.query]
    why = pl.repeat(hits.why, len(hits), eager=True) if isinstance(hits.why, str) else _texts(hits.why)
    found = pl.DataFrame(
        {
            "rank": hits.rank,
            "gold": within,
            "grade": hits.grade,
            "repeated": hits.repeated,
            "part": np.zeros(len(hits), bool) if hits.part is None else hits.part,
            "why": why,
        }
    )
    gold = pl.DataFrame({"item": _texts(hits.gold_items.label), "grade": hits.gold_items.grade})
    columns: dict[str, Any] = {"query_id": valid_utf8(run.ids)}
    if run.query is not None:
        columns["query"] = _texts(run.query)
    columns |= run.scores
    columns["depth"] = hits.depth
    if hits.failed:
        columns["failed"] = _texts([hits.failed.get(row) for row in range(rows)])
    columns["gold"] = nest(gold, hits.gold_items.start)
    columns["hits"] = nest(found, starts(np.bincount(hits.query, minlength=rows)))
    for name, sizes in hits.totals.sizes.items():
        columns[_SIZE + name] = sizes
    for name, total in hits.totals.at_rank.items():
        at_rank = pl.DataFrame({name: total})
        columns[_ALONG + name] = nest(at_rank, starts(hits.depth), records=False)
    columns |= {} if run.stored_items is None else item_columns(run.stored_items, hits.gold_items)
    for name, values in run.meta.items():
        columns[_META + name] = field_series(values)
    return pl.DataFrame(columns)


def field_series(values: Any) -> pl.Series:
    """A field of the samples as a column; values of several or complex types are written as text."""
    import polars as pl

    try:
        column = pl.Series(values, strict=True)
        if not column.dtype.is_nested() and column.dtype != pl.Object:
            return column
    except (TypeError, ValueError, OverflowError, UnicodeError, pl.exceptions.PolarsError):
        pass
    return _texts(values)


def _texts(values: Sequence[Any]) -> pl.Series:
    """Texts as a column, whatever they are; most are strings, which need no conversion."""
    import polars as pl

    try:
        return pl.Series(list(values), dtype=pl.String, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):  # other types, or lone surrogates
        pass
    safe = valid_utf8(["" if value is None else str(value) for value in values])
    return pl.Series([None if v is None else text for v, text in zip(values, safe, strict=True)], dtype=pl.String)


def _run(frame: pl.DataFrame, about: dict[str, Any], file: str) -> Run:
    given = about["provenance"]
    provenance = Provenance.from_dict(_of_judge_name(given["judge"]) | given)
    metrics: tuple[Metric, ...] = tuple(parse_stored(text) for text in provenance.metrics)
    hits, items = _hits(frame, open_gold=about.get("open", False)), about.get("items")
    convention = _convention(about["convention"], provenance)
    return Run(
        ids=frame["query_id"].to_list(),
        hits=hits,
        metrics=metrics,
        convention=convention,
        scores={name: frame[name].to_numpy() for metric in metrics for name in metric.names},
        provenance=replace(provenance, convention=convention.name),
        query=frame["query"].to_list() if "query" in frame.columns else None,
        items=None if items is None else _stored_items(frame, hits.gold_items, items),
        meta={name.removeprefix(_META): frame[name].to_list() for name in frame.columns if name.startswith(_META)},
        file=file,
    )


def _of_judge_name(name: str) -> dict[str, Any]:
    """What a judge compares, and its settings, for files of karat 0.1, which have only its name."""
    try:
        call = parse_call(name)
    except KaratError:
        return {"compares": "text"}
    compares = {"ids": "id", "contains": "quote", "spans": "span", "claims": "claim", "relevance": "claim"}
    kind = "doc" if call.named.get("at") == "doc" else compares.get(call.name, "text")
    return {"compares": kind, "judge_settings": dict(call.named)}


def _convention(written: Mapping[str, Any], provenance: Provenance) -> Convention:
    """The convention of a run. Files without the order of lists sorted them, which matters only if a note says so."""
    convention = read_choices({"order": CONVENTIONS.get(provenance.convention, STANDARD).order, **written})
    sorted_lists = any(note.kind in ("reordered_by_score", "ties_by_id") for note in provenance.notes)
    return convention.adjusted({"order": "score"}) if sorted_lists and "order" not in written else convention


def _hits(frame: pl.DataFrame, *, open_gold: bool) -> Hits:
    gold_size = frame["gold"].list.len().to_numpy().astype(np.int64)
    start = starts(gold_size)
    gold = frame["gold"].explode(empty_as_null=False).struct.unnest()
    query = np.repeat(np.arange(len(frame)), frame["hits"].list.len().to_numpy().astype(np.int64))
    hits = frame["hits"].explode(empty_as_null=False).struct.unnest()
    why = hits["why"].to_list()
    depth = frame["depth"].to_numpy()
    return Hits(
        query,
        hits["rank"].to_numpy(),
        hits["gold"].to_numpy() + start[query],
        depth=depth,
        gold_items=Gold(gold["item"].to_list(), start, gold["grade"].to_numpy(), open_gold),
        grade=hits["grade"].to_numpy(),
        repeated=hits["repeated"].to_numpy(),
        part=hits["part"].to_numpy(),
        why=why[0] if len(set(why)) == 1 else why,
        totals=_totals(frame, depth),
        notes=(),
        failed=_failed(frame),
    )


def _failed(frame: pl.DataFrame) -> dict[int, str]:
    """The queries that could not be judged, with the reason."""
    causes = frame["failed"].to_list() if "failed" in frame.columns else []
    return {row: why for row, why in enumerate(causes) if why is not None}


def _totals(frame: pl.DataFrame, depth: Ints) -> Totals:
    """The totals as stored."""
    totals, sizes = {}, {}
    for column in frame.columns:
        if column.startswith(_ALONG):
            flat = frame[column].explode(empty_as_null=False)
            totals[column.removeprefix(_ALONG)] = flat.to_numpy().astype(float)
        elif column.startswith(_SIZE):
            sizes[column.removeprefix(_SIZE)] = frame[column].to_numpy()
    return Totals(depth, totals, sizes)


def write_choices(convention: Convention) -> dict[str, Any]:
    """The choices as JSON values."""
    names = [field.name for field in fields(convention)]
    return {_STORED_AS.get(name, name): _written(getattr(convention, name)) for name in names}


def _written(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _written(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_written(one) for one in value]
    return _NAN if isinstance(value, float) and isnan(value) else value


def read_choices(written: Mapping[str, Any]) -> Convention:
    """The convention that was written; a choice that is not in the file is that of the standard."""
    hints = get_type_hints(Convention)
    names = {stored: name for name, stored in _STORED_AS.items()}
    choices = {names.get(name, name): value for name, value in written.items()}
    return Convention(**{name: _read(value, hints.get(name)) for name, value in choices.items()})


def _read(value: Any, hint: Any = float) -> Any:
    """A value of the type of its field: JSON has neither tuples nor NaN, which older files write as null."""
    if isinstance(value, dict):
        return {name: _read(one, float | None) for name, one in value.items()}
    if isinstance(value, list):
        return tuple(map(_read, value))
    if hint is float and value is None:
        return nan
    return nan if value == _NAN and (hint is float or float in get_args(hint)) else value


def item_columns(items: StoredItems, of: Gold) -> dict[str, pl.Series]:
    """The items as nested columns, one list of records per query; of the gold, what other columns do not contain."""
    label = _label_field(items, of)
    known = ("label",) if label is None else ("label", "grade", "item", label)
    gold = {name: column for name, column in items.gold.items() if name not in known}
    columns = {_RETRIEVED: _nested(items.given, items.start)}
    return columns | ({_GOLD: _nested(gold, items.gold_start)} if gold else {})


def about_items(items: StoredItems, of: Gold) -> dict[str, Any]:
    """How much of the items is stored, and which field the labels of the gold are."""
    return {**items.extent._asdict(), "label": _label_field(items, of), "lengths": True}


def _label_field(items: StoredItems, of: Gold) -> str | None:
    """The field that the labels consist of, if the stored gold is just the gold of the run."""
    gold = items.gold
    if gold["item"] != row_number(of.start).tolist() or gold["grade"] != of.grade.tolist():
        return None
    return next((name for name in ("id", "text") if gold.get(name) == of.label), None)


def _nested(columns: Mapping[str, Any], start: Ints) -> pl.Series:
    import polars as pl

    kinds: dict[str, Any] = {"item": pl.Int32, "seen": pl.Boolean, "score": pl.Float64, "grade": pl.Float64}
    kinds |= dict.fromkeys(("start", "end", "length"), pl.Int64)
    flat = [pl.Series(n, c, dtype=kinds[n]) if n in kinds else _text_column(n, c) for n, c in columns.items()]
    return nest(pl.DataFrame(flat), start)


def _text_column(name: str, column: list[Any]) -> pl.Series:
    """A column of ids or texts; the texts, which repeat from query to query, are stored once each."""
    import polars as pl

    series = _texts(strings(name, column)).alias(name)
    return series.cast(pl.Categorical) if name == "text" else series


def nest(flat: pl.DataFrame, start: Ints, *, records: bool = True) -> pl.Series:
    """Flat rows as one list per query."""
    import polars as pl

    rows, size = len(start) - 1, np.diff(start)
    whole = flat.to_struct("list") if records else flat.to_series().alias("list")
    width = int(size[0]) if rows else 0
    if width and (size == width).all():
        return whole.reshape((rows, width)).arr.to_list()
    lists = pl.DataFrame({"query": np.repeat(np.arange(rows), size), "list": whole})
    lists = lists.group_by("query", maintain_order=True).agg("list")
    every = pl.DataFrame({"query": np.arange(rows)}).join(lists, on="query", how="left", maintain_order="left")
    return every["list"].fill_null([])


def _stored_items(frame: pl.DataFrame, of: Gold, about: Mapping[str, Any]) -> Callable[[], StoredItems]:
    """A function that reads the items when they are first needed; missing columns are noticed now."""
    columns = frame.select(_RETRIEVED, *(name for name in frame.columns if name == _GOLD))
    extent = Extent(about["places"], about["whole"])
    return partial(_read_items, columns, of, extent, about["label"], lengths="lengths" in about)


def _read_items(frame: pl.DataFrame, of: Gold, extent: Extent, label: str | None, *, lengths: bool) -> StoredItems:
    gold, start = _flat(frame[_GOLD]) if _GOLD in frame.columns else ({}, of.start)
    if label is not None:
        gold |= {label: list(of.label), "item": row_number(of.start).tolist(), "grade": of.grade.tolist()}
    first = np.repeat(of.start[:-1], np.diff(start)).tolist()
    gold["label"] = [of.label[begin + item] for begin, item in zip(first, gold["item"], strict=True)]
    retrieved, begin = _flat(frame[_RETRIEVED])
    for side in () if lengths else (retrieved, gold):
        read_marks(side)
    return StoredItems(retrieved, begin, gold, start, extent)


def _flat(column: pl.Series) -> tuple[dict[str, list[Any]], Ints]:
    flat = column.explode(empty_as_null=False).struct.unnest()
    size = column.list.len().to_numpy().astype(np.int64)
    return {name: flat[name].to_list() for name in flat.columns}, starts(size)
