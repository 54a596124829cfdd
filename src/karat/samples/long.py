"""Long tables: one row per retrieved or gold item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, starts
from karat._internal.threads import Background
from karat._kernel import kernel
from karat.errors import InputError, NoColumn
from karat.samples.aspect_rows import AspectColumn, GoldRows, aspect_column
from karat.samples.columns import Side
from karat.samples.dialects import LONG, long_column, long_columns, misnamed
from karat.samples.items import SYNONYMS, gold_of, rankings_of
from karat.samples.keys import by_id
from karat.samples.missing_columns import long_fields, no_column, some_values
from karat.samples.notes import Note
from karat.samples.rankings.steps import About, Steps
from karat.samples.rankings.table import Table

if TYPE_CHECKING:
    import polars as pl

_SEEN = 1000
"""The number of rows that show whether scores are distances: no large table is read twice."""
_WORTH_A_THREAD = 1 << 19
"""The number of rows from which grouping them in a second thread pays."""
_FEWEST_PAIRS = 6
"""The number of neighbours, all with rising scores, that is no coincidence."""
_MORE_THAN_IDS = {"text", "start", "end", "group"}


def has_records(columns: Sequence[str]) -> bool:
    """True if a long table has more than ids; a text column without an id column is the id itself."""
    item = long_column(columns, "item")
    names = {name.lower() for name in columns}
    more = _MORE_THAN_IDS & {SYNONYMS.get(name.lower(), name.lower()) for name in columns if name != item}
    return bool(more) or ("chunk_id" in names and bool(names & {"doc", "doc_id", "document_id"}))


def read_long(frame: pl.DataFrame, side: str, source: str, first: int = 0) -> Side:
    """Rankings or gold from a long table; `first` rows of the source come before it."""
    if side == "retrieved" and (step := long_column(frame.columns, "step")):
        return _read_steps(frame, step, source, first)
    table = LongTable(frame, source, first)
    if has_records(frame.columns):
        return table.records(side)
    return table.rankings() if side == "retrieved" else table.gold()


def _read_steps(frame: pl.DataFrame, step: str, source: str, first: int) -> Side:
    """Rankings of steps: one for each query and step; steps are in the order of their numbers, or of their rows."""
    import polars as pl

    table = LongTable(frame, source, first)
    query, ids = table.name("query"), table.ids("query")
    number = frame[step]
    if number.null_count():
        raise InputError(
            f'{source}: column "{step}" is empty in row {first + int(number.is_null().arg_max() or 0) + 1}'
        )
    rank = number.cast(pl.Float64, strict=False)
    numbers = not rank.null_count()
    rank = rank if numbers else pl.Series(range(len(frame)))
    pairs = pl.DataFrame({"query": ids, "step": ids_of(number), "rank": rank})
    key = pairs["query"].str.len_chars().cast(pl.String) + ":" + pairs["query"] + pairs["step"]
    side = read_long(frame.drop(step).with_columns(key.alias(str(query))), "retrieved", source, first)
    order = pairs.with_columns(key=key).unique("key", keep="first", maintain_order=True)
    queries = order["query"].unique(maintain_order=True)
    at = queries.alias("query").to_frame().with_row_index("row")
    order = order.join(at, on="query", how="left", maintain_order="left").sort("row", "rank", maintain_order=True)
    place = {name: row for row, name in enumerate(side.ids or ())}
    own = side.data.take([place[name] for name in order["key"].to_list()])
    nothing = [None] * len(order)
    names = nothing if numbers else order["step"].to_list()
    about = About(names, nothing, nothing, nothing, nothing)
    size = np.bincount(order["row"].to_numpy(), minlength=len(queries))
    return side._replace(ids=queries.to_list(), data=Steps(own, starts(size), queries.to_list(), about), texts={})


class LongTable(NamedTuple):
    """A long table and its place in the source."""

    frame: pl.DataFrame
    source: str
    first: int = 0
    """The number of rows of the source before this table, to name rows in errors."""

    def name(self, role: str) -> str | None:
        """The name of the column with this role; refuses two, unless one has the text or the document of the other."""
        found = long_columns(self.frame.columns, role)
        if role in ("query", "item"):
            found = [name for name in found if name.lower() == found[0].lower()]
        if len(found) > 1:
            problem = f'{self.source}: the columns "{found[0]}" and "{found[1]}" are both read as the {role}'
            raise InputError(problem, hint=f'drop or rename "{found[1]}"')
        folded = {name.strip().lower(): name for name in self.frame.columns if name not in found}
        if found and (twin := folded.get(found[0].lower())):
            problem = f'{self.source}: the columns "{found[0]}" and "{twin}" differ only in spaces'
            raise InputError(problem, hint=f'drop or rename "{twin}"')
        return next(iter(found), None)

    def rankings(self) -> Side:
        """One row per retrieved item, ordered by score, else by distance, else by rank, else as given."""
        score, rank, distance = self.name("score"), self.name("rank"), self.name("distance")
        if score is None and rank is None and distance is None:
            if self.name("grade") is not None:
                problem = "has grades, but neither scores nor ranks: it looks like gold, not like results"
                raise InputError(f"{self.source} {problem}")
            self._refuse_misnamed("score", "rank")
        item = self.ids("item")
        with Background(worth_a_thread=len(self.frame) >= _WORTH_A_THREAD) as background:
            groups = background.start(_group, self._filled("query"))
            scores = self._numbers(str(score or distance)) if score or distance else None
            grouped = groups()
        order = grouped.order
        notes: tuple[Note, ...] = ()
        if scores is not None:
            scores = scores if order is None else scores.gather(order)
            if score is None:
                scores = -scores
            elif rises(scores[: 2 * _SEEN].to_numpy(), grouped.size):
                notes = (Note("scores_rise", details={"source": self.source, "column": score}),)
        elif rank is not None:
            order = _by_rank(grouped, self._ranks(rank).to_numpy())
        by = f"the column {score or rank}" if score or rank else "row order"
        by = f"the column {distance}, the smallest first" if distance and not score else by
        table = Table(item if order is None else item.gather(order), starts(grouped.size), scores)
        ranked = Note("ranked_by", details={"source": self.source, "by": by})
        return Side(grouped.ids, table, self.source, (ranked, *notes), self._texts(grouped))

    def gold(self) -> Side:
        """One row per gold item; without a grade column every item has grade 1."""
        if self.name("rank") is not None:
            raise InputError(f"{self.source} has ranks: it looks like results, not like gold")
        name = self.name("grade") or self.name("score")  # BEIR stores grades as "score"
        if name is None:
            self._refuse_misnamed("grade", "score")
        item = self.ids("item")
        grouped = _group(self._filled("query"))
        grade = self._numbers(name).to_numpy() if name else np.ones(len(self.frame))
        if name and np.isinf(grade).any():
            raise InputError(f'{self.source}: column "{name}" has an infinite grade')
        if grouped.order is not None:
            item, grade = item.gather(grouped.order), grade[grouped.order]
        keys = item.to_list()
        note = Note("graded_by", details={"source": self.source, "column": name})
        rows = GoldRows(keys, grade, starts(grouped.size))
        if (aspects := self._aspects(grouped)) is not None:
            rows, more = rows.with_aspects(aspects.names), Note("aspects_read", details=aspects.read)
            return Side(grouped.ids, rows.items(), self.source, (note, more), self._texts(grouped))
        return Side(grouped.ids, rows.items(), self.source, (note,), self._texts(grouped))

    def _texts(self, grouped: _Groups) -> dict[str, list[str | None]]:
        """The text of each query, from a column `query` beside that of the ids."""
        import polars as pl

        names = [name for name in long_columns(self.frame.columns, "query")[1:] if name.lower() == "query"]
        if not names or self.frame[name := names[0]].dtype != pl.String:
            return {}
        first = starts(grouped.size)[:-1]
        return {"query": self.frame[name].gather(first if grouped.order is None else grouped.order[first]).to_list()}

    def _aspects(self, grouped: _Groups) -> AspectColumn | None:
        """The aspects of each row; None if there is no such column, or it only counts iterations."""
        name = self.name("aspect") or self.name("iteration")
        if name is None:
            return None
        column = self.frame[name] if grouped.order is None else self.frame[name].gather(grouped.order)
        read = {"source": self.source, "column": name}
        return aspect_column(column, starts(grouped.size), read, sure=self.name("aspect") is not None)

    def records(self, side: str) -> Side:
        """Items as records with a text, a range or a group; best first, or with scores."""
        number = "score" if side == "retrieved" else "grade"
        query, value, rank = self.name("query"), self.name(number), self.name("rank")
        frame, ids = self.frame, self.ids("query")
        if side == "retrieved" and value is None and (far := self.name("distance")) is not None:
            frame = frame.with_columns(self._numbers(far).alias(far))
        if side == "retrieved" and rank is not None and value is None:
            order = self._ranks(rank).arg_sort()  # stable
            frame, ids = frame[order], ids[order]
        names = {name: name.lower() for name in frame.columns if name not in (query, rank, value)}
        names |= {value: number} if value is not None else {}
        if len(set(names.values())) < len(names):
            raise InputError(f"{self.source}: two column names differ only in case", got=list(frame.columns))
        grouped: dict[str, list[dict[str, Any]]] = {}
        for name, record in zip(ids.to_list(), frame.select(list(names)).rename(names).to_dicts(), strict=True):
            grouped.setdefault(name, []).append(record)
        queries = list(grouped)
        rows, where = list(grouped.values()), by_id(queries)
        data = gold_of(rows, queries, where) if side == "gold" else rankings_of(rows, queries, where, listed=False)
        return Side(queries, data, self.source)

    def ids(self, role: str) -> pl.Series:
        """The query or item ids as text."""
        return ids_of(self._filled(role))

    def _filled(self, role: str) -> pl.Series:
        """The column with this role, which must exist and have no nulls."""
        name = self.name(role)
        if name is None:
            raise no_column(LONG[role][0], some_values(self.frame), self.source)
        column = self.frame[name]
        if column.null_count():
            raise InputError(f'{self._row(column.is_null())}: column "{name}" is empty')
        return column

    def _numbers(self, name: str) -> pl.Series:
        import polars as pl

        given = self.frame[name]
        if given.dtype == pl.Boolean and name != long_column(self.frame.columns, "grade"):
            raise InputError(f'{self.source}: column "{name}" has type Boolean; expected numbers')
        try:
            column = (given.str.strip_chars() if given.dtype == pl.String else given).cast(pl.Float64, strict=False)
            is_number = column.dtype == pl.Float64  # the cast of a struct stays a struct
        except pl.exceptions.PolarsError:
            is_number = False
        if not is_number:
            raise InputError(f'{self.source}: column "{name}" has type {given.dtype}; expected numbers')
        if column.null_count() or column.is_nan().any():
            bad = column.is_null() | column.is_nan()
            raise InputError(f'{self._row(bad)}: "{name}" is not a number', got=given[bad.arg_max() or 0])
        return column

    def _ranks(self, name: str) -> pl.Series:
        ranks = self._numbers(name)
        if (bad := ranks < 0).any():
            raise InputError(f"{self._row(bad)}: negative rank", got=self.frame[name][bad.arg_max() or 0])
        return ranks

    def _row(self, bad: pl.Series) -> str:
        """The name of the first bad row."""
        return f"{self.source}, row {self.first + int(bad.arg_max() or 0) + 1}"

    def _refuse_misnamed(self, *roles: str) -> None:
        """Refuse a column that is probably misnamed: ignoring it would change the scores."""
        self._filled("query")
        if (close := misnamed(self.frame.columns, *roles)) is not None:
            raise no_column(close[1], self.frame.columns, self.source)
        known = {self.name(role) for role in ("query", "item")}
        for name in self.frame.columns:
            if name not in known and self.frame[name].dtype.is_numeric():
                problem = f'{self.source}: no column "{roles[0]}", but an unknown numeric column "{name}"'
                others = {field: own for field, own in long_fields(some_values(self.frame)).items() if field != "score"}
                raise NoColumn(problem, got=list(self.frame.columns), fields={**others, roles[0]: name})


class _Groups(NamedTuple):
    """The queries of a long table in order of appearance."""

    ids: list[str]
    size: Ints
    """The number of rows of each query."""
    order: Ints | None
    """The rows sorted by query; None if they already are."""


def _group(query: pl.Series) -> _Groups:
    """The rows of each query; in most files they are contiguous and stay in place."""
    import polars as pl

    ids_of(query.clear())  # refuses a column of another type
    first = first_rows(query)
    heads = ids_of(query.gather(first))
    size = np.diff(first, append=len(query))
    if heads.n_unique() == len(heads):
        return _Groups(heads.to_list(), size, None)
    ids = heads.unique(maintain_order=True).alias("id").to_frame().with_row_index("query")
    block = heads.alias("id").to_frame().join(ids, on="id", how="left", maintain_order="left")["query"].to_numpy()
    number = np.repeat(block, size)
    order = pl.Series(number).arg_sort().to_numpy().astype(np.int64)  # stable
    return _Groups(ids["id"].to_list(), np.bincount(number, minlength=len(ids)), order)


def first_rows(query: pl.Series) -> Ints:
    """The rows at which the query changes, including the first row."""
    import polars as pl

    native = kernel() if query.dtype == pl.String else None
    rows = None if native is None else native.changes_in_column(query.__arrow_c_stream__())
    return _first_rows_in(query) if rows is None else np.frombuffer(rows, np.int64)


def _first_rows_in(query: pl.Series) -> Ints:
    """The same without the kernel, chunk by chunk."""
    chunks = [chunk for chunk in query.get_chunks() if len(chunk)]
    begin = starts(np.array([len(chunk) for chunk in chunks], np.int64))

    def within(number: int) -> Ints:
        chunk, at = chunks[number], int(begin[number])
        rows = (chunk[1:] != chunk[:-1]).arg_true().to_numpy().astype(np.int64) + at + 1
        return rows if at and chunk[0] == query[at - 1] else np.concatenate(([at], rows))

    # One after the other: comparing so few rows takes less time than handing the work to a thread.
    return np.concatenate([np.zeros(0, np.int64), *map(within, range(len(chunks)))])


def rises(scores: Floats, size: Ints) -> bool:
    """True if the scores of every query rise from row to row, as distances do, as far as the first rows show."""
    queries, pairs, at = 0, 0, 0
    for rows in size[:_SEEN].tolist():
        own = scores[at : at + min(rows, _SEEN)]
        at += rows
        if len(own) > 1 and own[0] != own[-1]:
            if not (own[1:] >= own[:-1]).all():
                return False
            queries, pairs = queries + 1, pairs + len(own) - 1
        if at > _SEEN:
            break
    return queries > 1 and pairs >= _FEWEST_PAIRS


def _by_rank(grouped: _Groups, ranks: Floats) -> Ints | None:
    """The rows of each query sorted by rank (stable); None if they already are."""
    order = grouped.order
    ranks = ranks if order is None else ranks[order]
    query = np.repeat(np.arange(len(grouped.ids)), grouped.size)
    if ((ranks[1:] >= ranks[:-1]) | (query[1:] != query[:-1])).all():
        return order
    by_rank = np.lexsort((ranks, query))
    return by_rank if order is None else order[by_rank]


def ids_of(column: pl.Series) -> pl.Series:
    """Ids as text; 1.0 is the id "1"."""
    import polars as pl

    if column.dtype == pl.String:
        return column
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        if not (whole.cast(column.dtype) == column).fill_null(value=False).all():
            raise InputError(f'column "{column.name}" has ids that are not whole numbers')
        column = whole
    if not (column.dtype.is_integer() or column.dtype in (pl.Categorical, pl.Enum)):
        raise InputError(f'column "{column.name}" has type {column.dtype}; expected strings or whole numbers as ids')
    return column.cast(pl.String)
