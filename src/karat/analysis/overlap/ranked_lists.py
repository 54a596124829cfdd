"""Ranked lists of one source, from a run, a file or results by query; no gold is needed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from karat._internal.display import valid_utf8
from karat._internal.parquet import MAGIC
from karat.conventions import STANDARD
from karat.errors import BadArgument
from karat.judges.text import folder
from karat.run import Run
from karat.run.file import is_run_file, load
from karat.run.repeats import one_row_each
from karat.samples import Field
from karat.samples.columns import Side
from karat.samples.keys import as_ids, as_text, numbered
from karat.samples.loading import Selection
from karat.samples.notes import Note
from karat.samples.rankings.lists import Lists
from karat.samples.read import read_side
from karat.samples.repeat_rows import refuse_repeats

ResultsLike = Run | str | os.PathLike[str] | Mapping[Any, Any] | Sequence[Any]
"""A run, the path of a run file or of results, or results by query."""
BY = ("id", "text", "place", "doc")
"""The ways to recognise an item, the best first; a place is a range of a document."""
FOLDS = ("unicode", "space")
"""The differences of texts that are ignored."""
_READING = ("columns_renamed", "ranked_by", "similar_column", "unknown_field", "no_steps")
"""The notes on the reading of a file that concern its rankings."""
_ALONE = "a comparison without gold"
_CHECKED = 50
"""The number of bare strings that are checked for white space, as the judge `auto` does."""


class ShownItem(NamedTuple):
    """An item as it is shown; None for fields that it lacks."""

    id: str | None
    text: str | None
    doc: str | None


class RankedLists(Protocol):
    """The ranked lists of one source, best first."""

    name: str
    ids: list[str] | None
    """The ids of the queries; None if the source has none."""
    query: Sequence[str | None] | None
    """The texts of the queries."""
    failed: frozenset[int]
    """The rows whose retrieval failed."""
    notes: tuple[Note, ...]
    stored: int | None
    """The number of ranks that the source has, if it does not have all that were retrieved."""

    def __len__(self) -> int: ...

    @property
    def like_texts(self) -> bool:
        """True if the items are bare strings that look like texts."""

    @property
    def ways(self) -> frozenset[str]:
        """The ways in which every item can be recognised: some of `BY`."""

    def keys(self, by: str) -> list[list[str]]:
        """The key of each item of each query: equal keys are the same item."""

    def scores(self) -> list[Sequence[float]] | None:
        """The scores of the same items; None if there are none."""

    def shown(self, row: int) -> list[ShownItem]:
        """The items of one query."""


def is_run(given: object) -> bool:
    """True for a run, and for the path of a run file or of a damaged Parquet file."""
    if isinstance(given, Run):
        return True
    if not isinstance(given, str | os.PathLike):
        return False
    try:
        with Path(given).open("rb") as file:
            parquet = file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False
    return parquet and is_run_file(given)


def read_lists(given: ResultsLike, name: str, selection: Selection | None = None) -> RankedLists:
    """The ranked lists of a source."""
    if is_run(given):
        run = given if isinstance(given, Run) else load(given)  # type: ignore[arg-type]
        return _RunLists(one_row_each(run, _ALONE), name)
    if not (isinstance(given, str | os.PathLike | Mapping | list | tuple) or hasattr(given, "columns")):
        hint = '"before.jsonl", or {"q1": ["doc-4", "doc-9"]}'
        raise BadArgument("expected a run, the path of a file, or results by query", got=given, hint=hint)
    side = read_side(given, "retrieved", selection)
    refuse_repeats(side.ids, side.meta, _ALONE)
    return _ResultLists(side, name)


def _place(doc: object, start: object, end: object) -> str:
    return f"{doc}:{start}-{end}"


_RANGE: tuple[Field, ...] = ("doc", "start", "end")


class _ResultLists:
    """Results without gold: a TREC run, a file of samples, or dicts and lists by query."""

    def __init__(self, side: Side, name: str) -> None:
        self.name, self.ids = name, side.ids
        self.failed = frozenset(side.failed)
        self.query: Sequence[str | None] | None = side.texts.get("query")
        self._rankings = side.data
        self.stored: int | None = None
        notes = [note for note in side.all_notes if note.kind in _READING and note.details.get("meant") != "gold"]
        excluded = side.id_lists.get("exclude")
        if excluded is not None:
            self._rankings, removed = self._rankings.without([set(own or ()) for own in excluded])
            notes += [Note("overlap_excluded", removed, details={"name": name})] if removed else []
        if isinstance(self._rankings, Lists) and (lists := len(self._rankings.contradicted)):
            notes.append(Note("overlap_order_kept", lists, len(self._rankings), details={"name": name}))
        if side.has_gold:
            notes.append(Note("overlap_gold", details={"name": name}))
        self.notes: tuple[Note, ...] = tuple(notes)

    def __len__(self) -> int:
        return len(self._rankings)

    @cached_property
    def _plain(self) -> bool:
        return bool(self._rankings.plain)

    @cached_property
    def like_texts(self) -> bool:
        if not self._plain:
            return False
        items = [str(item) for item in islice(chain.from_iterable(self._rankings.each("id", STANDARD)), _CHECKED)]
        return sum(" " in item for item in items) > len(items) / 2

    @property
    def ways(self) -> frozenset[str]:
        fields = self._rankings.all_fields
        if not self._rankings.form:  # no item at all
            return frozenset(BY)
        return frozenset((*(fields & {"id", "text", "doc"}), *(["place"] if fields.issuperset(_RANGE) else [])))

    def keys(self, by: str) -> list[list[str]]:
        if by == "place":
            columns = zip(*(self._rankings.each(field, STANDARD) for field in _RANGE), strict=True)
            return [list(map(_place, *own)) for own in columns]
        each = self._rankings.each("id" if self._plain else by, STANDARD)
        return _written(each, by)

    def scores(self) -> list[Sequence[float]] | None:
        scores = self._rankings.sorted_scores(STANDARD)
        return None if scores is None else [list(own) for own in scores]

    def shown(self, row: int) -> list[ShownItem]:
        one = self._rankings.take([row])
        if self._plain:
            items = valid_utf8([as_text(item) for own in one.each("id", STANDARD) for item in own])
            return [ShownItem(None, i, None) if self.like_texts else ShownItem(i, None, None) for i in items]
        fields: tuple[Field, ...] = ("id", "text", "doc")
        given = {field: next(iter(one.each(field, STANDARD))) for field in fields if field in one.any_fields}
        size = max(map(len, given.values()), default=0)
        cells = [list(map(_or_none, given.get(field, [None] * size))) for field in fields]
        return [ShownItem(*own) for own in zip(*cells, strict=True)]


def _or_none(value: object) -> str | None:
    return None if value is None else valid_utf8([as_text(value)])[0]


def _written(each: Any, by: str) -> list[list[str]]:
    """Ids and texts as strings that a run file can hold; texts without the differences that are ignored."""
    if by == "text":
        fold = folder(FOLDS)
        return [valid_utf8([fold(as_text(item)) for item in own]) for own in each]
    return [as_ids(own if type(own) is list else list(own)) for own in each]


class _RunLists:
    """The items that a run stores."""

    like_texts = False

    def __init__(self, run: Run, name: str) -> None:
        stored = run.stored_items
        if stored is None:
            hint = "karat eval again, with this version"
            raise BadArgument(f"{name} stores no items: it cannot be compared without gold", hint=hint)
        self.name, self.query = name, run.query
        self.failed = frozenset(row for row in run.all_hits.failed if run.all_hits.depth[row] == 0)
        self.ids: list[str] | None = list(run.ids)
        self._stored, self._bounds = stored, list(pairwise(stored.start.tolist()))
        kept = np.diff(stored.start)
        cut = kept >= stored.extent.places  # a ranking with fewer items is stored whole, without copies
        unstored = int(np.maximum(run.all_hits.depth - kept, 0)[cut].sum())
        self.stored: int | None = stored.extent.places if unstored else None
        details = {"name": name, "places": stored.extent.places}
        self.notes: tuple[Note, ...] = (Note("overlap_unstored", unstored, details=details),) if unstored else ()

    def __len__(self) -> int:
        return len(self._bounds)

    def _complete(self, *fields: str) -> bool:
        columns = [self._stored.retrieved.get(field) for field in fields]
        return all(column is not None and None not in column for column in columns)

    @cached_property
    def ways(self) -> frozenset[str]:
        if not any(end > begin for begin, end in self._bounds):
            return frozenset(BY)
        ways = [field for field in ("id", "text", "doc") if self._complete(field)]
        return frozenset((*ways, *(["place"] if self._complete(*_RANGE) else [])))

    def keys(self, by: str) -> list[list[str]]:
        columns = self._stored.retrieved
        if by == "place":
            flat = [_place(*own) for own in zip(*(columns[field] for field in _RANGE), strict=True)]
        else:
            flat = list(columns[by])
        if by == "text":
            fold, lengths = folder(FOLDS), columns.get("length")
            flat = [fold(text) for text in flat]
            if lengths is not None:  # a text that was cut also has its length
                flat = [text if size is None else f"{text}… ({size})" for text, size in zip(flat, lengths, strict=True)]
        return [flat[begin:end] for begin, end in self._bounds]

    def scores(self) -> list[Sequence[float]] | None:
        given = self._stored.retrieved.get("score")
        return None if given is None or None in given else [given[begin:end] for begin, end in self._bounds]

    def shown(self, row: int) -> list[ShownItem]:
        return [ShownItem(item.id, item.text, item.doc) for item in self._stored.items(row).retrieved]


def row_names(lists: RankedLists) -> list[str]:
    """The ids of the queries, or their row numbers."""
    return numbered(len(lists)) if lists.ids is None else lists.ids
