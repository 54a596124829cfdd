"""Human labels: read a table of single judgements or of query scores, and match it to the judgements of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite, nan
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, is_relevant
from karat._internal.display import valid_utf8
from karat.errors import InputError, KaratError
from karat.hits import Hits
from karat.metrics import parse
from karat.run import Run
from karat.samples.dialects import LONG
from karat.samples.files import read_file
from karat.samples.frames import as_polars, is_frame
from karat.samples.json_rows import Rows
from karat.samples.keys import as_id
from karat.samples.notes import Note
from karat.samples.sources import STANDARD_INPUT

Kind = Literal["score", "gold", "rank", "pair"]
"""A labelled thing: a whole query, a gold item, a retrieved item, or a pair of a retrieved item and a gold item."""

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
"""The names of columns, the preferred first."""
_YES, _NO = {"1", "true", "yes", "y", "t"}, {"0", "false", "no", "n", "f"}
_HINT = "query_id,gold,label  or  query_id,rank,label  or  query_id,score"


class Labels(NamedTuple):
    """The rows of a table that have a label."""

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
    """The column used for each role."""
    blank: int
    """The number of rows without a label."""

    @property
    def metric(self) -> str | None:
        """The metric after which the column of scores is named, if any."""
        return _metric_name(self.columns["value"])


def read_labels(given: Any, metrics: Collection[str]) -> Labels:
    """Read labels from a file, a frame, rows, columns, or a dict of scores by query id."""
    columns, source = _columns(given)
    return read_table(columns, source, metrics)


def read_table(columns: Mapping[str, Sequence[Any]], source: str, metrics: Collection[str]) -> Labels:
    """Read labels from columns."""
    names = _roles(columns, metrics, source)
    has_gold, has_rank = "gold" in names or "number" in names, "rank" in names
    kind: Kind = "pair" if has_gold and has_rank else "gold" if has_gold else "rank" if has_rank else "score"
    value = columns[names["value"]]
    rows = [row for row, one in enumerate(value) if not _is_blank(one)]
    if not rows:
        raise InputError(f'{source}: column "{names["value"]}" is empty in every row; expected 1 or 0', hint="1")

    def column(role: str, read: Callable[[Any], Any]) -> list[Any]:
        cells = []
        for row in rows:
            cell = columns[names[role]][row]
            try:
                cells.append(read(cell.strip() if isinstance(cell, str) else cell))
            except (TypeError, ValueError) as error:
                problem = error.problem if isinstance(error, KaratError) else str(error)
                raise InputError(f'{source}, row {row + 1}: column "{names[role]}": {problem}', got=cell) from None
        return cells

    return Labels(
        source,
        kind,
        column("query", _id),
        column("gold", _id) if "gold" in names else None,
        column("number", _gold_number) if "number" in names else None,
        column("rank", _rank) if has_rank else None,
        column("value", _score if kind == "score" else _truth),
        names,
        len(value) - len(rows),
    )


def _columns(given: Any) -> tuple[dict[str, Sequence[Any]], str]:
    """The columns of a table in any form, and its name."""
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
        raise InputError(f"{source}: expected a table with rows, and all columns of one length", hint=_HINT)
    return columns, source


def _roles(columns: Mapping[str, Sequence[Any]], metrics: Collection[str], source: str) -> dict[str, str]:
    """The column of each role; empty columns are ignored."""
    folded = {_fold(name): name for name in reversed(list(columns)) if not all(map(_is_blank, columns[name]))}

    def find(role: str) -> str | None:
        return next((folded[_fold(name)] for name in ROLES[role] if _fold(name) in folded), None)

    roles = {role: name for role in ("query", "number", "rank") if (name := find(role)) is not None}
    # A text next to a rank is that of the retrieved item, for people to read.
    gold = find("gold") or (None if "rank" in roles else find("item"))
    if "number" not in roles and gold is not None:
        roles["gold"] = gold
    named = [name for name in columns if _metric_name(name) in metrics and len(roles) == 1]
    if len(named) > 1:
        raise InputError(f"{source}: expected the scores of one metric", got=named, hint="metric=…, or --metric")
    value = named[0] if named else find("label" if len(roles) > 1 else "score")
    if value is not None:
        roles["value"] = value
    for role, expected in (("query", "query_id"), ("value", "label")):
        if role not in roles:
            raise InputError(f'{source}: no column "{expected}"', got=list(columns), hint=_HINT)
    return roles


def _fold(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _metric_name(text: str) -> str | None:
    """The canonical name of a metric; None if there is no such metric."""
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


def _whole(cell: Any, least: int, expected: str) -> int:
    number = _number(cell)
    if not number.is_integer() or number < least:
        raise ValueError(expected)
    return int(number)


def _gold_number(cell: Any) -> int:
    return _whole(cell, 0, "expected the number of a gold item in its query, from 0")


def _rank(cell: Any) -> int:
    return _whole(cell, 1, "expected a rank, from 1")


def _truth(cell: Any) -> float:
    text = as_id(cell).lower() if not isinstance(cell, bool) else str(cell).lower()
    text = text.removesuffix(".0")
    if text not in _YES | _NO:
        raise ValueError("expected a label, 1 or 0")
    return float(text in _YES)


def _score(cell: Any) -> float:
    number = _truth(cell) if isinstance(cell, bool) or str(cell).lower() in _YES | _NO else _number(cell)
    if not 0 <= number <= 1:
        raise ValueError("expected a score between 0 and 1")
    return number


def _number(cell: Any) -> float:
    try:
        number = nan if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError):
        number = nan
    if not isfinite(number):
        raise ValueError("expected a number")
    return number


_NO_GOLD = -1


class Matched(NamedTuple):
    """Labels of judgements that are in the run, each once."""

    kind: Kind
    row: Ints
    """The query."""
    gold: Ints
    """The gold item, counted through all queries; -1 for labels of ranks."""
    rank: Ints
    """The rank; 0 for labels of gold items."""
    value: Floats
    depth: Ints
    """The number of ranks of each query that people checked."""
    notes: list[Note]
    """The labels that were not used."""


def match(run: Run, labels: Labels, labelled_depth: int | None = None) -> Matched:
    """Find the judgement of each label; two different labels of one judgement are refused."""
    find = _Judgements(run, labels)
    found: dict[tuple[int, int, int], float] = {}
    unused = dict.fromkeys(("unknown_query", "unknown_item", "not_judged", "repeated"), 0)
    for place, (query, value) in enumerate(zip(labels.query, labels.value, strict=True)):
        row = find.rows.get(query)
        if row is None or row in run.all_hits.failed:
            unused["unknown_query" if row is None else "not_judged"] += 1
            continue
        keys = find.keys(row, place)
        unused["unknown_item"] += not keys
        unused["repeated"] += any(key in found for key in keys)
        for key in keys:
            if found.setdefault(key, value) != value:
                problem = f"{labels.source}: {find.describe(key)} has two labels that differ; expected one"
                raise InputError(problem, got=(found[key], value))
    if not found:
        raise _no_match(run, labels, unused, find.rows)
    row, gold, rank = np.array(list(found), np.int64).T
    values, depth = np.array(list(found.values())), run.all_hits.depth
    impossible = (values > 0) & (depth[row] == 0)
    if labels.kind != "score" and impossible.any():
        query = run.ids[int(row[impossible][0])]
        raise InputError(f'{labels.source}: a label says yes, but nothing was retrieved for the query "{query}"')
    if labelled_depth is not None and not run.all_hits.gold_items.incomplete:
        depth = np.minimum(depth, labelled_depth)
    notes = [Note("labels_unused", count, details={"why": why}) for why, count in unused.items() if count]
    notes += [Note("rows_without_label", labels.blank)] if labels.blank else []
    return Matched(find.kind, row, gold, rank, values, depth, [*find.notes, *notes])


class _Judgements:
    """The judgements of a run, by query, gold item and rank."""

    def __init__(self, run: Run, labels: Labels) -> None:
        hits = run.all_hits
        self.rows = {query: row for ids in (valid_utf8(run.ids), run.ids) for row, query in enumerate(ids)}
        self.notes: list[Note] = []
        self._ids, self._hits, self._labels = run.ids, hits, labels
        self._number = labels.number
        # If the judge makes gold of the retrieved items, an item and its gold are one.
        self.kind: Kind = "gold" if hits.gold_items.incomplete and labels.kind in ("rank", "pair") else labels.kind
        if labels.gold is not None and all(text.isascii() and text.isdecimal() for text in labels.gold):
            rows = [self.rows.get(query) for query in labels.query]
            if not any(row is not None and self._gold(row, place) for place, row in enumerate(rows)):
                # No gold item has such a label: these are numbers.
                self._number = [int(text) for text in labels.gold]
                self.notes.append(Note("labels_by_number", details={"column": labels.columns["gold"]}))

    def keys(self, row: int, place: int) -> list[tuple[int, int, int]]:
        """The judgements of a label; several if gold items have the same label."""
        labels, hits = self._labels, self._hits
        rank = 0 if labels.rank is None else labels.rank[place]
        if labels.kind == "score":
            return [(row, _NO_GOLD, 0)]
        if rank > hits.depth[row]:
            return []
        if labels.kind == "rank" and not hits.gold_items.incomplete:
            return [(row, _NO_GOLD, rank)]
        gold = self._at_rank(row, rank) if labels.kind == "rank" else self._gold(row, place)
        return [(row, item, rank if self.kind == "pair" else 0) for item in gold]

    def _gold(self, row: int, place: int) -> list[int]:
        first, last = (int(end) for end in self._hits.gold_items.start[row : row + 2])
        if self._number is not None:
            return [first + self._number[place]] if first + self._number[place] < last else []
        assert self._labels.gold is not None
        wanted, labels = self._labels.gold[place].split(), self._hits.gold_items.label
        return [item for item in range(first, last) if labels[item].split() == wanted]

    def _at_rank(self, row: int, rank: int) -> list[int]:
        hits = self._hits
        first, last = np.searchsorted(hits.query, (row, row + 1)).tolist()
        return [int(hits.gold[i]) for i in range(first, last) if hits.rank[i] == rank]

    def describe(self, key: tuple[int, int, int]) -> str:
        """A judgement in words."""
        row, gold, rank = key
        parts = [f'query "{self._ids[row]}"']
        parts += [f"rank {rank}"] if rank else []
        parts += [f'gold item "{self._hits.gold_items.label[gold][:60]}"'] if gold != _NO_GOLD else []
        return ", ".join(parts)


def _no_match(run: Run, labels: Labels, unused: dict[str, int], rows: dict[str, int]) -> InputError:
    """The error for labels that match no judgement."""
    if unused["not_judged"]:
        return InputError(f"{labels.source}: all labels of this run are of queries that could not be judged")
    if unused["unknown_query"] == len(labels.query):
        theirs, ours = (", ".join(f'"{query[:40]}"' for query in ids[:3]) for ids in (labels.query, run.ids))
        return InputError(f"{labels.source}: no label is of a query of the run", got=theirs, hint=ours)
    row = next(rows[query] for query in labels.query if query in rows)
    items = [item.gold[:40] for item in run.gold(run.ids[row])][:3]
    have = f"{int(run.all_hits.depth[row])} ranks, gold items {items}"
    return InputError(f'{labels.source}: no label is of an item of the run; query "{run.ids[row]}" has {have}')


def judge_answers(hits: Hits, matched: Matched, rel: float | None) -> Bools:
    """The judge's answer for each label: the gold item is found, the rank is relevant, or both."""
    relevant = is_relevant(hits.grade, rel)
    stride = int(hits.depth.max(initial=0)) + 1
    whole = relevant if hits.part is None else relevant & ~hits.part
    keys: dict[str, tuple[Ints, Ints]] = {
        "gold": (hits.gold[whole & (hits.rank <= matched.depth[hits.query])], matched.gold),
        "rank": ((hits.query * stride + hits.rank)[relevant], matched.row * stride + matched.rank),
        "pair": ((hits.gold * stride + hits.rank)[relevant], matched.gold * stride + matched.rank),
    }
    judged, labelled = keys[matched.kind]
    found: Bools = np.isin(labelled, judged)
    return found
