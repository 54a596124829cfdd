"""The work of a Spark executor: blocks of rows → parts of a run and rows of scores."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from karat import __version__
from karat.errors import KaratError, Unavailable
from karat.hits import Gold, Hits
from karat.plan import Plan, given_items
from karat.run import Run
from karat.run.stored_items import Extent, StoredItems
from karat.samples import Reading, Samples, read_samples
from karat.samples.items import rankings_of
from karat.samples.keys import as_text, by_id
from karat.samples.long import first_rows
from karat.samples.read import side_of

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

KEY, HASH, ROW, RUN, GOLD, PART = "karat_key", "karat_hash", "karat_row", "karat_run", "karat_gold", "karat_part"
QUERY, FAILURE = "query_id", "failure"
_BLOCK = 1 << 25
"""The bytes of a block of rows, before they become Python objects."""


class Block(NamedTuple):
    """All rows of some queries, or None where there are none: the query, the number of the row, and the row itself."""

    gold: pl.DataFrame | None
    """The gold; the whole rows if results and gold are one table."""
    run: pl.DataFrame | None = None
    """The results, without the number, if they are a table of their own."""

    @property
    def queries(self) -> pl.Series:
        """The ids of the queries, those of the gold first."""
        import polars as pl

        return pl.concat([distinct(side[KEY]) for side in self if side is not None]).unique(maintain_order=True)

    def of(self, queries: pl.Series) -> Block:
        """The rows of some of the queries."""
        return Block(*(None if side is None else side.filter(side[KEY].is_in(queries.implode())) for side in self))

    def first_rows(self) -> dict[str, int]:
        """The first row of each query of the gold."""
        import polars as pl

        if self.gold is None:
            return {}
        first = self.gold.group_by(KEY).agg(pl.col(ROW).min())
        return dict(zip(first[KEY].to_list(), first[ROW].to_list(), strict=True))


class Delivery(NamedTuple):
    """The parts of a run from one block, and the first row of each of their queries in the table."""

    parts: list[Run]
    rows: list[int]
    extra: int = 0
    shared: int = 0
    """The queries that are in both tables, if there are two."""
    nameless: int = 0
    """The rows without a query id."""


class Work(NamedTuple):
    """A plan for executors, and how their rows are read."""

    content: bytes
    """The plan, pickled with cloudpickle, which sends custom functions by value."""
    columns: tuple[str, ...]
    """The columns of scores."""
    names: Mapping[str, str]
    """The query id columns of results and gold, if these are two tables."""
    long: bool = False
    """True if there is one row per item; rows with the same hash of the query are then consecutive."""
    share: float = 1.0
    """The share of queries that the run holds; the table has all."""
    rows: bool = True
    """True if rows of scores are returned; a run that holds all queries has them, too."""
    version: str = __version__

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all queries of a partition."""
        plan = self.plan()
        for frame in blocks(batches, HASH if self.long else None):
            nameless = frame[KEY].null_count()
            named = frame.filter(frame[KEY].is_not_null()) if nameless else frame
            given = _in_order(named) if self.long else named
            block = Block(_rows_of(given, GOLD), _rows_of(given, RUN).drop(ROW)) if self.names else Block(given)
            delivery, scores = self.evaluated(block, plan)
            yield self.carrier(delivery._replace(nameless=nameless))
            yield from scores

    def plan(self) -> Plan:
        """The plan; refuses an executor with another version of karat."""
        if self.version != __version__:
            raise Unavailable(f"an executor has karat {__version__}, the driver {self.version}")
        plan: Plan = pickle.loads(self.content)  # noqa: S301  # packed by the driver
        return plan

    def evaluated(self, block: Block, plan: Plan) -> tuple[Delivery, list[pa.RecordBatch]]:
        """The delivery of a block, and one row per query, if rows are returned."""
        done = list(self._parts(block, plan)) if any(side is not None and len(side) for side in block) else []
        parts = [part for part, _ in done if part is not None]
        held = [_sampled(part, self.share) for part in parts]
        first = block.first_rows()
        of_run = set(first) if not self.names else set() if block.run is None else set(distinct(block.run[KEY]))
        delivery = Delivery(
            [part for part in held if len(part.ids)],
            [first[query] for part in held for query in part.ids],
            sum(extra for _, extra in done),
            len(of_run.intersection(first)),
        )
        return delivery, [self._rows(parts, first)] if self.rows else []

    def _rows(self, parts: Sequence[Run], first: Mapping[str, int]) -> pa.RecordBatch:
        """One row per query."""
        import pyarrow as pa

        rows = score_rows(parts, self.columns)
        row = pa.array([first[query] for query in rows[QUERY].to_pylist()], pa.int64())
        return pa.RecordBatch.from_pydict({**rows, ROW: row, PART: pa.nulls(len(row), pa.binary())})

    def carrier(self, content: object) -> pa.RecordBatch:
        """One row that carries something else to the driver."""
        import pyarrow as pa

        types = {
            QUERY: pa.string(),
            **dict.fromkeys(self.columns, pa.float64()),
            FAILURE: pa.string(),
            ROW: pa.int64(),
        }
        nothing = {name: pa.nulls(1, kind) for name, kind in types.items()}
        return pa.RecordBatch.from_pydict({**nothing, PART: pa.array([pickle.dumps(content)], pa.binary())})

    def _parts(self, block: Block, plan: Plan) -> Iterator[tuple[Run | None, int]]:
        """The parts of a block, each with the number of its queries without gold. A block that fails is halved."""
        samples: Samples | None = None
        try:
            samples, extra = self.read(block)
            yield (None if samples is None else plan.with_hint(plan.evaluate(samples), samples)), extra
        except Exception as error:  # noqa: BLE001  # raised by a custom judge or metric, or by the data: reported in the rows
            queries = block.queries
            if len(queries) == 1:
                yield _failure(queries[0], samples, plan, error), 0
                return
            half = len(queries) // 2
            for some in (queries[:half], queries[half:]):
                yield from self._parts(block.of(some), plan)

    def read(self, block: Block) -> tuple[Samples | None, int]:
        """The samples of a block, and the number of queries that were left out because they have no gold."""
        import polars as pl

        if not self.names:
            assert block.gold is not None
            return read_samples(block.gold.drop(KEY, ROW)), 0
        gold, run = self._side(block.gold, GOLD), self._side(block.run, RUN)
        queries = pl.Series(dtype=pl.String) if run is None else distinct(run[self.names[RUN]])
        if gold is None:
            return None, len(queries)
        wanted = queries.filter(queries.is_in(gold[self.names[GOLD]].unique().implode()))
        extra = len(queries) - len(wanted)
        if run is None or not len(wanted):
            return _all_missing(gold), extra
        if extra:
            run = run.filter(run[self.names[RUN]].is_in(wanted.implode()))
        samples = read_samples(retrieved=run, gold=gold)
        return replace(samples, reading=replace(samples.reading, extra=0)), extra

    def _side(self, rows: pl.DataFrame | None, side: str) -> pl.DataFrame | None:
        """The results or the gold as they were given, with their query id."""
        import polars as pl

        if rows is None or not len(rows):
            return None
        return rows.select(pl.col(KEY).alias(self.names[side]), pl.col(side)).unnest(side)


