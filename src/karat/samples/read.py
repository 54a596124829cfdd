"""The entry point for data: files, frames, lists and dicts in, samples out."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from karat._internal.display import valid_utf8
from karat.conventions import STANDARD
from karat.errors import BadArgument, InputError
from karat.samples.answerable import ANSWERABLE, joined_meta, unanswerable
from karat.samples.columns import Reading, Samples, Side, check_ids, rows_of
from karat.samples.dialects import SIDE_NAMES, is_long, lacks_items
from karat.samples.failures import ERROR, is_error
from karat.samples.field_map import Fields
from karat.samples.frames import as_polars, is_column, is_frame, of_rows, values_of
from karat.samples.header import Header
from karat.samples.id_lists import without_excluded
from karat.samples.items import BUILD, rankings_of
from karat.samples.json_rows import Rows
from karat.samples.keys import Where, as_ids, by_id, numbered
from karat.samples.loading import Selection, load
from karat.samples.long import read_long
from karat.samples.missing_columns import no_item_column, some_values
from karat.samples.repeat_rows import gold_of_rows
from karat.samples.results import each_query
from karat.samples.rows import QueryTable, query_table


def read_samples(
    samples: Any = None,
    *,
    retrieved: Any = None,
    gold: Any = None,
    skip_bad_rows: bool = False,
    need_gold: bool = True,
    fields: Fields = None,
    split: str | None = None,
) -> Samples:
    """Read samples from one source, or the results and the gold from one source each.

    With `need_gold=False` the gold may be absent: some judges create it from the answer, others need none. `fields`
    names the columns that are read as karat's fields, `split` the part of a data set.
    """
    if samples is not None and retrieved is not None:
        raise InputError("both samples and retrieved are given; expected one of them")
    results = samples if retrieved is None else retrieved
    if results is None:
        missing = "retrieved" if gold is not None else "samples, or retrieved= and gold="
        raise InputError(f"nothing to evaluate: give {missing}")
    if gold is not None:
        if skip_bad_rows:
            raise BadArgument("skip_bad_rows needs results and gold in one source, not gold=")
        selection = Selection(fields, split)
        left, right = load(results, "retrieved", selection=selection), load(gold, "gold", selection=selection)
        selection.check()
        known = side_from(right[0], "gold", right[1])
        if isinstance(left[0], Rows) and left[0].traced:
            return _with_notes(_traced_samples(*left, known), selection)
        return _with_notes(_join(side_from(left[0], "retrieved", left[1]), known), selection)
    if retrieved is not None:
        raise InputError("nothing to compare with: give gold=")
    if isinstance(samples, Samples):
        return samples
    selection = Selection(fields, split)
    loaded, source = load(samples, "samples", skip_bad_rows=skip_bad_rows, selection=selection)
    selection.check(source)
    if need_gold and isinstance(loaded, Rows) and loaded.traced and "gold" not in loaded.rows[0]:
        raise InputError(f"{source}: traces have no gold", hint="--gold gold.jsonl, or gold=…")
    return _with_notes(samples_of(loaded, source, skip_bad_rows=skip_bad_rows, need_gold=need_gold), selection)


def _with_notes(samples: Samples, selection: Selection) -> Samples:
    """The samples with notes on how their files were read."""
    if not (notes := selection.notes()):
        return samples
    return replace(samples, reading=replace(samples.reading, notes=(*notes, *samples.reading.notes)))


def read_test_set(samples: Any, fields: Fields = None, split: str | None = None) -> Samples:
    """Read samples, or gold alone; the rankings are empty then."""
    if isinstance(samples, Samples):
        return samples
    selection = Selection(fields, split)
    loaded, source = load(samples, "samples", selection=selection)
    selection.check(source)
    rows = loaded.rows if isinstance(loaded, Rows) else loaded
    some = rows if isinstance(rows, list | tuple) and len(rows) else [rows]
    if any(name in SIDE_NAMES["retrieved"] for row in some for name in _names(row)):
        return samples_of(loaded, source)
    gold = side_from(loaded, "gold", source)
    ids = gold.ids or numbered(len(gold.data.start) - 1)
    if not ids:
        raise InputError(f"{source}: the data set is empty")
    return Samples(
        ids=ids,
        retrieved=rankings_of([[] for _ in ids], ids, by_id(ids)),
        gold=gold.data,
        query=gold.texts.get("query"),
        meta=gold.meta,
        reading=Reading(source=source, notes=(*selection.notes(), *gold.all_notes)),
    )


def _names(row: Any) -> Iterable[Any]:
    """The names of the fields of a row, or of the columns of a frame."""
    names = row.__struct_fields__ if hasattr(row, "__struct_fields__") else getattr(row, "columns", row)
    return names if isinstance(names, Iterable) and not isinstance(names, str) else ()


class Before(NamedTuple):
    """Earlier pieces of the same source: their rows, columns, and ids with the numbers of their samples."""

    rows: int
    header: Header
    ids: dict[str, int]


def samples_of(
    loaded: Any, source: str, *, skip_bad_rows: bool = False, need_gold: bool = True, before: Before | None = None
) -> Samples:
    """Samples from rows, a frame or columns with results and gold; they may be a piece of the source."""
    before = before or Before(0, Header(), {})
    table = query_table(loaded, source, skip_bad_rows=skip_bad_rows, first=before.rows, header=before.header)
    table = table if need_gold else _gold_or_none(table)
    return _samples(_without_bad_rows(table, before.ids) if skip_bad_rows else table)


def _gold_or_none(table: QueryTable) -> QueryTable:
    """The table with empty gold where there is none."""
    if "gold_ids" in table.columns:
        return table
    given = table.columns.get("gold", [None] * table.size)
    return table._replace(columns=table.columns | {"gold": [[] if gold is None else gold for gold in given]})


def samples_of_table(table: QueryTable, *, need_gold: bool = True) -> Samples:
    """Samples from a table of queries."""
    return _samples(table if need_gold else _gold_or_none(table))


def _samples(table: QueryTable) -> Samples:
    ids = table.ids()
    texts: dict[str, Any] = dict(table.texts())
    retrieved, gold, lists = table.side("retrieved", ids), table.side("gold", ids), table.id_lists()
    notes = (*table.notes(), *retrieved.notes, *gold.notes)
    if "exclude" in lists:
        retrieved, about = without_excluded(retrieved, gold, lists["exclude"], table.where)
        notes = (*notes, *about)
    return Samples(
        ids=ids,
        retrieved=retrieved,
        gold=gold,
        **texts,
        cited=lists.get("cited"),
        meta=table.meta(),
        failed=table.failed(),
        numbered="id" not in table.columns,
        reading=Reading(source=table.source, notes=notes, skipped=table.skipped),
    )


def _without_bad_rows(table: QueryTable, before: Container[str]) -> QueryTable:
    """The table without rows that cannot be read alone, and without rows that repeat an id, here or before."""
    table = _with_lists(table)
    bad: set[int] = set()
    seen: set[str] = set()
    for row in range(table.size):
        try:
            samples = _samples(table.take([row]))
            unanswerable(samples)
            # Errors in single items show up only in the lookup.
            for field in samples.retrieved.all_fields & samples.gold.all_fields & {"id", "text"}:
                samples.retrieved.find(field, samples.gold.keys(field).once(), STANDARD)
        except InputError:
            bad.add(row)
            continue
        if "id" in table.columns:
            bad |= {row} if samples.ids[0] in seen or samples.ids[0] in before else set()
            seen.add(samples.ids[0])
    return table.without(bad) if bad else table


def _with_lists(table: QueryTable) -> QueryTable:
    """The table with lists in place of iterators, which can be read only once."""
    columns = {
        name: [list(value) if isinstance(value, Iterator) else value for value in column]
        for name, column in table.columns.items()
    }
    return table._replace(columns=columns)


def read_side(value: Any, side: str, selection: Selection | None = None) -> Side:
    """Read the rankings or the gold alone, from any source; whether it has all that is selected is not checked."""
    loaded, source = load(value, side, selection=selection)
    return side_from(loaded, side, source)


def side_from(loaded: Any, side: str, source: str) -> Side:
    """The rankings or the gold from what was loaded."""
    by_key = isinstance(loaded, Mapping)
    if side == "retrieved" and by_key and (results := each_query(loaded)) is not None:
        loaded, by_key = results, False
    if by_key and not _is_columns(loaded, side):
        given = list(loaded)
        try:
            ids = as_ids(given)
        except InputError as error:
            raise InputError(f"query ids: {error.problem}") from error
        if ids is not given:  # 1 and "1" are two keys of a dict, but one id
            check_ids(ids, source)
        return Side(ids, BUILD[side](list(loaded.values()), ids, by_id(ids)), source)
    if is_column(loaded):
        loaded = values_of(loaded)
    if isinstance(loaded, list | tuple) and not isinstance(loaded, Rows) and not _are_rows(loaded, side):
        ids = numbered(len(loaded))
        return Side(None, BUILD[side](list(loaded), ids, by_id(ids)), source)
    return side_of(loaded, side, source)


def side_of(loaded: Any, side: str, source: str, first: int = 0, header: Header | None = None) -> Side:
    """One side from rows or a frame, one row per query or per item.

    `first` rows of the source, with this header, come before them.
    """
    rows = loaded.rows if isinstance(loaded, Rows) else loaded
    if isinstance(rows, list | tuple) and rows and isinstance(rows[0], Mapping) and is_long(list(rows[0])):
        loaded = of_rows(rows, source, _places(loaded, source))
    if is_frame(loaded):
        loaded = as_polars(loaded)
        if is_long(loaded.columns):
            return read_long(loaded, side, source, first)
        if lacks_items(loaded.columns):
            raise no_item_column(some_values(loaded), source)
    return query_table(loaded, source, first=first, header=header, side=side).read_side(side)


def _places(loaded: Any, source: str) -> Where:
    return lambda row: loaded.place(row, source) if isinstance(loaded, Rows) else f"{source}, row {row + 1}"


def _traced_samples(rows: Rows, source: str, gold: Side) -> Samples:
    """The samples of traces with the gold of their queries."""
    from karat.samples.traces.trace_gold import with_gold

    joined = with_gold(rows.rows, gold)
    lines, notes = [rows.lines[row] for row in joined.kept], (*rows.notes, *joined.notes, *gold.all_notes)
    return samples_of(Rows(joined.rows, lines, notes=notes, traced=True), f"{source}, {gold.source}")


def _is_columns(value: Mapping[Any, Any], side: str) -> bool:
    """True if a dict has columns by name rather than queries by id."""
    if value.keys().isdisjoint(SIDE_NAMES[side]):
        return False
    column = value[next(name for name in SIDE_NAMES[side] if name in value)]
    if not isinstance(column, list | tuple):
        return hasattr(column, "tolist")
    first = column[0] if column else []
    return not isinstance(first, str | int | float) or (isinstance(first, str) and first.lstrip().startswith("["))


def _are_rows(value: Sequence[Any], side: str) -> bool:
    """True if a list has samples or items one by one rather than rankings or gold."""
    first = value[0] if len(value) else None
    if not isinstance(first, Mapping):
        return hasattr(first, "__struct_fields__")
    name = next((name for name in SIDE_NAMES[side] if name in first), None)
    if name is not None:
        return not isinstance(first[name], int | float)  # a number is the score of an item with that id
    if isinstance(first.get(ANSWERABLE), bool) or is_error(first.get(ERROR)):  # without gold, or without results
        return True
    return is_long(list(first)) and not all(isinstance(v, int | float) for v in first.values())


def check_same_ids(left: Side, right: Side) -> None:
    """Refuse two sides if only one of them has query ids."""
    if (left.ids is None) != (right.ids is None):
        known, unknown = ("retrieved", "gold") if right.ids is None else ("gold", "retrieved")
        raise InputError(f"{known} is given by query id, {unknown} only by position", hint="{query_id: […]} for both")


def by_text(side: Side) -> Side:
    """The side with query texts as ids, if it has no ids and the texts are unique."""
    texts = side.texts.get("query")
    if side.ids is not None or texts is None or None in texts or len(set(texts)) < len(texts):
        return side
    return side._replace(ids=valid_utf8([str(text) for text in texts]))


def _join(left: Side, right: Side) -> Samples:
    """Join results and gold by query id, by query text, or by position."""
    size = len(right.data.start) - 1
    if size == 0:
        raise InputError("the data set is empty: gold has no query")
    left, right = by_text(left), by_text(right)
    check_same_ids(left, right)
    right = gold_of_rows(left, right)
    size = len(right.data.start) - 1
    if left.ids is None and len(left.data) != size:
        problem = f"{len(left.data)} rankings, but gold for {size} queries"
        raise InputError(problem, hint="{query_id: […]} for both")
    ids, notes = right.ids or numbered(size), (*left.all_notes, *right.all_notes)
    rows: Sequence[int | None] = range(size)
    missing = None
    if left.ids is not None and left.ids != ids:
        rows = rows_of(ids, left.ids)
        left = left._replace(data=left.data.take(rows))
        missing = np.fromiter((row is None for row in rows), bool, size)
    lists: Mapping[str, list[Any]] = {**_take(left.id_lists, rows), **right.id_lists}
    if "exclude" in lists:
        data, about = without_excluded(left.data, right.data, lists["exclude"], by_id(ids))
        left, notes = left._replace(data=data), (*notes, *about)
    absent = 0 if missing is None else int(missing.sum())
    reading = Reading(
        source="data" if (left.source, right.source) == ("retrieved", "gold") else f"{left.source}, {right.source}",
        notes=notes,
        missing=absent,
        extra=0 if left.ids is None else len(left.ids) - size + absent,
    )
    texts: dict[str, Any] = {**_take(left.texts, rows), **right.texts}
    return Samples(
        ids=ids,
        retrieved=left.data,
        gold=right.data,
        **texts,
        cited=lists.get("cited"),
        meta=joined_meta(_take(left.meta, rows), right.meta, ids),
        missing=missing if absent else None,
        failed=left.failed_in(rows),
        reading=reading,
    )


def _take(columns: Mapping[str, list[Any]], rows: Sequence[int | None]) -> dict[str, list[Any]]:
    """Columns of one side in the order of the other."""
    if not columns:
        return {}
    return {name: [None if row is None else column[row] for row in rows] for name, column in columns.items()}
