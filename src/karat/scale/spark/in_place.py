"""Long tables in which the rows of a query follow each other: scored where they are, so no row is moved.

Every task gets all gold. The first and the last query of a task may continue in another task. Their rows are delivered
to the driver, which evaluates them together with the queries that have no row. Tables in which the rows of a query are
scattered are grouped by Spark instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from karat.plan import Plan
from karat.scale.spark.executor import KEY, ROW, Block, Delivery, Work, blocks, frame_of

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_MOST_OPEN = 1 << 22
"""The bytes of a query that may continue in another task, above which it is not delivered to the driver."""


class Piece(NamedTuple):
    """The delivery of some rows of a task, and the queries in them."""

    delivery: Delivery = Delivery([], [])
    scored: Sequence[int] = ()
    """The first gold row of each query that was scored."""
    others: Sequence[bytes] = ()
    """A digest of the id of each query without gold."""
    open: pl.DataFrame | None = None
    """The rows of a query that may continue in another task."""
    scattered: bool = False
    """True if the rows of a query do not follow each other, or are too many to be delivered."""


class InPlace(NamedTuple):
    """Evaluates the rows of a task, given all gold."""

    work: Work
    gold: bytes
    """The gold as an Arrow stream."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of scores of a partition, with its pieces."""
        import pyarrow as pa

        plan, gold = self.work.plan(), frame_of(list(pa.ipc.open_stream(self.gold)))
        seen: set[str | None] = {None}  # rows without a query id are reported by the other way
        for rows, is_open in _pieces(blocks(batches, KEY)):
            queries = rows[KEY].rle().struct.field("value")
            expected = len(seen) + len(queries)
            seen.update(queries)
            scattered = len(seen) < expected or (is_open and rows.estimated_size() > _MOST_OPEN)
            if scattered:
                yield self.work.carrier(Piece(scattered=True))
                return
            if is_open:
                yield self.work.carrier(Piece(open=rows))
            else:
                yield from self._evaluated(rows, queries, gold, plan)

    def _evaluated(
        self, rows: pl.DataFrame, queries: pl.Series, gold: pl.DataFrame, plan: Plan
    ) -> Iterator[pa.RecordBatch]:
        block = Block(gold.filter(gold[KEY].is_in(queries.implode())), rows)
        first = block.first_rows()
        delivery, scores = self.work.evaluated(block, plan)
        others = [_digest(query) for query in queries if query not in first]
        yield self.work.carrier(Piece(delivery, list(first.values()), others))
        yield from scores


def _digest(query: str) -> bytes:
    return blake2b(query.encode(), digest_size=8).digest()


def _pieces(blocks: Iterator[pl.DataFrame]) -> Iterator[tuple[pl.DataFrame, bool]]:
    """The rows of a task; true for those of its first query, and of its last one."""
    block, is_first = next(blocks, None), True
    while block is not None:
        after = next(blocks, None)
        size, lengths = len(block), block[KEY].rle().struct.field("len")
        head = lengths[0] if is_first else 0
        tail = lengths[-1] if after is None and head < size else 0
        for rows, is_open in ((block[:head], True), (block[head : size - tail], False), (block[size - tail :], True)):
            if len(rows):
                yield rows, is_open
        block, is_first = after, False


def open_block(pieces: Sequence[Piece], gold: pl.DataFrame) -> Block | None:
    """The queries that no task has scored; None if rows of a query are scattered over several tasks."""
    import polars as pl

    scored = [row for piece in pieces for row in piece.scored]
    others = [digest for piece in pieces for digest in piece.others]
    is_open = [piece.open for piece in pieces if piece.open is not None]
    distinct = len(set(scored)) == len(scored) and len(set(others)) == len(others)
    if not distinct or any(piece.scattered for piece in pieces):
        return None
    rows = pl.concat(is_open) if is_open else None
    first = Block(gold).first_rows()
    if rows is not None:
        done, known = set(scored), set(others)
        if any(first[query] in done if query in first else _digest(query) in known for query in rows[KEY].unique()):
            return None
    left = pl.Series(sorted(set(first.values()).difference(scored)), dtype=pl.Int64)
    queries = gold.filter(gold[ROW].is_in(left.implode()))[KEY]
    return Block(gold.filter(gold[KEY].is_in(queries.implode())), rows)
