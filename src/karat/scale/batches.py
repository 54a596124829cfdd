"""Batches of samples from files that do not fit into memory; can be iterated several times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from karat.errors import InputError
from karat.samples import Reading, Samples
from karat.samples.answerable import joined_meta
from karat.samples.columns import Side, check_ids, rows_of
from karat.samples.dialects import LONG, is_long, long_column
from karat.samples.frames import of_rows
from karat.samples.header import Header
from karat.samples.id_lists import without_excluded
from karat.samples.json_rows import Rows
from karat.samples.keys import by_id, numbered, short_id
from karat.samples.long import has_records, ids_of
from karat.samples.notes import Note, merge_notes
from karat.samples.read import Before, by_text, check_same_ids, samples_of, side_of
from karat.samples.repeat_rows import REPEAT
from karat.samples.rows import NoRow
from karat.samples.sources import Source
from karat.scale.memory import MemoryLimits, estimate_memory
from karat.scale.pieces import Cut, Piece, Pieces, Scattered, by_query, whole_queries

if TYPE_CHECKING:
    import polars as pl

_SHARE = 16
"""A piece may take this fraction of the memory: pieces read ahead and results are in memory at the same time."""
_FEWEST_PARTS = 2


class Data(NamedTuple):
    """The input: files that do not fit into memory, and the gold unless it is in them."""

    source: Source
    gold: Side | None
    limits: MemoryLimits
    skip_bad_rows: bool = False
    need_gold: bool = True

    def state(self) -> list[tuple[int, float]]:
        """Sizes and times of the files, by which a change is noticed."""
        found = [Path(file).stat() for file in self.source.files] if not self.source.remote else []
        return [(file.st_size, file.st_mtime) for file in found]

    def pieces(self) -> Iterator[Piece]:
        """The files in pieces; long tables as frames."""
        side = None if self.gold is None else "retrieved"
        budget = self.limits.total // _SHARE
        long: bool | None = None
        columns: list[str] = []
        for piece in Pieces(self.source, side, budget, self.limits, skip_bad_rows=self.skip_bad_rows):
            if isinstance(piece, Rows) and piece.rows:
                long = is_long(list(piece.rows[0])) if long is None else long
                if long:
                    yield _long_table(piece, columns, self.source.name)
                    continue
            yield piece


def _long_table(piece: Rows, columns: list[str], source: str) -> pl.DataFrame:
    """Rows of a long table as a frame with the `columns` of the first one, and with query ids as text."""
    import polars as pl

    table = of_rows(piece.rows, source, lambda row: piece.place(row, source))
    columns += [] if columns else table.columns
    table = table.with_columns(pl.lit(None).alias(name) for name in columns if name not in table.columns)
    if _roles(table.columns) != _roles(columns):
        raise InputError(f"{source}: some rows have other columns than the first ones", got=table.columns)
    query = long_column(columns, "query")
    return table if query is None else table.with_columns(ids_of(table[query]))


def _roles(columns: Sequence[str]) -> list[object]:
    """The columns that decide how the items of a long table are read."""
    return [*(long_column(columns, role) for role in LONG), has_records(columns)]


class Batches(Protocol):
    """Batches of samples with whole queries; after the last batch, how all of the data was read."""

    def __iter__(self) -> Iterator[Samples]: ...

    def reading(self) -> Reading:
        """The reading of the data: counts, columns and notes."""
        ...

    @property
    def order(self) -> Sequence[str] | None:
        """The ids in the order of the run; None if it is that of the batches."""
        ...

    def for_choice(self, first: Samples) -> Samples:
        """Samples from which a judge can be chosen."""
        ...


class Whole:
    """Batches of files that contain results and gold, one row per query."""

    order = None

    def __init__(self, data: Data) -> None:
        self._data = data
        self._notes: tuple[Note, ...] = ()
        self._skipped = 0

    def __iter__(self) -> Iterator[Samples]:
        self._skipped, self._notes = 0, ()
        name, before, form = self._data.source.name, Before(0, Header(), {}), ""
        for piece in self._data.pieces():
            size = len(piece.rows) if isinstance(piece, Rows) else len(piece)
            samples = self._read(piece, before) if size else None
            before = before._replace(rows=before.rows + size)
            if samples is None:
                self._skipped += size + (piece.skipped if isinstance(piece, Rows) else 0)
                continue
            before.header.closed = True
            form = same_form(form, samples.retrieved.form, name)
            if samples.numbered:
                first = len(before.ids) + 1
                samples = replace(samples, ids=[str(number) for number in range(first, first + len(samples))])
            check_ids(samples.ids, name, before.ids)
            self._notes = merge_notes([self._notes, samples.reading.notes])
            self._skipped += samples.reading.skipped
            yield samples
        if not before.ids and self._skipped:
            raise InputError(f"{name}: no row can be read")

    def _read(self, piece: Piece, before: Before) -> Samples | None:
        """The samples of a piece; None if all of its rows are bad, and bad rows are skipped."""
        data = self._data
        try:
            return samples_of(
                piece, data.source.name, skip_bad_rows=data.skip_bad_rows, need_gold=data.need_gold, before=before
            )
        except InputError as error:
            if not (isinstance(error, NoRow) or (data.skip_bad_rows and before.header.unknown)):
                raise
            return None

    def reading(self) -> Reading:
        """The reading of the data: counts, columns and notes."""
        return Reading(source=self._data.source.name, notes=self._notes, skipped=self._skipped)

    def for_choice(self, first: Samples) -> Samples:
        """The first batch."""
        return first


def same_form(before: str, form: str, source: str) -> str:
    """The form of the rankings of all pieces so far; refuses two forms, as in memory."""
    if before and form and before != form:
        raise InputError(f"{source}: retrieved mixes {before} with {form}")
    return before or form


class Joined:
    """Batches of files that contain the results; the gold is in memory."""

    def __init__(self, data: Data, gold: Side, *, scattered: bool = False) -> None:
        """If the rows of a query are `scattered`, the files are sorted by query first."""
        self._data = data
        self._gold = by_text(gold)
        self._scattered = scattered
        self._long = False
        self.order: list[str] = self._gold.ids or numbered(len(gold.data.start) - 1)
        self._row_of = {query: row for row, query in enumerate(self.order)}
        self._reset()

    def _reset(self) -> None:
        self._seen: dict[str, None] = {}
        self._left = Side(None, None, self._data.source.name)
        self._texts: dict[str, None] | None = {}
        """The query texts so far; None if they cannot be ids, because one is missing or occurs twice."""
        self._notes: tuple[Note, ...] = ()
        self._missing = 0

    def __iter__(self) -> Iterator[Samples]:
        self._reset()
        name, header, form = self._data.source.name, Header(), ""
        for piece, before in self._pieces():
            left = side_of(piece, "retrieved", name, before, header)
            header.closed = True
            form = form if self._long else same_form(form, left.data.form, name)
            if self._gold.ids is not None:
                left = by_text(left)
            elif left.ids is None:
                self._add_texts(left)
            check_same_ids(left, self._gold)
            if left.ids is None:
                done = len(self._seen)
                left = left._replace(ids=[str(number + 1) for number in range(done, done + len(left.data))])
            yield from self._join(left)
        if self._texts:
            check_same_ids(self._left._replace(ids=list(self._texts)), self._gold)
        yield from self._unseen()

    def _add_texts(self, left: Side) -> None:
        """Query texts are ids if all of them, in all pieces, are different."""
        own = left.texts.get("query", [None])
        if self._texts is not None:
            unique = None not in own and len(set(own)) == len(own) and self._texts.keys().isdisjoint(own)
            if unique:
                self._texts.update(dict.fromkeys(map(str, own)))
            else:
                self._texts = None

    def _pieces(self) -> Iterator[Cut]:
        """Pieces in which every query is whole."""
        data, before = self._data, 0
        all_pieces = data.pieces()
        first = next(all_pieces, None)
        if first is None:
            raise InputError(f"{data.source.name}: the data set is empty")
        again = _chain(first, all_pieces)
        query = None if isinstance(first, Rows) or not is_long(first.columns) else long_column(first.columns, "query")
        if query is None:
            for piece in again:
                yield Cut(piece, before)
                before += len(piece.rows if isinstance(piece, Rows) else piece)
            return
        self._long = True
        ids_of(first[query].clear())  # refuses a column that does not contain ids
        if self._scattered:
            parts = max(int(estimate_memory(data.source) * _SHARE / data.limits.total) // 2, _FEWEST_PARTS)
            for rows in by_query(again, query, parts, data.limits):
                yield Cut(rows, 0)
        else:
            yield from whole_queries(again, query, data.limits)

    def _join(self, left: Side) -> Iterator[Samples]:
        """A batch of rankings with their gold."""
        if REPEAT in left.meta:
            problem = f"{left.source}: results with repeats and gold in another file need more memory"
            raise InputError(problem, hint="--memory 8GiB, or samples with their gold")
        ids: list[str] = left.ids or []
        if not self._seen.keys().isdisjoint(ids):
            if self._long and not self._scattered:
                raise Scattered
            twice = next(query for query in ids if query in self._seen)
            raise InputError(f'{left.source}: two samples have the same id "{short_id(twice)}"')
        self._seen |= dict.fromkeys(ids)
        self._left = left
        self._notes = merge_notes([self._notes, left.all_notes])
        known = [row for row, query in enumerate(ids) if query in self._row_of]
        if known:
            data = left.data if len(known) == len(ids) else left.data.take(known)
            yield self._samples([ids[row] for row in known], data, left, known)

    def _unseen(self) -> Iterator[Samples]:
        """The gold of queries that are not in the results, with empty rankings."""
        if self._gold.ids is None and len(self._seen) != len(self.order):
            raise InputError(
                f"{len(self._seen)} rankings, but gold for {len(self.order)} queries",
                hint="{query_id: […]} for both",
            )
        lacking = [query for query in self.order if query not in self._seen]
        self._missing = len(lacking)
        if self._missing == len(self.order):
            rows_of(self.order, list(self._seen))  # raises the error that explains it
        if lacking:
            nothing = self._left.data.take([None] * len(lacking))
            missing = np.ones(len(lacking), bool)
            yield replace(self._samples(lacking, nothing, None, []), missing=missing)

    def _samples(self, ids: list[str], rankings: Any, left: Side | None, rows: Sequence[int]) -> Samples:
        own = [self._row_of[query] for query in ids]
        gold, texts, meta = self._gold, {}, {}
        lists: dict[str, list[Any]] = {}
        if left is not None:
            texts = {name: [column[row] for row in rows] for name, column in left.texts.items()}
            meta = {name: [column[row] for row in rows] for name, column in left.meta.items()}
            lists = {name: [column[row] for row in rows] for name, column in left.id_lists.items()}
        texts |= {name: [column[row] for row in own] for name, column in gold.texts.items()}
        lists |= {name: [column[row] for row in own] for name, column in gold.id_lists.items()}
        meta = joined_meta(meta, {name: [column[row] for row in own] for name, column in gold.meta.items()}, ids)
        wanted = gold.data.take(np.array(own, np.int64))
        if "exclude" in lists:
            rankings, about = without_excluded(rankings, wanted, lists["exclude"], by_id(ids))
            self._notes = merge_notes([self._notes, about])
        return Samples(
            ids=ids,
            retrieved=rankings,
            gold=wanted,
            query=texts.get("query"),
            answer=texts.get("answer"),
            response=texts.get("response"),
            cited=lists.get("cited"),
            meta=meta,
            failed={} if left is None else left.failed_in(rows),
        )

    def reading(self) -> Reading:
        """The reading of the data: counts, columns and notes."""
        return Reading(
            source=f"{self._data.source.name}, {self._gold.source}",
            notes=(*self._notes, *self._gold.all_notes),
            missing=self._missing,
            extra=len(self._seen) - len(self.order) + self._missing,
        )

    def for_choice(self, first: Samples) -> Samples:
        """The first rankings, with all of the gold."""
        return replace(first, gold=self._gold.data)


def _chain(first: Piece, rest: Iterator[Piece]) -> Iterator[Piece]:
    yield first
    yield from rest
