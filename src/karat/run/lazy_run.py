"""LazyRun: a run file of which only the columns and rows are read that are asked for.

A run of a million queries is open in a fraction of a second, in little memory. Its rows are real runs: `take` and
`sample` read some of them, `whole` reads all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.display import valid_utf8
from karat.conventions import Convention
from karat.errors import unknown
from karat.hits import Gold, Hits
from karat.metrics import Metric
from karat.run.check import META, RETRIEVED, UNANSWERABLE, Texts, check_types, flat_lists, gold_numbers, refuse_nulls
from karat.run.file import metadata_of, run_of_frame
from karat.run.file_version import PER_BYTE, FileVersion, damage_as_errors
from karat.run.means import Means
from karat.run.metadata import Metadata
from karat.run.provenance import Provenance
from karat.run.repeats import Repeats
from karat.run.run import Run, check_rows, unknown_query
from karat.run.search import Search
from karat.samples.repeat_rows import REPEAT
from karat.stats import SEED, Interval

if TYPE_CHECKING:
    import polars as pl

_WINDOW = 4096
"""Rows that are near each other: they are read together."""
_WINDOWS, _ROWS_PER_WINDOW = 3, 40_000
"""Windows that are read one by one: more of them take longer than one pass over the file, unless it is large."""
_BATCH_BYTES, _FEWEST, _MOST = 10_000_000, 2048, 65_536
"""Bytes of the file, which need several times as much memory, and rows that are read at a time."""
_THREADS = 2
_ROW = "karat.row"
_OfRows: TypeAlias = "Callable[[pl.DataFrame], Ints]"


class LazyRun(Means):
    """A run file, opened: one version of it, whatever another process does to the file."""

    def __init__(self, version: FileVersion, metadata: Metadata, schema: pl.Schema, rows: int) -> None:
        self.path = version.path
        self.convention: Convention = metadata.convention
        self.provenance: Provenance = metadata.provenance
        self.metrics: tuple[Metric, ...] = tuple(metric for metric in metadata.metrics if not metric.unit)
        self.measures: tuple[Metric, ...] = tuple(metric for metric in metadata.metrics if metric.unit)
        self.names = [name for metric in self.metrics for name in metric.names]
        """The names of the metrics' columns."""
        self.fields = sorted(name.removeprefix(META) for name in schema if name.startswith(META))
        """The names of the fields of the samples."""
        self.scores: Mapping[str, Floats] = _Columns(self, self.names)
        """A number per row for each metric, read when it is asked for."""
        self.measured: Mapping[str, Floats] = _Columns(self, [name for own in self.measures for name in own.names])
        """A number per row for each measure."""
        self._version, self._metadata, self._schema, self._rows = version, metadata, schema, rows
        self._intervals: dict[float, dict[str, Interval]] = {}
        self._whole: Run | None = None

    @classmethod
    def open(cls, path: str | PathLike[str], shown: Path | None = None) -> LazyRun:
        """Open a run file; a file that `karat.load` refuses before it reads the columns is refused with its words.

        `shown` is the name of the file in messages. A file without a checksum is read as a whole: nothing else tells
        that all of it is there.
        """
        import polars as pl

        version = FileVersion(path, shown)
        trusted = version.check()
        with version.open() as file:
            metadata = metadata_of(file, version.shown)
            file.seek(0)
            scan = pl.scan_parquet(file)
            schema = scan.collect_schema()
            check_types(pl.DataFrame(schema=schema), metadata)
            rows = int(scan.select(pl.len()).collect().item())
        opened = cls(version, metadata, schema, rows)
        if not trusted:
            opened.whole()
        return opened

    def __len__(self) -> int:
        return self._rows

    @property
    def name(self) -> str:
        """The name of the run in headings."""
        return self._version.shown.name

    @property
    def commit(self) -> str:
        """The git commit of the working directory in which the run was saved; empty if it is not known."""
        return self.provenance.commit

    @cached_property
    def known_gold_hash(self) -> str | None:
        """The same as `gold_hash`, if it is known without reading the whole file; else None."""
        return self._metadata.gold_hash if self._whole is None else self._whole.gold_hash

    @property
    def gold_hash(self) -> str:
        """A digest of the queries, their texts and their gold; runs with the same digest had the same test set."""
        return self.known_gold_hash or self.whole().gold_hash

    @property
    def ids(self) -> pl.Series:
        """The id of each row."""
        return self.column("query_id")

    @property
    def query(self) -> pl.Series | None:
        """The text of each query, if they have any."""
        return self.column("query") if "query" in self._schema else None

    def field(self, name: str) -> pl.Series:
        """A field of the samples."""
        if name not in self.fields:
            raise unknown("field", name, self.fields, f"one of: {', '.join(self.fields)}")
        return self.column(META + name).alias(name)

    @cached_property
    def unanswerable(self) -> Bools:
        """Flags of the queries without an answer, marked `"answerable": false` in the samples."""
        if UNANSWERABLE not in self._schema:
            return np.zeros(len(self), bool)
        flags: Bools = self.column(UNANSWERABLE).to_numpy()
        return flags

    @cached_property
    def failed(self) -> dict[int, str]:
        """The rows that could not be judged, with the reason."""
        if "failed" not in self._schema:
            return {}
        causes = self.column("failed")
        rows = causes.is_not_null().arg_true()
        return dict(zip(rows.to_list(), causes[rows].to_list(), strict=True))

    @cached_property
    def repeats(self) -> Repeats | None:
        """The rows that are repeats of the same query; None if each row is a query of its own."""
        if REPEAT not in self.fields:
            return None
        return Repeats.of(self.ids.to_list(), {REPEAT: self.field(REPEAT).to_list()})

    @property
    def queries(self) -> int:
        """The number of queries."""
        return len(self) if self.repeats is None else len(self.repeats.queries)

    @cached_property
    def found(self) -> tuple[Ints, Ints]:
        """The number of gold items that were found, and of relevant gold items, of each row."""
        parts = self._in_batches(["gold", "hits"], _found)
        counts = np.concatenate([np.zeros((2, 0), np.int64), *(own for _, own in parts)], axis=1)
        return counts[0], counts[1]

    def row(self, query_id: str | int) -> int:
        """The row number of a query; of one with repeats that of its first repeat that was judged."""
        wanted = valid_utf8([str(query_id)])[0]
        ids = self.ids
        own = (ids == wanted).arg_max()
        if own is not None and ids[own] == wanted:
            return own
        if self.repeats is not None and wanted in self.repeats.queries:
            return int(self.repeats.first_judged(self.failed)[self.repeats.queries.index(wanted)])
        known = ids[:10_000].to_list() if self.repeats is None else self.repeats.queries
        raise unknown_query(wanted, known, self.queries)

    def take(self, rows: Sequence[int] | Ints) -> Run:
        """The run of some of the rows, in this order, with the provenance of the whole run."""
        chosen = [int(row) for row in rows]
        check_rows(chosen, len(self))
        if self._whole is not None:
            return self._whole.take(chosen)
        return self._run(self._rows_of(np.array(chosen, np.int64)))

    def sample(self, n: int) -> Run:
        """The run of `n` random rows, always the same, in the order of the file; of all if there are no more.

        Of a run with repeats, random queries with all of their rows, as many as `n` rows have place for.
        """
        if len(self) <= n:
            return self.whole()
        random = np.random.default_rng(SEED)
        if self.repeats is None:
            return self.take(np.sort(random.choice(len(self), n, replace=False)))
        order = random.permutation(len(self.repeats.queries))
        kept = order[np.cumsum(self.repeats.sizes[order]) <= n]
        return self.take(np.flatnonzero(np.isin(self.repeats.query, kept)))

    def whole(self) -> Run:
        """The whole run, loaded and kept."""
        if self._whole is None:
            self._whole = self._run(self._read(list(self._schema)))
        return self._whole

    def scored(self, fields: Sequence[str] = (), *, ids: bool = True) -> Run:
        """All rows with their scores and some fields, without hits, gold and items.

        What is computed from scores alone is exact: means, intervals, distributions, slices. Without `ids`, which take
        much memory, all ids are empty.
        """
        none, flags = np.zeros(0, np.int64), self.unanswerable
        gold = Gold([], np.zeros(len(self) + 1, np.int64), np.zeros(0), unanswerable=flags if flags.any() else None)
        return Run(
            ids=self.ids.to_list() if ids else [""] * len(self),
            hits=Hits(none, none, none, depth=self.column("depth").to_numpy(), gold_items=gold, failed=self.failed),
            metrics=self.requested,
            convention=self.convention,
            scores={**self.scores, **self.measured},
            provenance=self.provenance,
            meta={name: _each_once(self.field(name)) for name in fields},
            file=str(self.path),
        )

    def search(self, text: str) -> Ints:
        """The rows in which every word of a text occurs, in upper or lower case.

        Ids, query texts, gold, retrieved items (id, document, text) and fields of texts or whole numbers are searched.
        """
        wanted = Search(text, self._schema)
        parts = self._in_batches(wanted.columns, wanted.rows)
        found: Ints = np.concatenate([[], *(first + own for first, own in parts)]).astype(np.int64)
        return found

    def retrieved_anywhere(self, keys: Sequence[str | None], field: str) -> Bools:
        """Flags of the ids, or of the values of another field, that a stored item of any row has."""
        import polars as pl

        wanted, flags = pl.Series(keys, dtype=pl.String), np.zeros(len(keys), bool)

        def places(frame: pl.DataFrame) -> Ints:
            items = frame[RETRIEVED].explode(empty_as_null=False, keep_nulls=False)
            own = items.struct.field(field).unique().drop_nulls()
            return np.flatnonzero(wanted.is_in(own.implode()).fill_null(value=False).to_numpy())

        if RETRIEVED in self._schema and f"'{field}'" in str(self._schema[RETRIEVED]):
            for _, rows in self._in_batches([RETRIEVED], places):
                flags[rows] = True
        return flags

    def columns(self, names: Sequence[str]) -> list[pl.Series]:
        """Some columns of the file."""
        return self._read(names).get_columns()

    def column(self, name: str) -> pl.Series:
        """A column of the file."""
        column = self._read([name])[name]
        if name in ("query_id", UNANSWERABLE):
            with damage_as_errors(self._version.shown):
                refuse_nulls(name, column)
        return column

    def _in_batches(self, names: Sequence[str], use: _OfRows) -> list[tuple[int, Ints]]:
        """The first row of each batch of rows, and what a function makes of its columns."""
        import polars as pl

        def used(first: int) -> Ints:
            frame = self._read(names, first, size)
            with damage_as_errors(self._version.shown):
                return use(frame)

        size = min(max(_BATCH_BYTES * len(self) // self._version.bytes, _FEWEST), _MOST)
        firsts = range(0, len(self), size)
        with ThreadPoolExecutor(min(_THREADS, pl.thread_pool_size())) as pool:
            return list(zip(firsts, pool.map(used, firsts), strict=True))

    def _read(self, names: Sequence[str], first: int = 0, size: int | None = None) -> pl.DataFrame:
        """Some columns of the file, of all rows or of `size` of them."""
        import polars as pl

        with self._version.open() as file:
            return pl.scan_parquet(file).select(names).slice(first, size).collect()

    def _rows_of(self, rows: Ints) -> pl.DataFrame:
        """All columns of some rows, in their order."""
        import polars as pl

        windows = np.unique(rows // _WINDOW) * _WINDOW
        with self._version.open() as file:
            scan = pl.scan_parquet(file, row_index_name=_ROW)
            if len(windows) > max(_WINDOWS, len(self) // _ROWS_PER_WINDOW):
                parts = [scan.filter(pl.col(_ROW).is_in(pl.Series(rows).implode()))]
            else:
                near = [rows[rows // _WINDOW * _WINDOW == own] for own in windows]
                parts = [scan.slice(own.min(), own.max() - own.min() + 1) for own in near] or [scan.head(0)]
            frame = pl.concat(pl.collect_all(parts))
        place = np.searchsorted(frame[_ROW].to_numpy(), rows)
        return frame.drop(_ROW)[place]

    def _run(self, frame: pl.DataFrame) -> Run:
        with damage_as_errors(self._version.shown):
            return run_of_frame(frame, self._metadata, Texts(self._version.bytes, PER_BYTE), str(self._version.shown))


class _Columns(Mapping[str, Floats]):
    """Columns of numbers by name, each read when it is asked for, and kept; of a small run all at once."""

    def __init__(self, run: LazyRun, names: Sequence[str]) -> None:
        self._run, self._names = run, names
        self._read: dict[str, Floats] = {}

    def __getitem__(self, name: str) -> Floats:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            names = self._names if len(self._run) <= _WINDOW else [name]
            self._read |= {column.name: column.to_numpy() for column in self._run.columns(names)}
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _each_once(column: pl.Series) -> list[Any]:
    """The values of a column, of which equal ones are the same object."""
    same: dict[Any, Any] = {}
    return [same.setdefault(value, value) for value in column]


def _found(frame: pl.DataFrame) -> Ints:
    """The number of relevant gold items that were found, and of all relevant gold items, of each row."""
    gold, start = flat_lists(frame, "gold")
    hits, of_query = flat_lists(frame, "hits")
    relevant = gold["grade"].to_numpy() > 0
    query = np.repeat(np.arange(len(frame)), np.diff(of_query))
    item = start[query] + gold_numbers(hits["gold"], query, start)
    found = np.zeros(len(gold), bool)
    found[item[~hits["part"].to_numpy()]] = True
    of_row = np.repeat(np.arange(len(frame)), np.diff(start))
    counts = [np.bincount(of_row[flags], minlength=len(frame)) for flags in (found & relevant, relevant)]
    return np.array(counts, np.int64)
