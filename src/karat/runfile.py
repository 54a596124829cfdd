"""Run files: one Parquet file, readable with any Parquet reader, its provenance in the footer.

One row per query: `query_id`, `query` if there is one, each metric under its name, then what the
scores were made of: `depth`, `gold` (items and grades), `hits` (rank, gold item, grade, reason),
`along.<name>` and `size.<name>` if texts were measured (what was read down to each rank), what is
kept of the items (`retrieved`, `gold_items`), and each field of the samples as `meta.<field>`.
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.along import Along
from karat.arrays import Ints, starts
from karat.errors import BadArgument, KaratError, RunFileError, first_line
from karat.hits import Gold, Hits
from karat.metrics import Metric
from karat.metrics.names import parse_stored
from karat.provenance import Provenance
from karat.run import Run
from karat.stored import about_items, item_columns, nest, read_choices, stored_items, write_choices
from karat.tables import storable

if TYPE_CHECKING:
    import polars as pl

_FORMAT = 1
_KEY = "karat"
_META = "meta."
_ALONG = "along."
_SIZE = "size."


def save(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run beside the old file, then put it in its place: there is never half a file."""
    import msgspec
    import polars as pl

    about = {
        "format": _FORMAT,
        "provenance": run.provenance.to_dict(),
        "convention": write_choices(run.convention),
        "gold_hash": run.gold_hash,
        "open": run.all_hits.of.open,
        "items": None if run.kept is None else about_items(run.kept, run.all_hits.of),
    }
    target = Path(path)
    try:
        target = target.resolve()  # a link stays a link
        if target.exists() and not target.is_file():
            raise RunFileError(f"cannot write the run to {target}: it is not a file")
        frame = _frame(run)
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            frame.write_parquet(beside, compression_level=1, metadata={_KEY: msgspec.json.encode(about).decode()})
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        if isinstance(error, RunFileError):
            raise
        why = first_line(error) if target.parent.is_dir() else f"there is no folder {target.parent}"
        raise RunFileError(f"cannot write the run to {target}: {why}") from error


def load(path: str | os.PathLike[str]) -> Run:
    """Read a run that was saved."""
    import msgspec
    import polars as pl

    source = Path(path)
    try:
        content = b""
        if not source.is_file():
            raise RunFileError(f"no run file {source}")
        content = source.read_bytes()  # as bytes, for a path with brackets would be taken for a pattern
        written = pl.read_parquet_metadata(BytesIO(content)).get(_KEY)
        frame = pl.read_parquet(content)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        if isinstance(error, RunFileError):
            raise
        hint = f"karat eval {source} -o run.parquet, if these are samples"
        if content and not content.startswith(b"PAR1"):
            raise RunFileError(f"{source} is not a run file", hint=hint) from error
        raise RunFileError(f"{source} cannot be read: {first_line(error)}") from error
    if written is None:
        hint = f"karat eval {source} -o run.parquet, if these are samples"
        raise RunFileError(f"{source} is a Parquet file, but not a run of karat", hint=hint)
    try:
        about = msgspec.json.decode(written)
        if about["format"] > _FORMAT:
            raise RunFileError(f"{source} was written by a newer karat ({about['provenance']['karat']})")
        return _run(frame, about)
    except (msgspec.DecodeError, KeyError, TypeError, KaratError, pl.exceptions.PolarsError) as error:
        if isinstance(error, RunFileError):
            raise
        raise RunFileError(f"{source} is a damaged run file: {first_line(error)}") from error


def as_run(given: object) -> Run:
    """A run, or what is stored under the path of a run file."""
    if isinstance(given, Run):
        return given
    if isinstance(given, str | os.PathLike):
        return load(given)
    raise BadArgument("wanted a run, or the path of a run file", got=given, hint='"main.parquet"')


