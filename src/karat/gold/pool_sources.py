"""Sources of a pool: the top ranks of a run, or of results that nobody judged, and the gold that each knows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Ints, row_number, starts
from karat._internal.display import valid_texts
from karat._internal.panics import panics_as_errors
from karat._internal.parquet import check_parquet_file
from karat.analysis.overlap import is_run
from karat.analysis.overlap.ranked_lists import ResultsLike
from karat.conventions import STANDARD
from karat.errors import BadArgument, InputError
from karat.gold.known_gold import GoldSource, gold_of_run, gold_of_samples
from karat.judges.text import fold_space
from karat.run import Run
from karat.run.file import load
from karat.run.stored_items import strings
from karat.samples import Field
from karat.samples.columns import Side
from karat.samples.keys import as_text
from karat.samples.loading import Selection
from karat.samples.notes import Note
from karat.samples.read import read_side
from karat.samples.repeat_rows import REPEAT, query_ids_of

_FIELDS: tuple[Field, ...] = ("id", "text", "doc", "start", "end")
_READING = ("columns_renamed", "ranked_by", "similar_column", "unknown_field")
"""The notes on the reading of a file that concern its rankings."""
_CHECKED = 50
"""The number of bare strings that are checked for white space."""
POOL_KEY = "karat.pool"
"""The key of karat's own in the metadata of the file of a pool."""
CLAIMS = "claim"
"""The judge of such a run compares claims: a model decided, and it judged no item as a whole."""


class PoolSource(NamedTuple):
    """The top ranks of one run, one row after the other; a row is a query, or one of its repeats."""

    name: str
    ids: list[str] | None
    """The id of the query of each row; None if there are none."""
    query: Sequence[str | None] | None
    """The text of the query of each row."""
    start: Ints
    """The offset of the items of each row."""
    rank: list[int]
    columns: Mapping[str, Sequence[Any]]
    """Some of id, text, doc, start, end and length, one value per item."""
    judged: Sequence[float | None] | None = None
    """The grade of each item, if the gold of the run has one."""
    model: Sequence[float | None] | None = None
    """The grade that a model gave to each item, which is no gold."""
    gold: GoldSource | None = None
    """The gold that the source itself has."""
    failed: int = 0
    """The number of queries whose retrieval failed; they are not in the pool."""
    notes: tuple[Note, ...] = ()


def read_source(given: ResultsLike, name: str, depth: int, selection: Selection | None = None) -> PoolSource:
    """The top ranks of a run, of the path of a run file, or of results in any form that karat reads."""
    if _is_pool(given):
        raise BadArgument(f"{given} is a pool, not a run", hint=f"karat label {given} -o gold.jsonl")
    if is_run(given):
        return _of_run(given if isinstance(given, Run) else load(given), name, depth)  # type: ignore[arg-type]
    if not (isinstance(given, str | os.PathLike | Mapping | list | tuple) or hasattr(given, "columns")):
        hint = '"bm25.jsonl", or {"q1": ["doc-4", "doc-9"]}'
        raise BadArgument("expected a run, the path of a file, or results by query", got=given, hint=hint)
    return _of_side(given, read_side(given, "retrieved", selection), name, depth)


def _is_pool(given: object) -> bool:
    """True for the path of a file that says that it is a pool."""
    import polars as pl

    if not isinstance(given, str | os.PathLike) or not str(given).endswith(".parquet"):
        return False
    try:
        check_parquet_file(given)
        with panics_as_errors(), Path(given).open("rb") as file:
            return POOL_KEY in pl.read_parquet_metadata(file)
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return False  # reading it says what is wrong


def _of_run(run: Run, name: str, depth: int) -> PoolSource:
    stored = run.stored_items
    if stored is None:
        hint = f"karat eval SAMPLES -o {name}.parquet, with this version"
        raise BadArgument(f"{name} stores no items, so it cannot be pooled", hint=hint)
    hits, compares = run.all_hits, run.provenance.compares
    top = _top(stored.start, depth)
    columns = {
        field: [column[i] for i in top.items]
        for field, column in stored.retrieved.items()
        if field in (*_FIELDS, "length")
    }
    grades: list[float | None] = [None] * len(top.items)
    rows, ranks, whole = hits.query, hits.rank, hits.grade >= 0
    if hits.part is not None:
        whole &= ~hits.part
    sizes = np.diff(top.start)
    for hit in np.flatnonzero(whole & (ranks <= sizes[rows])).tolist():
        place = int(top.start[rows[hit]] + ranks[hit] - 1)
        grades[place] = max(grades[place] or 0.0, float(hits.grade[hit]))
    by_model = hits.gold_items.incomplete
    places = stored.extent.places
    cut = int((np.minimum(hits.depth, depth) > places).sum()) if depth > places else 0
    notes = [Note("pool_unstored", cut, details={"name": name, "places": places})] if cut else []
    if extra := run.provenance.extra:
        notes.append(Note("pool_left_out", extra, details={"name": name}))
    return PoolSource(
        name,
        list(run.ids) if run.repeats is None else [run.repeats.queries[i] for i in run.repeats.query.tolist()],
        run.query,
        top.start,
        top.rank,
        columns,
        judged=None if by_model or compares == CLAIMS else grades,
        model=grades if by_model else None,
        gold=None if by_model else gold_of_run(run, name),
        failed=sum(hits.depth[row] == 0 for row in hits.failed),
        notes=tuple(notes),
    )


