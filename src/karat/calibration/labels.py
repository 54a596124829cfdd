"""Human labels: a table of single judgements, or of scores of whole queries, whatever its columns are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import isfinite, nan
from os import PathLike
from typing import Any, Literal, NamedTuple

from karat.errors import InputError, KaratError
from karat.metrics import parse
from karat.samples.fields import LONG
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