def score_rows(parts: Sequence[Run], columns: Sequence[str]) -> dict[str, pa.Array]:
    """The columns of a table of scores, with one row per query; undefined scores are null."""
    import pyarrow as pa

    ids = [query for part in parts for query in part.ids]
    failed = [part.all_hits.failed.get(row) for part in parts for row in range(len(part.ids))]
    scores = {name: np.concatenate([np.zeros(0), *(part.columns[name] for part in parts)]) for name in columns}
    return {
        QUERY: pa.array(ids, pa.string()),
        **{name: pa.array(values, pa.float64(), mask=np.isnan(values)) for name, values in scores.items()},
        FAILURE: pa.array(failed, pa.string()),
    }


def _rows_of(frame: pl.DataFrame, side: str) -> pl.DataFrame:
    """The rows in which there are results, or gold."""
    return frame.filter(frame[side].is_not_null()).select(KEY, ROW, side)


def distinct(ids: pl.Series) -> pl.Series:
    """The different ids in a column in which equal ones are mostly consecutive, in order."""
    changed = ids.rle().struct.field("value") if ids.null_count() else ids.gather(first_rows(ids))
    return changed.unique(maintain_order=True)


def blocks(batches: Iterator[pa.RecordBatch], together: str | None) -> Iterator[pl.DataFrame]:
    """Frames of about equal size; consecutive rows that are equal in one column stay together."""
    import polars as pl

    rest: list[pl.DataFrame] = []
    new: list[pa.RecordBatch] = []  # to convert many at once takes less than half the time
    size = 0
    for batch in batches:
        rows = max(1, min(batch.num_rows, int(batch.num_rows * _BLOCK / max(batch.nbytes, 1))))
        for begin in range(0, batch.num_rows, rows):
            new.append(batch.slice(begin, rows))
            size += new[-1].nbytes
            if size < _BLOCK:
                continue
            frame = pl.concat([*rest, frame_of(new)])
            last = len(frame) if together is None else int(frame[together].ne_missing(frame[together][-1]).sum())
            if last:
                yield frame[:last]
            rest, new, size = [frame[last:]], [], 0
    if new:
        rest.append(frame_of(new))
    if rest and len(frame := pl.concat(rest)):
        yield frame


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of each query in the order of their table; most are in that order after Spark's sort, too."""
    hashes, row = frame[HASH].to_numpy(), frame[ROW].to_numpy()
    ordered = (hashes[1:] > hashes[:-1]) | ((hashes[1:] == hashes[:-1]) & (row[1:] > row[:-1]))
    return frame if ordered.all() else frame.sort(HASH, ROW)


