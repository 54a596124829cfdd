"""Legs: the rankings that are fused, from runs, files or dicts, aligned by query."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.display import valid_utf8
from karat._internal.parquet import MAGIC
from karat.analysis.changes import check_comparable
from karat.conventions import STANDARD, Convention
from karat.errors import BadArgument, InputError
from karat.fusion import Candidates, Fuser
from karat.run import Run
from karat.run.file import is_run_file, load
from karat.run.repeats import one_row_each
from karat.run.stored_items import StoredItems
from karat.samples.field_map import Fields
from karat.samples.keys import as_id, as_text, numbered, short_id
from karat.samples.loading import Selection
from karat.samples.notes import Note
from karat.samples.rankings.score_order import AS_GIVEN
from karat.samples.read import read_side
from karat.samples.repeat_rows import REPEAT

_BY = ("id", "text", "place")
"""The ways to recognise an item in another leg, the best first; a place is a range of a document."""
LegLike = Run | str | os.PathLike[str] | Mapping[Any, Any] | Sequence[Any]
"""A run, the path of a run file or of results, or results by query."""


class Leg(NamedTuple):
    """One of the rankings that are fused, of all queries that it has."""

    name: str
    ids: Sequence[str]
    items: Mapping[str, Sequence[Sequence[str]]]
    """The items of each query, best first, under the names by which other legs may know them: id, text or place."""
    scores: Sequence[Sequence[float]] | None
    run: Run | None = None


def read_legs(given: Sequence[LegLike], names: Sequence[str], fields: Fields = None) -> list[Leg]:
    """The legs, each with its name."""
    legs = []
    selection = Selection(fields)
    for one, name in zip(given, names, strict=True):
        path = isinstance(one, str | os.PathLike)
        if path and _is_parquet(Path(one)) and is_run_file(one):  # type: ignore[arg-type]
            legs.append(_of_run(load(one), name))  # type: ignore[arg-type]
        elif isinstance(one, Run):
            legs.append(_of_run(one, name))
        elif path or isinstance(one, Mapping | list | tuple) or hasattr(one, "columns"):
            legs.append(_of_results(one, name, selection))
        else:
            hint = '"bm25.parquet", or {"q1": {"doc-4": 12.5}}'
            raise BadArgument("a leg is a run, the path of a file, or results by query", got=one, hint=hint)
    selection.check()
    return legs


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def _of_run(run: Run, name: str) -> Leg:
    """The stored items of a run."""
    run = one_row_each(run, "fuse")
    stored = run.stored_items
    if stored is None:
        raise BadArgument(f"{name} stores no items: it cannot be fused", hint="karat eval again, with this version")
    columns = {by: column for by in _BY if (column := _names_of(stored, by)) is not None}
    if not columns:
        raise BadArgument(f"{name} has items without id and text: they cannot be recognised in another leg")
    given = stored.retrieved.get("score")
    scores = None if given is None or None in given else _split(given, stored.start)
    return Leg(name, run.ids, {by: _split(column, stored.start) for by, column in columns.items()}, scores, run)


def _names_of(stored: StoredItems, by: str) -> list[str] | None:
    """The name of each stored item; None if some item has none. A text that was cut also has its length."""
    columns = stored.retrieved
    if by == "place":
        parts = [columns.get(field) for field in ("doc", "start", "end")]
        if any(part is None or None in part for part in parts):
            return None
        return [f"{doc}:{start}-{end}" for doc, start, end in zip(*parts, strict=True)]
    column = columns.get(by)
    if column is None or None in column:
        return None
    length = columns.get("length") if by == "text" else None
    if length is None:
        return list(column)
    return [text if size is None else f"{text}… ({size})" for text, size in zip(column, length, strict=True)]


def _split(column: Sequence[Any], start: Ints) -> list[Sequence[Any]]:
    return [column[begin:end] for begin, end in pairwise(start.tolist())]


def _of_results(given: Any, name: str, selection: Selection) -> Leg:
    """Results without gold: a TREC run, a file of samples, or dicts and lists by query."""
    side = read_side(given, "retrieved", selection)
    if REPEAT in side.meta:
        raise BadArgument("fuse takes one row per query, not repeats", hint="karat collect … --repeats 1")
    rankings, ids = side.data, side.ids or numbered(len(side.data))
    if side.failed:  # the leg lacks these queries
        kept = [row for row in range(len(ids)) if row not in side.failed]
        rankings, ids = rankings.take(kept), [ids[row] for row in kept]
    fields = [field for field in ("id", "text") if field in rankings.all_fields]
    if not fields:
        raise InputError(f"{name}: some items have neither id nor text, so they cannot be recognised in another leg")
    if rankings.plain:
        fields = ["id"]
    write = {"id": as_id, "text": as_text}
    items = {
        field: [valid_utf8([write[field](item) for item in own]) for own in rankings.each(field, STANDARD)]
        for field in fields
    }
    scores = rankings.sorted_scores(STANDARD)
    return Leg(name, ids, items, None if scores is None else [list(own) for own in scores])


class Aligned(NamedTuple):
    """The legs over the same queries, and their candidates."""

    legs: list[Leg]
    ids: list[str]
    rows: list[Ints]
    """For each leg, the row of each query; -1 if it lacks the query."""
    candidates: Candidates
    convention: Convention
    notes: tuple[Note, ...]


def align(legs: Sequence[Leg], *, allow_mismatch: bool = False) -> Aligned:
    """The candidates of all legs. Runs must be comparable; of other legs, queries may be missing."""
    runs = [leg.run for leg in legs if leg.run is not None]
    notes: list[Note] = []
    if len(runs) == len(legs):
        notes += _check_runs(legs, allow_mismatch=allow_mismatch)
    convention = runs[0].convention if runs else STANDARD
    ids, more = _queries(legs, shared=len(runs) == len(legs))
    notes += more
    number = [{query: row for row, query in enumerate(leg.ids)} for leg in legs]
    rows = [np.array([own.get(query, -1) for query in ids], np.int64) for own in number]
    by = _common(legs)
    rankings = [[leg.items[by][row] if row >= 0 else () for row in own] for leg, own in zip(legs, rows, strict=True)]
    scores = [
        None if leg.scores is None else [leg.scores[row] if row >= 0 else () for row in own]
        for leg, own in zip(legs, rows, strict=True)
    ]
    candidates = Candidates(rankings, scores, tie_order(convention))
    for leg, name in enumerate(leg.name for leg in legs):
        copies = len(candidates.rows[leg]) - int(np.count_nonzero(~np.isnan(candidates.rank[leg])))
        notes += [Note("leg_copies", copies, details={"leg": name})] if copies else []
    return Aligned(list(legs), ids, rows, candidates, convention, tuple(notes))


def _check_runs(legs: Sequence[Leg], *, allow_mismatch: bool) -> list[Note]:
    """Refuse runs of different queries, gold, judges or conventions, as `karat.compare` does."""
    notes = []
    for leg in legs[1:]:
        assert legs[0].run is not None
        assert leg.run is not None
        pair = (legs[0].name, leg.name)
        if differences := check_comparable(legs[0].run, leg.run, allow_mismatch=allow_mismatch, names=pair):
            notes.append(Note("leg_mismatch", details={"legs": " and ".join(pair), "what": "; ".join(differences)}))
    return notes


def _queries(legs: Sequence[Leg], *, shared: bool) -> tuple[list[str], list[Note]]:
    """The queries of all legs; with `shared`, only those in every leg."""
    every = [set(leg.ids) for leg in legs]
    common = set.intersection(*every)
    if not common:
        shown = " and ".join(f'{leg.name}: "{short_id(leg.ids[0])}", …' if len(leg.ids) else leg.name for leg in legs)
        raise BadArgument("the legs share no query", got=shown, hint="the same query ids in every leg")
    union = list(dict.fromkeys(query for leg in legs for query in leg.ids))
    ids = [query for query in union if query in common] if shared else union
    notes = []
    for leg, own in zip(legs, every, strict=True):
        if lacks := len(union) - len(own):
            notes.append(Note("leg_lacks_queries", lacks, len(union), details={"leg": leg.name, "dropped": shared}))
    return ids, notes


def _common(legs: Sequence[Leg]) -> str:
    """The name by which every leg knows its items: their ids, else their texts, else their places."""
    for by in _BY:
        if all(by in leg.items for leg in legs):
            return by
    have = "; ".join(f"{leg.name}: {', '.join(leg.items)}" for leg in legs)
    raise BadArgument(
        "the legs have no field in common by which items are recognised", got=have, hint="ids in all legs"
    )


def tie_order(c: Convention) -> Callable[[list[str]], list[int]] | None:
    """The places of items with equal scores: by id, as the convention says, else as given."""
    if c.ties in AS_GIVEN:
        return None

    def places(items: list[str]) -> list[int]:
        place = [0] * len(items)
        for number, row in enumerate(
            sorted(range(len(items)), key=items.__getitem__, reverse=c.ties != "id_ascending")
        ):
            place[row] = number
        return place

    return places


def unscored_legs(aligned: Aligned) -> list[str]:
    """The names of the legs without scores, or with infinite ones."""
    candidates = aligned.candidates
    good = [scored and not np.isinf(own).any() for scored, own in zip(candidates.scored, candidates.score, strict=True)]
    return [leg.name for leg, fine in zip(aligned.legs, good, strict=True) if not fine]


def check_scores(aligned: Aligned, fuser: Fuser) -> None:
    """Refuse a method of scores if a leg has none, or an infinite one."""
    if not fuser.needs_scores:
        return
    for leg, scored in zip(aligned.legs, aligned.candidates.scored, strict=True):
        if not scored:
            raise BadArgument(
                f"{fuser.name} fuses scores, but {leg.name} has none",
                hint=f"rrf(60), or {fuser.name}(norm=rank), which use ranks",
            )
    infinite = np.argwhere(np.isinf(aligned.candidates.score)).tolist()
    if infinite:
        raise BadArgument(f"{_where(aligned, *infinite[0])} has an infinite score", hint="rrf(60), which uses ranks")
    below = np.argwhere(aligned.candidates.greatest < 0).tolist() if fuser.settings["norm"] == "max" else []
    if below:
        problem = f"{_where(aligned, *below[0])} has only scores below 0, which cannot be divided by the greatest"
        raise BadArgument(problem, hint=f"{fuser.name}(norm=min-max)")


def _where(aligned: Aligned, leg: int, row: int) -> str:
    """The leg and the query of a candidate, for an error."""
    return f'{aligned.legs[leg].name}: query "{short_id(aligned.ids[int(aligned.candidates.query[row])])}"'
