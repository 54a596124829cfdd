"""Run files: one Parquet file, readable with any Parquet reader, with the provenance in its metadata.

One row per query: `query_id`, `query` if given, each metric under its name, then what the scores were computed
from: `depth`, `gold` (items and grades), `hits` (rank, gold item, grade, reason), `along.<name>` and `size.<name>` if
texts were measured (cumulative quantities at each rank, and what they are compared with; `along.raw_score` are the
retrieval scores, if samples are marked as `answerable` or not), `unanswerable` if there are such queries, `trajectory`
and `places` if rankings were merged from steps, the stored items (`retrieved`, `gold_items`), and each field of the
samples as `meta.<field>`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from karat._internal.arrays import Ints, group_number, row_number, starts
from karat._internal.output import atomic_path, check_outputs, is_special
from karat._internal.panics import panics_as_errors
from karat._internal.parquet import Damaged, add_checksum, check_parquet
from karat.errors import BadArgument, RunFileError, first_line, nearest_file
from karat.hits import Gold, Hits
from karat.hits.aspects import Aspects
from karat.hits.totals import Totals
from karat.run.check import (
    ALONG,
    GOLD_ITEMS,
    META,
    RETRIEVED,
    SIZE,
    UNANSWERABLE,
    Texts,
    at_ranks,
    check_gold_items,
    check_hits,
    check_sizes,
    check_types,
    depths,
    fields_of_records,
    flat_lists,
    gold_numbers,
    gold_sizes,
    grades,
    query_ids,
    ranks,
    scores,
    unanswerable_queries,
)  # fmt: skip
from karat.run.file_version import PER_BYTE, check_content, damage_as_errors, eval_hint, faults_as_errors
from karat.run.frame import field_series, text_series
from karat.run.metadata import KEY, ItemsAbout, Metadata, read_metadata, write_metadata
from karat.run.run import Run
from karat.run.step_columns import read_steps, step_columns
from karat.run.stored_items import (
    GOLD_FIELDS,
    RETRIEVED_FIELDS,
    Extent,
    StoredItems,
    own_name,
    read_marks,
    strings,
)

if TYPE_CHECKING:
    import polars as pl

_FEWEST, _ROW_GROUP = 1024, 32_768
"""Rows that are stored together: the fewer, the less has to be read for one of them."""
_TEXTS_OF_GROUP = 2**26
"""Bytes of texts that are stored together, if most texts occur once."""

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
    import polars as pl

    sources = [] if run.file else [run.provenance.source, *run.provenance.source.split(", ")]
    try:
        check_path(path, filter(os.path.isfile, sources))  # type: ignore[arg-type]
    except BadArgument as error:
        raise RunFileError(error.problem, hint=error.hint) from error
    frame, metadata = _frame(run), write_metadata(run)
    try:
        with atomic_path(path) as place:
            with place.open("wb") as file:  # Polars opens no name that is not valid UTF-8
                rows = _row_group(frame)
                frame.write_parquet(file, compression_level=1, row_group_size=rows, metadata={KEY: metadata})
            add_checksum(place)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise RunFileError(f"cannot write {path}: {first_line(error).rpartition('IO error: ')[2]}") from error


def _row_group(frame: pl.DataFrame) -> int | None:
    """The number of rows that are stored together; None for the usual number, if texts are stored once per group."""
    import polars as pl

    if len(frame) <= _FEWEST or "text" not in fields_of_records(frame.schema.get(RETRIEVED)):
        return _ROW_GROUP
    texts = frame[RETRIEVED].explode(empty_as_null=False, keep_nulls=False).struct.field("text")
    different = texts.unique()
    if 2 * len(different) < len(texts):
        return None
    size = int(different.cast(pl.String).str.len_bytes().sum()) + 1
    return min(max(_TEXTS_OF_GROUP * len(frame) // size, _FEWEST), _ROW_GROUP)


def load(path: str | os.PathLike[str]) -> Run:
    """Load a saved run.

    Args:
        path: the path of a run file, as `run.save` or `karat eval -o` wrote it.

    Returns:
        The run, with its scores, hits, gold, stored items and provenance.

    Example:
        >>> karat.load("run.parquet").mean["recall@5"]
    """
    source = Path(path)
    with faults_as_errors(source):
        if not source.is_file():
            raise RunFileError(f"no run file {source}", hint=nearest_file(source))
        content = source.read_bytes()  # as bytes: Polars takes brackets in a path for a pattern
    return load_content(content, source)


def load_content(content: bytes, source: Path) -> Run:
    """The run from the bytes of its file; `source` is for messages."""
    import polars as pl

    with damage_as_errors(source):
        check_content(content, source)
        metadata = metadata_of(BytesIO(content), source)
        return run_of_frame(pl.read_parquet(content), metadata, Texts(len(content), PER_BYTE), str(source))


def metadata_of(file: BinaryIO, source: Path) -> Metadata:
    """The metadata of a run from its file; refuses a Parquet file that is no run."""
    import polars as pl

    written = pl.read_parquet_metadata(file).get(KEY)
    if written is None:
        raise RunFileError(f"{source} is a Parquet file, but not a run file", hint=eval_hint(source))
    return read_metadata(written, str(source))


def is_run_file(path: str | os.PathLike[str]) -> bool:
    """True if a Parquet file says that it is a run; False for a table of samples."""
    import polars as pl

    try:
        content = Path(path).read_bytes()
        check_parquet(content)
        with panics_as_errors():
            return KEY in pl.read_parquet_metadata(BytesIO(content))
    except (OSError, ValueError, Damaged, pl.exceptions.PolarsError):
        return True  # reading it as a run says what is wrong


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
    why = pl.repeat(hits.why, len(hits), eager=True) if isinstance(hits.why, str) else text_series(hits.why)
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
    more: dict[str, Any] = {} if hits.gold_items.detail is None else {"detail": text_series(hits.gold_items.detail)}
    more |= {} if hits.gold_items.hop is None else {"hop": hits.gold_items.hop}
    if (aspects := hits.gold_items.aspects) is not None:
        more["aspects"] = pl.Series(aspects.each(), dtype=pl.List(pl.String))
    gold = pl.DataFrame({"item": text_series(hits.gold_items.label), "grade": hits.gold_items.grade, **more})
    columns: dict[str, Any] = {"query_id": text_series(run.ids)}
    columns |= {} if run.query is None else {"query": text_series(run.query)}
    columns |= {name: pl.Series(values, nan_to_null=True) for name, values in run.columns.items()}
    columns["depth"] = hits.depth
    if hits.failed:
        columns["failed"] = text_series([hits.failed.get(row) for row in range(rows)])
    if hits.gold_items.unanswerable is not None:
        columns[UNANSWERABLE] = hits.gold_items.unanswerable
    columns["gold"] = nest(gold, hits.gold_items.start)
    columns["hits"] = nest(found, starts(np.bincount(hits.query, minlength=rows)))
    for name, sizes in hits.totals.sizes.items():
        columns[SIZE + name] = sizes
    for name, total in hits.totals.at_rank.items():
        at_rank = pl.DataFrame({name: total})
        columns[ALONG + name] = nest(at_rank, starts(hits.depth), records=False)
    if hits.steps is not None:
        columns |= {name: nest(*column) for name, column in step_columns(hits.steps).items()}
    columns |= {} if run.stored_items is None else item_columns(run.stored_items, hits.gold_items)
    for name, values in run.meta.items():
        columns[META + name] = field_series(values)
    return pl.DataFrame(columns)


def run_of_frame(frame: pl.DataFrame, metadata: Metadata, texts: Texts, file: str) -> Run:
    """The run of some rows of a run file, or of all; raises Damaged if anything is not as `save` writes it."""
    check_types(frame, metadata)
    ids = query_ids(frame, texts)
    hits = _hits(frame, texts, incomplete=metadata.incomplete_gold)
    hits = hits.replace(steps=read_steps(frame, texts, hits, metadata.provenance.merge))
    return Run(
        ids=ids,
        hits=hits,
        metrics=metadata.metrics,
        convention=metadata.convention,
        scores=scores(frame, metadata, hits),
        provenance=metadata.provenance,
        query=texts.read(frame["query"]) if "query" in frame.columns else None,
        items=None if metadata.items is None else _stored_items(frame, texts, hits.gold_items, metadata.items),
        meta={name.removeprefix(META): texts.read(frame[name]) for name in frame.columns if name.startswith(META)},
        file=file,
    )


def _hits(frame: pl.DataFrame, texts: Texts, *, incomplete: bool) -> Hits:
    gold, start = flat_lists(frame, "gold")
    flat, of_query = flat_lists(frame, "hits")
    query, depth = group_number(of_query), depths(frame)
    why, detail = texts.read(flat["why"]), texts.read(gold["detail"]) if "detail" in gold.columns else None
    gold_items = Gold(texts.read(gold["item"]), start, grades(gold["grade"], "gold"), incomplete, detail=detail)
    if "hop" in gold.columns:
        gold_items = gold_items._replace(hop=ranks(gold["hop"]))
    if "aspects" in gold.columns:
        names, begin = flat_lists(gold, "aspects")
        texts.count(names["aspects"])
        gold_items = gold_items._replace(aspects=Aspects.of_flat(names["aspects"].to_list(), begin))
    gold_items = gold_items._replace(unanswerable=unanswerable_queries(frame, gold_items))
    hits = Hits(
        query,
        ranks(flat["rank"]),
        gold_numbers(flat["gold"], query, start) + start[query],
        depth=depth,
        gold_items=gold_items,
        grade=grades(flat["grade"], "hits"),
        repeated=flat["repeated"].to_numpy(),
        part=flat["part"].to_numpy(),
        why=why[0] if len(set(why)) == 1 else why,
        totals=_totals(frame, depth),
        notes=(),
        failed=_failed(frame, texts),
    )
    hits.check()
    check_hits(hits)
    return hits


def _failed(frame: pl.DataFrame, texts: Texts) -> dict[int, str]:
    """The queries that could not be judged, with the reason."""
    causes = texts.read(frame["failed"]) if "failed" in frame.columns else []
    return {row: why for row, why in enumerate(causes) if why is not None}


def _totals(frame: pl.DataFrame, depth: Ints) -> Totals:
    """The totals as stored."""
    along = [name for name in frame.columns if name.startswith(ALONG)]
    size = [name for name in frame.columns if name.startswith(SIZE)]
    return Totals(
        depth,
        {name.removeprefix(ALONG): at_ranks(frame, name, depth) for name in along},
        {name.removeprefix(SIZE): gold_sizes(frame, name) for name in size},
    )


def item_columns(items: StoredItems, of: Gold) -> dict[str, pl.Series]:
    """The items as nested columns, one list of records per query; of the gold, what other columns do not contain."""
    label = items.label_field(of)
    known = ("label",) if label is None else ("label", "grade", "item", label)
    gold = {name: column for name, column in items.gold.items() if name not in known}
    columns = {RETRIEVED: _nested(items.given, items.start)}
    return columns | ({GOLD_ITEMS: _nested(gold, items.gold_start)} if gold else {})


def _nested(columns: Mapping[str, Any], start: Ints) -> pl.Series:
    import polars as pl

    kinds: dict[str, Any] = {"item": pl.Int32, "seen": pl.Boolean, "score": pl.Float64, "grade": pl.Float64}
    kinds |= dict.fromkeys(("start", "end", "length"), pl.Int64)
    flat = [pl.Series(n, c, dtype=kinds[n]) if n in kinds else _text_column(n, c) for n, c in sorted(columns.items())]
    return nest(pl.DataFrame(flat), start)


def _text_column(name: str, column: list[Any]) -> pl.Series:
    """A column of ids or texts; the texts, which repeat from query to query, are stored once each."""
    import polars as pl

    series = text_series(strings(name, column)).alias(name)
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


def _stored_items(frame: pl.DataFrame, texts: Texts, of: Gold, about: ItemsAbout) -> Callable[[], StoredItems]:
    """A function that converts the items when they are first needed; they are checked now."""
    retrieved, start = flat_lists(frame, RETRIEVED, nulls=True)
    check_sizes(start, frame["depth"].to_numpy())
    gold, gold_start = flat_lists(frame, GOLD_ITEMS, nulls=True) if GOLD_ITEMS in frame.columns else (None, of.start)
    for column in [*retrieved, *([] if gold is None else gold)]:
        texts.count(column)
    if about["label"] is None and gold is not None:
        check_gold_items(gold, gold_start, of.start)
    elif (gold_start != of.start).any():
        raise Damaged("the stored gold items are not those of the gold")
    return partial(_convert_items, retrieved, start, gold, gold_start, of, about)


def _convert_items(
    retrieved: pl.DataFrame, start: Ints, stored: pl.DataFrame | None, gold_start: Ints, of: Gold, about: ItemsAbout
) -> StoredItems:
    given, gold = _columns(retrieved, RETRIEVED_FIELDS), {} if stored is None else _columns(stored, GOLD_FIELDS)
    if about["label"] is not None:
        gold |= {about["label"]: list(of.label), "item": row_number(of.start).tolist(), "grade": of.grade.tolist()}
    gold["label"] = _labels(gold, gold_start, of)
    for side in () if "lengths" in about else (given, gold):
        read_marks(side)
    return StoredItems(given, start, gold, gold_start, Extent(about["places"], about["whole"]))


def _columns(frame: pl.DataFrame, fields: Sequence[str]) -> dict[str, list[Any]]:
    return {name: frame[name].to_list() for name in frame.columns if name in fields}


def _labels(gold: Mapping[str, Sequence[Any]], start: Ints, of: Gold) -> list[str]:
    """The label of the gold item that each stored gold item belongs to; its own name if its query has none."""
    query = group_number(start)
    place = of.start[query] + np.array(gold["item"], np.int64)
    known = (np.diff(of.start) > 0)[query]
    return [
        of.label[i] if has_label else own_name(gold, row)
        for row, (i, has_label) in enumerate(zip(place.tolist(), known.tolist(), strict=True))
    ]
