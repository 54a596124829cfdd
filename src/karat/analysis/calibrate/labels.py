"""Human labels: a table of single judgements, or of scores of whole queries, whatever its columns are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import isfinite, nan
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.display import plural, valid_utf8
from karat.errors import InputError, KaratError
from karat.hits import Hits
from karat.metrics import parse
from karat.run import Run
from karat.samples.dialects import LONG
from karat.samples.files import Rows, read_file
from karat.samples.frames import as_polars, is_frame
from karat.samples.keys import as_id
from karat.samples.sources import STANDARD_INPUT

Kind = Literal["score", "gold", "rank", "pair"]
"""Of what a label is: a whole query, a gold item, a retrieved item, or a retrieved item set against a gold item."""

ROLES = {
    "query": ("query_id", "qid", "question_id", "id", *LONG["query"]),
    "gold": ("gold", "gold_item", "claim", "statement", "fact"),
    "item": ("item", "text"),
    "number": ("gold_number", "claim_number", "item_number", "number"),
    "rank": LONG["rank"],
    "label": ("label", "human_label", "human", "supported", "relevant", "found", "correct", "verdict", "judgement",
              "judgment", "truth", "score", "human_score", "relevance", "rating"),
    "score": ("score", "human_score", "human", "label", "human_label", "rating", "truth"),
}  # fmt: skip
"""The columns of a table of labels by the names they go under, the better first."""
_YES, _NO = {"1", "true", "yes", "y", "t"}, {"0", "false", "no", "n", "f"}
_HINT = "query_id,gold,label  or  query_id,rank,label  or  query_id,score"


class Labels(NamedTuple):
    """Labels as they were read, one for each row that has one."""

    source: str
    kind: Kind
    query: list[str]
    gold: list[str] | None
    """The gold item, by its label."""
    number: list[int] | None
    """The gold item, by its number in the query, from 0."""
    rank: list[int] | None
    value: list[float]
    columns: dict[str, str]
    """The column that was taken for each role."""
    blank: int
    """Rows without a label."""

    @property
    def metric(self) -> str | None:
        """The metric that the column of scores is named after, if it is."""
        return _metric_name(self.columns["value"])


def read_labels(given: Any, metrics: Collection[str]) -> Labels:
    """Read labels from a file, a frame, rows, columns, or a dict of scores by query id."""
    columns, source = _columns(given)
    names = _roles(columns, metrics, source)
    query, value = columns[names["query"]], columns[names["value"]]
    kind: Kind = _KINDS["gold" in names or "number" in names, "rank" in names]
    rows = [row for row, one in enumerate(value) if not _is_blank(one)]
    if not rows:
        raise InputError(f'{source}: column "{names["value"]}" is empty in every row', hint="1 or 0 in each row")
    read = _Reader(columns, names, source, rows)
    return Labels(
        source,
        kind,
        read.column("query", _id),
        read.column("gold", _id) if "gold" in names else None,
        read.column("number", _whole) if "number" in names else None,
        read.column("rank", _rank) if "rank" in names else None,
        read.column("value", _score if kind == "score" else _truth),
        names,
        len(query) - len(rows),
    )


_KINDS: dict[tuple[bool, bool], Kind] = {
    (False, False): "score",
    (True, False): "gold",
    (False, True): "rank",
    (True, True): "pair",
}


class _Reader(NamedTuple):
    """The rows of a table that have a label."""

    columns: Mapping[str, Sequence[Any]]
    names: Mapping[str, str]
    source: str
    rows: list[int]

    def column(self, role: str, read: Any) -> list[Any]:
        """One column, each cell read; what cannot be read is told with its row."""
        name, found = self.names[role], []
        for row in self.rows:
            cell = self.columns[name][row]
            try:
                found.append(read(cell.strip() if isinstance(cell, str) else cell))
            except (TypeError, ValueError) as error:
                wanted = error.problem if isinstance(error, KaratError) else str(error)
                raise InputError(f'{self.source}, row {row + 1}: column "{name}": {wanted}', got=cell) from None
        return found


def _columns(given: Any) -> tuple[dict[str, Sequence[Any]], str]:
    """The columns of whatever was given, and what to call it."""
    source = "labels"
    if isinstance(given, str | PathLike):
        source = "standard input" if str(given) == STANDARD_INPUT else str(given)
        given = read_file(given)
    rows = given.rows if isinstance(given, Rows) else given
    if is_frame(rows):
        frame = as_polars(rows)
        columns: dict[str, Sequence[Any]] = {str(name): frame[name].to_list() for name in frame.columns}
    elif isinstance(rows, Mapping) and rows and all(isinstance(one, list | tuple) for one in rows.values()):
        columns = {str(name): one for name, one in rows.items()}
    elif isinstance(rows, Mapping):
        columns = {"query_id": list(rows), "score": list(rows.values())}
    elif isinstance(rows, list | tuple) and rows and all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(str(name) for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
    else:
        raise InputError("labels are a file, a table, or a list of dicts", got=rows, hint=_HINT)
    sizes = set(map(len, columns.values()))
    if len(sizes) != 1 or 0 in sizes:
        raise InputError(f"{source}: wanted a table with at least one row, all columns of one length", hint=_HINT)
    return columns, source


def _roles(columns: Mapping[str, Sequence[Any]], metrics: Collection[str], source: str) -> dict[str, str]:
    """Which column plays which role; one without a single value plays none."""
    folded = {_fold(name): name for name in reversed(list(columns)) if not all(map(_is_blank, columns[name]))}

    def find(role: str) -> str | None:
        return next((folded[_fold(name)] for name in ROLES[role] if _fold(name) in folded), None)

    found = {role: name for role in ("query", "number", "rank") if (name := find(role)) is not None}
    # A text beside a rank is that of the retrieved item, for people to read.
    gold = find("gold") or (None if "rank" in found else find("item"))
    if "number" not in found and gold is not None:
        found["gold"] = gold
    named = [name for name in columns if _metric_name(name) in metrics and len(found) == 1]
    if len(named) > 1:
        raise InputError(f"{source}: scores of several metrics; wanted one", got=named, hint="metric=…, or --metric")
    value = named[0] if named else find("label" if len(found) > 1 else "score")
    if value is not None:
        found["value"] = value
    for role, wanted in (("query", "query_id"), ("value", "label")):
        if role not in found:
            raise InputError(f'{source}: no column "{wanted}"', got=list(columns), hint=_HINT)
    return found


def _fold(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _metric_name(text: str) -> str | None:
    """The metric of this name as karat spells it, if there is one."""
    try:
        return str(parse(text))
    except KaratError:
        return None


def _is_blank(cell: Any) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())


def _id(cell: Any) -> str:
    if _is_blank(cell):
        raise ValueError("it is empty, but the row has a label")
    return as_id(cell)


def _whole(cell: Any) -> int:
    number = _number(cell)
    if not number.is_integer() or number < 0:
        raise ValueError("wanted the number of a gold item in its query, from 0")
    return int(number)


def _rank(cell: Any) -> int:
    number = _number(cell)
    if not number.is_integer() or number < 1:
        raise ValueError("wanted a rank, from 1")
    return int(number)


def _truth(cell: Any) -> float:
    text = as_id(cell).lower() if not isinstance(cell, bool) else str(cell).lower()
    text = text.removesuffix(".0")
    if text not in _YES | _NO:
        raise ValueError("wanted a label, 1 or 0")
    return float(text in _YES)


def _score(cell: Any) -> float:
    number = _truth(cell) if isinstance(cell, bool) or str(cell).lower() in _YES | _NO else _number(cell)
    if not 0 <= number <= 1:
        raise ValueError("wanted a score between 0 and 1")
    return number


def _number(cell: Any) -> float:
    try:
        number = nan if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError):
        number = nan
    if not isfinite(number):
        raise ValueError("wanted a number")
    return number


_NOWHERE = -1


class Matched(NamedTuple):
    """Labels of judgements that the run has, each once."""

    kind: Kind
    row: Ints
    """The query."""
    gold: Ints
    """The gold item, counted through all queries; -1 where the label is of a rank alone."""
    rank: Ints
    """The rank; 0 where the label is of a gold item alone."""
    value: Floats
    looked: Ints
    """How many ranks of each query of the run people have looked at."""
    notes: list[str]
    """What became of the labels that are not here."""


def match(run: Run, labels: Labels, seen: int | None = None) -> Matched:
    """Find the judgement of each label; a judgement that has two different labels is refused.

    People have looked at everything that was retrieved, unless they have `seen` only the top.
    """
    find = _finder(run, labels)
    found: dict[tuple[int, int, int], float] = {}
    lost = dict.fromkeys(("query", "item", "failed", "again"), 0)
    for place, (query, value) in enumerate(zip(labels.query, labels.value, strict=True)):
        row = find.rows.get(query)
        if row is None or row in run.all_hits.failed:
            lost["query" if row is None else "failed"] += 1
            continue
        keys = find.keys(row, place)
        lost["item"] += not keys
        lost["again"] += any(key in found for key in keys)
        for key in keys:
            if found.setdefault(key, value) != value:
                raise InputError(
                    f"{labels.source}: {find.told(key)} has two labels that differ",
                    got=(found[key], value),
                    hint="one label for each, such as the majority of several people",
                )
    if not found:
        raise _nothing(run, labels, lost, find.rows)
    row, gold, rank = np.array(list(found), np.int64).T
    values, depth = np.array(list(found.values())), run.all_hits.depth
    impossible = (values > 0) & (depth[row] == 0)
    if labels.kind != "score" and impossible.any():
        query = run.ids[int(row[impossible][0])]
        raise InputError(f'{labels.source}: a label says yes, but nothing was retrieved for the query "{query}"')
    looked = depth if seen is None or run.all_hits.gold_items.incomplete else np.minimum(depth, seen)
    return Matched(find.kind, row, gold, rank, values, looked, [*find.notes, *_told(lost, labels)])


class _Finder:
    """Where the judgements of a run are."""

    def __init__(self, run: Run, labels: Labels) -> None:
        hits = run.all_hits
        self.rows = {query: row for row, query in enumerate(valid_utf8(run.ids))} | {
            q: r for r, q in enumerate(run.ids)
        }
        self.notes: list[str] = []
        self._run, self._hits, self._labels = run, hits, labels
        self._number = labels.number
        # Where the judge makes gold of what was retrieved, an item and its gold are one.
        self.kind: Kind = "gold" if hits.gold_items.incomplete and labels.kind in ("rank", "pair") else labels.kind

    def keys(self, row: int, place: int) -> list[tuple[int, int, int]]:
        """The judgements of a label; several if gold items have the same name."""
        labels, hits = self._labels, self._hits
        rank = 0 if labels.rank is None else labels.rank[place]
        if labels.kind == "score":
            return [(row, _NOWHERE, 0)]
        if rank > hits.depth[row]:
            return []
        if labels.kind == "rank" and not hits.gold_items.incomplete:
            return [(row, _NOWHERE, rank)]
        gold = self._at_rank(row, rank) if labels.kind == "rank" else self._gold(row, place)
        return [(row, item, rank if self.kind == "pair" else 0) for item in gold]

    def _gold(self, row: int, place: int) -> list[int]:
        first, last = (int(end) for end in self._hits.gold_items.start[row : row + 2])
        if self._number is not None:
            return [first + self._number[place]] if first + self._number[place] < last else []
        assert self._labels.gold is not None
        wanted = _folded(self._labels.gold[place])
        return [item for item in range(first, last) if _folded(self._hits.gold_items.label[item]) == wanted]

    def _at_rank(self, row: int, rank: int) -> list[int]:
        hits = self._hits
        first, last = np.searchsorted(hits.query, (row, row + 1)).tolist()
        return [int(hits.gold[i]) for i in range(first, last) if hits.rank[i] == rank]

    def told(self, key: tuple[int, int, int]) -> str:
        """A judgement in words."""
        row, gold, rank = key
        parts = [f'query "{self._run.ids[row]}"']
        parts += [f"rank {rank}"] if rank else []
        parts += [f'gold item "{self._hits.gold_items.label[gold][:60]}"'] if gold != _NOWHERE else []
        return ", ".join(parts)

    def by_number(self) -> None:
        """Take what names no gold item for its number."""
        assert self._labels.gold is not None
        self._number = [int(text) for text in self._labels.gold]
        self.notes.append(f'Column "{self._labels.columns["gold"]}" was taken for numbers of gold items, from 0.')


def _finder(run: Run, labels: Labels) -> _Finder:
    """Gold items go by their names; if none has such a name and all are whole numbers, by their numbers."""
    find = _Finder(run, labels)
    if labels.gold is None or not all(text.isascii() and text.isdecimal() for text in labels.gold):
        return find
    named = (find.rows.get(query) for query in labels.query)
    if not any(row is not None and find._gold(row, place) for place, row in enumerate(named)):  # noqa: SLF001
        find.by_number()
    return find


def _folded(text: str) -> str:
    return " ".join(text.split())


def _nothing(run: Run, labels: Labels, lost: dict[str, int], rows: dict[str, int]) -> InputError:
    """The error for labels of which not one can be used."""
    if lost["failed"]:
        return InputError(f"{labels.source}: no label is of the run, but for queries that could not be judged")
    if lost["query"] == len(labels.query):
        theirs, ours = (", ".join(f'"{query[:40]}"' for query in ids[:3]) for ids in (labels.query, run.ids))
        return InputError(f"{labels.source}: no label is of a query of the run", got=theirs, hint=f"ids such as {ours}")
    row = next(rows[query] for query in labels.query if query in rows)
    items = [item.gold[:40] for item in run.gold(run.ids[row])][:3]
    have = f"{int(run.all_hits.depth[row])} ranks, gold items {items}"
    return InputError(f'{labels.source}: no label is of an item of the run; query "{run.ids[row]}" has {have}')


def _told(lost: dict[str, int], labels: Labels) -> list[str]:
    words = {
        "query": "of queries that the run does not have: not used.",
        "item": "of items that the run does not have: not used.",
        "failed": "of queries that could not be judged: not used.",
        "again": "given twice: used once.",
    }
    said = [f"{plural(count, 'label is', 'labels are')} {words[why]}" for why, count in lost.items() if count]
    return [*said, *([f"{plural(labels.blank, 'row has', 'rows have')} no label."] if labels.blank else [])]


def said(hits: Hits, matched: Matched, rel: float | None) -> Bools:
    """What the judge says where the labels are: a gold item is found, a rank is relevant, or both."""
    kept = hits.grade > 0 if rel is None else hits.grade >= rel
    stride = int(hits.depth.max(initial=0)) + 1
    whole = kept if hits.part is None else kept & ~hits.part
    keys: dict[str, tuple[Any, Any]] = {
        "gold": (hits.gold[whole & (hits.rank <= matched.looked[hits.query])], matched.gold),
        "rank": ((hits.query * stride + hits.rank)[kept], matched.row * stride + matched.rank),
        "pair": ((hits.gold * stride + hits.rank)[kept], matched.gold * stride + matched.rank),
    }
    theirs, wanted = keys[matched.kind]
    found: Bools = np.isin(wanted, theirs)
    return found