class _Top(NamedTuple):
    """The items of the top ranks: their places among all items, their ranks, and where each row begins."""

    items: list[int]
    rank: list[int]
    start: Ints


def _top(start: Ints, depth: int) -> _Top:
    number = row_number(start)
    kept = np.flatnonzero(number < depth)
    return _Top(kept.tolist(), (number[kept] + 1).tolist(), starts(np.minimum(np.diff(start), depth)))


def _of_side(given: Any, side: Side, name: str, depth: int) -> PoolSource:
    rankings, notes = side.data, [note for note in side.all_notes if note.kind in _READING]
    excluded = side.id_lists.get("exclude")
    if excluded is not None:
        rankings, removed = rankings.without([set(own or ()) for own in excluded])
        notes += [Note("pool_excluded", removed, details={"name": name})] if removed else []
    if rankings.plain:
        lists = [list(own[:depth]) for own in rankings.each("id", STANDARD)]
        flat = list(chain.from_iterable(lists))
        named: Field = "text" if _like_texts(flat) else "id"
        columns: dict[str, list[Any]] = {named: strings(named, flat)}
    else:
        fields = [field for field in _FIELDS if field in rankings.any_fields]
        each = {field: [own[:depth] for own in rankings.each(field, STANDARD)] for field in fields}
        lists = next(iter(each.values()), [[] for _ in range(len(rankings))])
        columns = {field: strings(field, list(chain.from_iterable(own))) for field, own in each.items()}
    start = starts(np.fromiter(map(len, lists), np.int64, len(lists)))
    texts, ids = side.texts.get("query"), side.ids
    if ids is not None and REPEAT in side.meta:
        ids = query_ids_of(ids, side.meta[REPEAT])
    return PoolSource(
        name,
        ids,
        None if texts is None else valid_texts(texts),
        start,
        (row_number(start) + 1).tolist(),
        columns,
        gold=gold_of_samples(given, name) if side.has_gold else None,
        failed=len(side.failed),
        notes=tuple(notes),
    )


def _like_texts(items: Iterable[Any]) -> bool:
    """True if bare strings look like texts rather than ids: most have a space."""
    some = [as_text(item) for item in islice(items, _CHECKED)]
    return sum(" " in item for item in some) > len(some) / 2


class NamedQueries(NamedTuple):
    """The id of the query of each row of each source."""

    ids: list[list[str]]
    by_text: list[str]
    """The names of the sources that share no id with those before, and were matched by the texts of their queries."""


def name_queries(sources: Sequence[PoolSource]) -> NamedQueries:
    """Find the same queries in all sources: by id; without a shared id, by text. A query without an id has its text."""
    known: dict[str, str] = {}
    ids: dict[int, list[str]] = {}
    by_text: list[str] = []
    for place in sorted(range(len(sources)), key=lambda place: sources[place].ids is None):
        source = sources[place]
        texts = [fold_space(text or "") for text in source.query or ()]
        own = source.ids
        if own is None:
            own = [known.get(text, str(query)) for text, query in zip(texts, _all_texts(source), strict=True)]
        elif texts and set(own).isdisjoint(known.values()) and not known.keys().isdisjoint(texts):
            by_text.append(source.name)
            own = [known.get(text, query) for text, query in zip(texts, own, strict=True)]
        for text, query in zip(texts, own, strict=False):
            if text:
                known.setdefault(text, query)
        ids[place] = own
    return NamedQueries([ids[place] for place in range(len(sources))], by_text)


def _all_texts(source: PoolSource) -> Sequence[str | None]:
    """The texts of queries without ids; refuses queries that have neither."""
    if source.query is None or not all(text and text.strip() for text in source.query):
        problem = f'{source.name}: its queries have neither an "id" nor a "query"; they cannot be pooled'
        raise InputError(problem, hint='{"id": "q1", "query": "Closed when?", "retrieved": […]}')
    return source.query