def frame_of(batches: Sequence[pa.RecordBatch]) -> pl.DataFrame:
    """The rows of Arrow batches."""
    import polars as pl
    import pyarrow as pa

    frame = pl.from_arrow(pa.Table.from_batches(batches))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _all_missing(gold: pl.DataFrame) -> Samples:
    """Samples of gold whose queries are not in the results."""
    side = side_of(gold, "gold", "gold")
    ids = side.ids or []
    return Samples(
        ids=ids,
        retrieved=rankings_of([[] for _ in ids], ids, by_id(ids)),
        gold=side.data,
        query=side.texts.get("query"),
        answer=side.texts.get("answer"),
        response=side.texts.get("response"),
        cited=side.id_lists.get("cited"),
        meta=side.meta,
        missing=np.ones(len(ids), bool),
        reading=Reading(notes=side.all_notes, missing=len(ids)),
    )


def _sampled(part: Run, share: float) -> Run:
    """The queries that the run holds: chosen by a digest of the id, the same in every run over the same queries."""
    if share >= 1:
        return part
    taken = part.take(sampled_rows(part.ids, share))
    return taken.replace(items=partial(given_items, taken.stored_items))


def sampled_rows(ids: Sequence[str], share: float) -> list[int]:
    """The rows of about this share of the queries."""
    digests = (blake2b(query.encode("utf-8", "surrogatepass"), digest_size=8).digest() for query in ids)
    return [row for row, digest in enumerate(digests) if int.from_bytes(digest) < share * 2**64]


def _failure(query: str, samples: Samples | None, plan: Plan, error: Exception) -> Run:
    """The part of one query that could not be evaluated: no scores, and why; with its gold if that could be read."""
    gold = Gold([], np.zeros(2, np.int64), np.zeros(0))
    if samples is not None:
        fields = (*plan.judge.fields, "id", "text", "doc")
        column = next((samples.gold.columns[field] for field in fields if field in samples.gold.columns), [])
        if len(column) == len(samples.gold.grade) and None not in column:
            gold = Gold(list(map(as_text, column)), samples.gold.start, samples.gold.grade)
    nothing = np.zeros(0, np.int64)
    own = {"grade": gold.grade.tolist(), "item": list(range(len(gold.label))), "label": list(gold.label)}
    why = error.problem if isinstance(error, KaratError) else f"{type(error).__name__}: {error}"
    hits = Hits(nothing, nothing, nothing, depth=np.zeros(1, np.int64), gold_items=gold, failed={0: why})
    items = StoredItems({}, np.zeros(2, np.int64), own, gold.start, Extent(plan.stored or 0, whole=False))
    return Run(
        ids=[query],
        hits=hits,
        metrics=plan.metrics,
        convention=plan.convention,
        scores={name: np.full(1, np.nan) for metric in plan.metrics for name in metric.names},
        provenance=plan.provenance(Reading() if samples is None else samples.reading, hits),
        query=None if samples is None else samples.query,
        meta={} if samples is None else samples.meta,
        items=partial(given_items, items),
    )
