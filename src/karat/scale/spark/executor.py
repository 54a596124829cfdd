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
from karat.samples.read import side_of

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

KEY, HASH, ROW, RUN, GOLD, PART = "karat_key", "karat_hash", "karat_row", "karat_run", "karat_gold", "karat_part"
QUERY, FAILURE = "query_id", "failure"
_BLOCK = 1 << 25
"""The bytes of a block of rows, before they become Python objects."""


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
    version: str = __version__

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all queries of a partition."""
        if self.version != __version__:
            raise Unavailable(f"an executor has karat {__version__}, the driver {self.version}")
        plan: Plan = pickle.loads(self.content)  # noqa: S301  # packed by the driver
        for frame in _blocks(batches, long=self.long):
            yield self._evaluated(frame, plan)

    def _evaluated(self, frame: pl.DataFrame, plan: Plan) -> pa.RecordBatch:
        import polars as pl

        nameless = frame[KEY].null_count()
        frame = frame.filter(frame[KEY].is_not_null())
        done = list(self._parts(frame, plan)) if len(frame) else []
        parts = [part for part, _ in done if part is not None]
        held = [_sampled(part, self.share) for part in parts]
        scored = frame.filter(frame[GOLD].is_not_null()) if self.names else frame
        begin = scored.group_by(KEY).agg(pl.col(ROW).min())
        first = dict(zip(begin[KEY].to_list(), begin[ROW].to_list(), strict=True))
        shared = set(first).intersection(frame.filter(frame[RUN].is_not_null())[KEY].unique()) if self.names else first
        delivery = Delivery(
            [part for part in held if len(part.ids)],
            [first[query] for part in held for query in part.ids],
            sum(extra for _, extra in done),
            len(shared),
            nameless,
        )
        return self._rows(parts, first, pickle.dumps(delivery))

    def _rows(self, parts: Sequence[Run], first: Mapping[str, int], delivery: bytes) -> pa.RecordBatch:
        """One row per query, after one row that carries the parts of the run to the driver."""
        import pyarrow as pa

        ids = [query for part in parts for query in part.ids]
        failed = [part.all_hits.failed.get(row) for part in parts for row in range(len(part.ids))]
        scores = {name: np.concatenate([[np.nan], *(part.columns[name] for part in parts)]) for name in self.columns}
        return pa.RecordBatch.from_pydict(
            {
                QUERY: pa.array([None, *ids], pa.string()),
                **{name: pa.array(values, pa.float64(), mask=np.isnan(values)) for name, values in scores.items()},
                FAILURE: pa.array([None, *failed], pa.string()),
                ROW: pa.array([None, *(first[query] for query in ids)], pa.int64()),
                PART: pa.array([delivery, *[None] * len(ids)], pa.binary()),
            }
        )

    def _parts(self, frame: pl.DataFrame, plan: Plan) -> Iterator[tuple[Run | None, int]]:
        """The parts of a block, each with the number of its queries without gold. A block that fails is halved."""
        samples: Samples | None = None
        try:
            samples, extra = self.read(frame)
            yield (None if samples is None else plan.with_hint(plan.evaluate(samples), samples)), extra
        except Exception as error:  # noqa: BLE001  # raised by a custom judge or metric, or by the data: reported in the rows
            keys = frame[KEY].unique(maintain_order=True)
            if len(keys) == 1:
                yield _failure(keys[0], samples, plan, error), 0
                return
            half = len(keys) // 2
            for some in (keys[:half], keys[half:]):
                yield from self._parts(frame.filter(frame[KEY].is_in(some.implode())), plan)

    def read(self, frame: pl.DataFrame) -> tuple[Samples | None, int]:
        """The samples of a block, and the number of queries that were left out because they have no gold."""
        if not self.names:
            given = frame.drop(KEY, ROW)
            return read_samples(given), 0
        gold = _side(frame, GOLD, self.names[GOLD])
        run = _side(frame, RUN, self.names[RUN])
        wanted = run.filter(run[self.names[RUN]].is_in(gold[self.names[GOLD]].unique().implode()))
        extra = run[self.names[RUN]].n_unique() - wanted[self.names[RUN]].n_unique()
        if not len(gold):
            return None, extra
        if not len(wanted):
            return _all_missing(gold), extra
        samples = read_samples(retrieved=wanted, gold=gold)
        return replace(samples, reading=replace(samples.reading, extra=0)), extra


def _blocks(batches: Iterator[pa.RecordBatch], *, long: bool) -> Iterator[pl.DataFrame]:
    """Frames of whole queries, of about equal size."""
    import polars as pl

    rest: list[pl.DataFrame] = []
    size = 0
    for batch in batches:
        rows = max(1, min(batch.num_rows, int(batch.num_rows * _BLOCK / max(batch.nbytes, 1))))
        for begin in range(0, batch.num_rows, rows):
            piece = batch.slice(begin, rows)
            rest.append(_frame(piece))
            size += piece.nbytes
            if size < _BLOCK:
                continue
            frame = pl.concat(rest)
            last = int((frame[HASH] != frame[HASH][-1]).sum()) if long else len(frame)
            if last:
                yield _in_order(frame[:last], long=long)
                rest, size = [frame[last:]], 0
    if rest and len(frame := pl.concat(rest)):
        yield _in_order(frame, long=long)


def _in_order(frame: pl.DataFrame, *, long: bool) -> pl.DataFrame:
    """The rows of each query in the order of their table; most are in that order after Spark's sort, too."""
    if not long:
        return frame
    hashes, row = frame[HASH].to_numpy(), frame[ROW].to_numpy()
    ordered = (hashes[1:] > hashes[:-1]) | ((hashes[1:] == hashes[:-1]) & (row[1:] > row[:-1]))
    return frame if ordered.all() else frame.sort(HASH, ROW)


def _frame(batch: pa.RecordBatch) -> pl.DataFrame:
    import polars as pl
    import pyarrow as pa

    frame = pl.from_arrow(pa.Table.from_batches([batch]))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _side(frame: pl.DataFrame, side: str, query: str) -> pl.DataFrame:
    """The rows of the results or of the gold, with their query id."""
    import polars as pl

    there = frame.filter(frame[side].is_not_null())
    return there.select(pl.col(KEY).alias(query), pl.col(side)).unnest(side)


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