def _frame(run: Run) -> pl.DataFrame:
    import polars as pl

    hits, rows = run.all_hits, len(run)
    within = hits.gold - hits.of.start[hits.query]
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
    gold = pl.DataFrame({"item": _texts(hits.of.label), "grade": hits.of.grade})
    columns: dict[str, Any] = {"query_id": storable(run.ids)}
    if run.query is not None:
        columns["query"] = _texts(run.query)
    columns |= run.scores
    columns["depth"] = hits.depth
    if hits.failed:
        columns["failed"] = _texts([hits.failed.get(row) for row in range(rows)])
    columns["gold"] = nest(gold, hits.of.start)
    columns["hits"] = nest(found, starts(np.bincount(hits.query, minlength=rows)))
    for name, sizes in hits.along.sizes.items():
        columns[_SIZE + name] = sizes
    for name, total in hits.along.totals.items():
        at_rank = pl.DataFrame({name: total})
        columns[_ALONG + name] = nest(at_rank, starts(hits.depth), records=False)
    columns |= {} if run.kept is None else item_columns(run.kept, hits.of)
    for name, values in run.meta.items():
        columns[_META + name] = _meta_series(values)
    return pl.DataFrame(columns)


def _meta_series(values: Any) -> pl.Series:
    """A field of the samples as a column; what is not a simple value of one type is written as text."""
    import polars as pl

    try:
        column = pl.Series(values, strict=True)
        if not column.dtype.is_nested() and column.dtype != pl.Object:
            return column
    except (TypeError, ValueError, OverflowError, UnicodeError, pl.exceptions.PolarsError):
        pass
    return _texts(values)


def _texts(values: Any) -> pl.Series:
    """Texts as a column, whatever they are; mostly they are strings that can be taken as they are."""
    import polars as pl

    try:
        return pl.Series(list(values), dtype=pl.String, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        pass
    given = ["" if value is None else str(value) for value in values]
    texts = [None if value is None else text for value, text in zip(values, storable(given), strict=True)]
    return pl.Series(texts, dtype=pl.String)


def _run(frame: pl.DataFrame, about: dict[str, Any]) -> Run:
    given = about["provenance"]
    tuples = {name: tuple(given[name]) for name in ("metrics", "notes")}
    provenance = Provenance(**{**given, **tuples})
    metrics: tuple[Metric, ...] = tuple(parse_stored(text) for text in provenance.metrics)
    names = [name for metric in metrics for name in metric.names]
    hits, items = _hits(frame, open_gold=about.get("open", False)), about.get("items")
    return Run(
        ids=frame["query_id"].to_list(),
        hits=hits,
        metrics=metrics,
        convention=read_choices(about["convention"]),
        scores={name: frame[name].to_numpy() for name in names},
        provenance=provenance,
        query=frame["query"].to_list() if "query" in frame.columns else None,
        kept=None if items is None else stored_items(frame, hits.of, items),
        meta={name.removeprefix(_META): frame[name].to_list() for name in frame.columns if name.startswith(_META)},
    )


def _hits(frame: pl.DataFrame, *, open_gold: bool) -> Hits:
    gold_size = frame["gold"].list.len().to_numpy().astype(np.int64)
    start = starts(gold_size)
    gold = frame["gold"].explode(empty_as_null=False).struct.unnest()
    count = frame["hits"].list.len().to_numpy().astype(np.int64)
    query = np.repeat(np.arange(len(frame)), count)
    hits = frame["hits"].explode(empty_as_null=False).struct.unnest()
    why = hits["why"].to_list()
    depth = frame["depth"].to_numpy()
    return Hits(
        query,
        hits["rank"].to_numpy(),
        hits["gold"].to_numpy() + start[query],
        depth=depth,
        of=Gold(gold["item"].to_list(), start, gold["grade"].to_numpy(), open_gold),
        grade=hits["grade"].to_numpy(),
        repeated=hits["repeated"].to_numpy(),
        part=hits["part"].to_numpy(),
        why=why[0] if len(set(why)) == 1 else why,
        along=_along(frame, depth),
        notes=(),
        failed=_failed(frame),
    )


def _failed(frame: pl.DataFrame) -> dict[int, str]:
    """The queries that could not be judged, and why."""
    causes = frame["failed"].to_list() if "failed" in frame.columns else []
    return {row: why for row, why in enumerate(causes) if why is not None}


def _along(frame: pl.DataFrame, depth: Ints) -> Along:
    """What was read on the way down, as it was stored."""
    totals, sizes = {}, {}
    for column in frame.columns:
        if column.startswith(_ALONG):
            flat = frame[column].explode(empty_as_null=False)
            totals[column.removeprefix(_ALONG)] = flat.to_numpy().astype(float)
        elif column.startswith(_SIZE):
            sizes[column.removeprefix(_SIZE)] = frame[column].to_numpy()
    return Along(depth, totals, sizes)
