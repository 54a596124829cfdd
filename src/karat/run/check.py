"""Checks of the columns of a run file: a file is input, and may be damaged or written by other programs.

Types come first, so that everything after them may rely on them; then nulls, ranges, and counts that must agree.
Nothing is allocated by a number in the file: what is read is as large as the columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, starts
from karat._internal.display import cut_name
from karat._internal.parquet import Damaged, check_size
from karat.hits import Gold, Hits
from karat.hits.totals import RAW_SCORE
from karat.run.metadata import Metadata

if TYPE_CHECKING:
    import polars as pl

RETRIEVED, GOLD_ITEMS = "retrieved", "gold_items"
META, ALONG, SIZE = "meta.", "along.", "size."
UNANSWERABLE = "unanswerable"
_DEEPEST = 2**31 - 1
"""The largest depth of a ranking."""
_ROUNDING = 1e-6

Expected: TypeAlias = str | list[str] | dict[str, str]
"""The name of a type, or several; in a list, a column of lists; in a dict, a column of lists of records."""
_QUERY: dict[str, Expected] = {
    "query_id": "String",
    "depth": "Int64",
    "gold": {"item": "String", "grade": "Float64"},
    "hits": {
        "rank": "Int64", "gold": "Int64", "grade": "Float64", "repeated": "Boolean", "part": "Boolean", "why": "String",
    },
}  # fmt: skip
_GOLD: dict[str, Expected] = {"detail": "String", "hop": "Int64", "aspects": ["String"]}
"""Fields that gold items may have."""
_TEXTS: dict[str, Expected] = {"query": "String", "failed": "String"}
_ITEM = {
    "id": "String", "text": "Categorical String", "doc": "String", "start": "Int64", "end": "Int64",
    "score": "Float64", "length": "Int64", "item": "Int32 Int64", "seen": "Boolean", "grade": "Float64",
}  # fmt: skip


def check_types(frame: pl.DataFrame, metadata: Metadata) -> None:
    """Refuse a frame in which a column is missing or has another type."""
    needed = dict(_QUERY)
    needed |= {name: "Float64" for metric in metadata.metrics for name in metric.names}
    if metadata.items is not None:
        needed[RETRIEVED] = {}
        if metadata.items["label"] is None:
            needed[GOLD_ITEMS] = {name: _ITEM[name] for name in ("item", "grade")}
    if missing := [name for name in needed if name not in frame.columns]:
        raise Damaged(f'it has no column "{missing[0]}"')
    known = {RETRIEVED: {}, GOLD_ITEMS: {}, UNANSWERABLE: "Boolean", **_TEXTS, **needed}
    for name, dtype in frame.schema.items():
        if name.startswith(META):
            if dtype.is_nested():
                raise Damaged(f'column "{name}" is {dtype}; expected texts or numbers')
        elif name.startswith((ALONG, SIZE)):
            _check_type(name, dtype, ["Float64"] if name.startswith(ALONG) else "Int64 Float64")
        elif name in known:
            _check_type(name, dtype, known[name])


def _check_type(name: str, dtype: pl.DataType, expected: Expected) -> None:
    import polars as pl

    if isinstance(expected, str):
        if str(dtype.base_type()) not in expected.split():
            raise Damaged(f'column "{name}" is {dtype}; expected {expected.replace(" ", " or ")}')
        return
    if not isinstance(dtype, pl.List):
        raise Damaged(f'column "{name}" is {dtype}; expected lists')
    inner = dtype.inner
    if isinstance(expected, list):
        _check_type(name, inner, expected[0])  # type: ignore[arg-type]
        return
    if not isinstance(inner, pl.Struct):
        raise Damaged(f'column "{name}" is {dtype}; expected lists of records')
    types = {field.name: field.dtype for field in inner.fields}
    if missing := [field for field in expected if field not in types]:
        raise Damaged(f'column "{name}" has no field "{missing[0]}"')
    for field, own in types.items():
        known: Mapping[str, Expected] = {**expected, **_GOLD} if name in _QUERY else _ITEM
        if field in known:
            _check_type(f"{name}.{field}", own, known[field])  # type: ignore[arg-type]


def fields_of_records(dtype: pl.DataType | None) -> dict[str, pl.DataType]:
    """The types of the fields of records, or of lists of them; empty for everything else."""
    import polars as pl

    own = dtype.inner if isinstance(dtype, pl.List) else dtype
    return {field.name: field.dtype for field in own.fields} if isinstance(own, pl.Struct) else {}  # type: ignore[misc]


class Texts:
    """The texts of a file as Python objects, unless they are together much larger than the file.

    Each is counted as often as it occurs: a file may contain a long text once, for a million rows.
    """

    def __init__(self, packed: int, per_byte: int) -> None:
        self._size, self._packed, self._per_byte = 0, packed, per_byte

    def count(self, column: pl.Series) -> None:
        """Raise Damaged if all texts so far, and those of the column, are too large."""
        import polars as pl

        kind = column.dtype
        if kind == pl.String:
            self._size += int(column.str.len_bytes().sum())
        elif kind == pl.Binary:
            self._size += int(column.bin.size().sum())
        elif kind in (pl.Categorical, pl.Enum):
            self._size += int(column.cat.len_bytes().sum())
        check_size(self._size, "bytes of texts", self._packed, self._per_byte)

    def read(self, column: pl.Series) -> list[Any]:
        """The values of a column."""
        self.count(column)
        return column.to_list()


def flat_lists(frame: pl.DataFrame, name: str, *, nulls: bool = False) -> tuple[pl.DataFrame, Ints]:
    """The elements of a column of lists, and the offset of each list; `nulls` are allowed in their fields only."""
    column = frame[name]
    refuse_nulls(name, column)
    flat = column.explode(empty_as_null=False, keep_nulls=False)
    if records := flat.dtype.is_nested():
        refuse_nulls(name, flat)
    fields = flat.struct.unnest() if records else flat.to_frame()
    for field in () if nulls else fields.columns:
        refuse_nulls(f"{name}.{field}" if records else name, fields[field])
    return fields, starts(column.list.len().to_numpy().astype(np.int64))


def refuse_nulls(name: str, column: pl.Series) -> None:
    """Refuse a column in which a value is missing."""
    if column.null_count():
        raise Damaged(f'column "{name}" has no value in row {int(column.is_null().arg_max() or 0) + 1}')


def query_ids(frame: pl.DataFrame, texts: Texts) -> list[str]:
    """The ids of the queries, each once."""
    column = frame["query_id"]
    refuse_nulls("query_id", column)
    ids = texts.read(column)
    if len(set(ids)) < len(ids):
        twice = column.filter(column.is_duplicated())[0]
        raise Damaged(f'two queries have the id "{cut_name(twice, 60)}"')
    return ids


def depths(frame: pl.DataFrame) -> Ints:
    """The depth of each ranking."""
    refuse_nulls("depth", frame["depth"])
    depth: Ints = frame["depth"].to_numpy()
    _refuse(frame, (depth < 0) | (depth > _DEEPEST), "depth", depth, f"0 to {_DEEPEST:,}")
    return depth


def at_ranks(frame: pl.DataFrame, name: str, depth: Ints) -> Floats:
    """A total at each rank of each query; retrieval scores may be infinite."""
    flat, start = flat_lists(frame, name)
    size = np.diff(start)
    _refuse(frame, size != depth, f"the number of values in {name}", size, "the depth of the ranking")
    values: Floats = flat.to_series().to_numpy()
    if name == f"{ALONG}{RAW_SCORE}":  # unknown in a part of a merged run
        return values
    bad = np.isnan(values) if name == f"{ALONG}score" else ~np.isfinite(values)
    if bad.any():
        raise Damaged(f'column "{name}" has a value of {values[bad][0]}; expected a number')
    return values


def unanswerable_queries(frame: pl.DataFrame, gold: Gold) -> Bools | None:
    """Flags of the queries without an answer, which have no relevant gold unless a judge made it."""
    if UNANSWERABLE not in frame.columns:
        return None
    refuse_nulls(UNANSWERABLE, frame[UNANSWERABLE])
    flags: Bools = frame[UNANSWERABLE].to_numpy()
    if len(flags) != len(gold.start) - 1:
        raise Damaged(f'column "{UNANSWERABLE}" has {len(flags)} values')
    return flags if flags.any() else None


def gold_sizes(frame: pl.DataFrame, name: str) -> Floats:
    """A number per query that totals are compared with; the number of cited items may be unknown (NaN)."""
    refuse_nulls(name, frame[name])
    values: Floats = frame[name].to_numpy()
    unknown = np.isnan(values) & (name == f"{SIZE}cited")
    _refuse(frame, ~(unknown | (np.isfinite(values) & (values >= 0))), name, values, "a number from 0")
    return values


def grades(column: pl.Series, name: str) -> Floats:
    """Grades, which are finite."""
    values: Floats = column.to_numpy()
    if not np.isfinite(values).all():
        raise Damaged(f"{name} has a grade of {values[~np.isfinite(values)][0]}; expected a number")
    return values


def gold_numbers(column: pl.Series, query: Ints, start: Ints) -> Ints:
    """The numbers of the gold items of hits within their queries; memory is allocated by the largest of them."""
    numbers = ranks(column)
    if (numbers >= np.diff(start)[query]).any():
        raise Damaged("a hit is on a gold item that does not exist")
    return numbers


def ranks(column: pl.Series) -> Ints:
    """The ranks of hits, or other numbers of things; `Hits.check` compares ranks with the depth of their ranking."""
    values: Ints = column.to_numpy()
    bad = (values < 0) | (values > _DEEPEST)
    if bad.any():
        raise Damaged(f"a hit has the {column.name} {values[bad][0]:,}")
    return values


def check_hits(hits: Hits) -> None:
    """Refuse a hit that is listed twice, or that has a negative grade while its gold item has none."""
    if (hits.grade < np.minimum(hits.gold_items.grade[hits.gold], 0)).any():
        raise Damaged("a hit has a negative grade, but its gold item has none")
    later, gold = np.diff(hits.rank), np.diff(hits.gold)
    if ((np.diff(hits.query) > 0) | (later > 0) | ((later == 0) & (gold > 0))).all():
        return  # in the order in which runs are saved
    both = np.sort(hits.gold * (int(hits.rank.max(initial=0)) + 1) + hits.rank)
    if (both[1:] == both[:-1]).any():
        raise Damaged("a query has the same hit twice: the same rank and gold item")


def check_sizes(start: Ints, depth: Ints) -> None:
    """Refuse rankings of which more items are stored than they have."""
    if (np.diff(start) > depth).any():
        raise Damaged("a query has more stored items than the depth of its ranking")


def scores(frame: pl.DataFrame, metadata: Metadata, hits: Hits) -> dict[str, Floats]:
    """The scores of each metric, within its limits; NaN is undefined, as it must be where judging failed."""
    found: dict[str, Floats] = {}
    failed = np.array(list(hits.failed), np.int64)
    for metric in metadata.metrics:
        low, high = metric.limits(metadata.convention, hits)
        for name in metric.names:
            values: Floats = frame[name].to_numpy()
            with np.errstate(invalid="ignore"):
                outside = (values < low - _ROUNDING) | (values > high + _ROUNDING)
            if not metric.unit:
                outside |= np.isinf(values)
            highest = np.max(high, initial=0.0)
            _refuse(frame, outside, name, values, "a finite number" if np.isinf(low) else f"{low:g} to {highest:g}")
            if not np.isnan(values[failed]).all():
                raise Damaged(f"{name} has a score for a query that could not be judged")
            found[name] = values
    return found


def _refuse(frame: pl.DataFrame, bad: Bools, name: str, values: Floats | Ints, expected: str) -> None:
    """Refuse the first bad value, with its query."""
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        query = cut_name(str(frame["query_id"][row]), 60)
        raise Damaged(f'{name} of query "{query}" is {values[row]:,}; expected {expected}')


def check_gold_items(gold: pl.DataFrame, start: Ints, of: Ints) -> None:
    """Refuse stored gold items without a grade, or of a gold item that does not exist."""
    for name in ("item", "grade"):
        refuse_nulls(f"{GOLD_ITEMS}.{name}", gold[name])
    item, size = gold["item"].to_numpy(), np.repeat(np.diff(of), np.diff(start))
    if ((item < 0) | (item >= np.maximum(size, 1))).any():  # in a query without gold items, all are 0
        raise Damaged("a stored gold item belongs to a gold item that does not exist")
