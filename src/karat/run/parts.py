"""Putting parts together: the run that one call over all of their queries would have given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Ints, starts
from karat._internal.display import many
from karat.conventions import Convention
from karat.errors import InputError
from karat.hits import Gold, Hits
from karat.hits.combine import take
from karat.hits.totals import Along
from karat.judges import Judge
from karat.metrics import Metric
from karat.pipeline import provenance_of
from karat.plan import Partial
from karat.run.run import Run
from karat.run.stored_items import LOOKED_THROUGH, Extent, Kept, cut, seen
from karat.samples import Field, Reading, Samples


def join_kept(parts: Sequence[Kept]) -> Kept:
    """The items of all parts. Whether gold was seen in another part nobody has looked, unless there is only one."""
    if len(parts) == 1:
        return parts[0]
    retrieved = _columns([part.retrieved for part in parts])
    gold = _columns([part.gold for part in parts])
    gold.pop("seen", None)
    both = [side for side in (retrieved, gold) if "text" in side]
    for side, column in zip(both, cut([side["text"] for side in both]), strict=True):
        side["text"] = column
    return Kept(
        retrieved,
        starts(np.concatenate([np.diff(part.start) for part in parts])),
        gold,
        starts(np.concatenate([np.diff(part.gold_start) for part in parts])),
        Extent(min(part.extent.places for part in parts), whole=False),
    )


def _columns(parts: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Columns one after the other, None where a part lacks one."""
    names = dict.fromkeys(name for part in parts for name in part)
    size = [len(next(iter(part.values()), ())) for part in parts]
    return {
        name: list(chain.from_iterable(part.get(name, [None] * n) for part, n in zip(parts, size, strict=True)))
        for name in names
    }


_NAMED = 2
"""How many examples a note names; as many as `karat.judges.spans.quotes` does."""
_HINT = "nothing matched"
"""What a note begins with that is true of a run only if no part of it has a hit."""
_APART = "no chunk is from a document with gold."
_COUNT = re.compile(r"(?P<count>\d[\d,]*) (?P<rest>.*)", re.DOTALL)
_EXAMPLES = re.compile(r"(?P<said>.*?) \((?P<named>query .*)\)", re.DOTALL)
_OF_GOLD = re.compile(r"of \d[\d,]* gold quotes? ")
_SINGULAR = {
    "gold range does ": "gold ranges do ",
    "chunk's range does ": "chunks' ranges do ",
    "chunk occurs ": "chunks occur ",
    "of gold occurs ": "of gold occur ",
    "list does not stand ": "lists do not stand ",
    "list holds items ": "lists hold items ",
}


class _Counted(NamedTuple):
    """Notes that say the same of different numbers."""

    total: int
    named: list[str]
    grouped: bool
    """Whether the number is written with commas."""


def join_notes(parts: Iterable[Sequence[str]], *, gold: int, hits: int) -> tuple[str, ...]:
    """Each note once, numbers summed; `gold` and `hits` are how many of each all parts have together."""
    each = [list(notes) for notes in parts]
    found: dict[str, _Counted | None] = {}
    for note in (note for notes in each for note in notes):
        if note.startswith(_HINT) and hits:
            continue
        if note.startswith(_APART) and not all(any(map(_is_apart, notes)) for notes in each):
            continue
        if note.startswith(_APART) and any(map(_is_apart, found)):
            continue
        _add(note, found)
    return tuple(text if counted is None else _written(text, counted, gold) for text, counted in found.items())


def _is_apart(note: str) -> bool:
    return note.startswith(_APART)


def _add(note: str, found: dict[str, _Counted | None]) -> None:
    begin = _COUNT.fullmatch(note)
    if begin is None:
        found.setdefault(note, None)
        return
    said, named = begin["rest"], ""
    if examples := _EXAMPLES.fullmatch(said):
        said, named = examples["said"], examples["named"].removesuffix("; …")
    if of := _OF_GOLD.match(said):
        said = f"of gold {said[of.end() :]}"
    said = next((several + said[len(one) :] for one, several in _SINGULAR.items() if said.startswith(one)), said)
    old = found.get(said) or _Counted(0, [], grouped=False)
    found[said] = _Counted(
        old.total + int(begin["count"].replace(",", "")),
        old.named + [text for text in re.split(r"; (?=query )", named) if text],
        old.grouped or bool(examples) or said.startswith(tuple(_SINGULAR.values())),
    )


def _written(said: str, counted: _Counted, gold: int) -> str:
    if counted.total == 1:
        said = next((one + said[len(two) :] for one, two in _SINGULAR.items() if said.startswith(two)), said)
    if said.startswith("of gold "):
        said = f"of {many(gold, 'gold quote', 'gold quotes')} {said.removeprefix('of gold ')}"
    count = f"{counted.total:,}" if counted.grouped else str(counted.total)
    if not counted.named:
        return f"{count} {said}"
    more = "; …" if counted.total > min(len(counted.named), _NAMED) else ""
    return f"{count} {said} ({'; '.join(counted.named[:_NAMED])}{more})"


class Asked(NamedTuple):
    """What every part was asked, and what is known of the data as a whole."""

    metrics: tuple[Metric, ...]
    judge: Judge
    convention: Convention
    reading: Reading
    reason: str = ""
    """Why the judge was taken, if karat chose it."""
    tokens: str = ""
    """Who counted the tokens, if there is a budget of them."""


def join(
    partials: Iterable[Partial],
    asked: Asked,
    *,
    order: Sequence[str] | None = None,
    samples: Samples | None = None,
    kept: Callable[[], Kept | None] | None = None,
) -> Run:
    """The run of all parts; its queries in the order of the parts, or in that of the ids in `order`.

    `samples`, or what `kept` fetches later, are the items of all queries in the order of the run; without either
    they are those that the parts kept.
    """
    parts = list(partials)
    if not parts:
        raise InputError("the data set is empty: there is no part to put together")
    joined = _in_order(_join(parts), order)
    if samples is None and kept is None:
        items = joined.kept
        kept = None if items is None else lambda: items
    about = provenance_of(asked.reading, joined.hits, asked.metrics, asked.judge, asked.reason, asked.convention)
    return Run(
        ids=joined.ids,
        hits=joined.hits,
        metrics=asked.metrics,
        convention=asked.convention,
        scores=joined.scores,
        provenance=about._replace(tokens=asked.tokens),
        query=joined.query,
        meta=joined.meta,
        samples=samples,
        kept=kept,
    )


def _join(parts: Sequence[Partial]) -> Partial:
    """One part in the place of several."""
    ids = list(chain.from_iterable(part.ids for part in parts))
    _check_once(ids)
    hits = join_hits([part.hits for part in parts])
    if len(hits) == 0:
        hits.notes += parts[0].hints
    items = [part.kept for part in parts if part.kept is not None]
    meta = dict.fromkeys(name for part in parts for name in part.meta)
    return Partial(
        ids=ids,
        hits=hits,
        scores={name: np.concatenate([part.scores[name] for part in parts]) for name in parts[0].scores},
        reading=parts[0].reading,
        query=_column([part.query for part in parts], parts),
        meta={name: _column([part.meta.get(name) for part in parts], parts) or () for name in meta},
        kept=join_kept(items) if len(items) == len(parts) else None,
    )


def _in_order(part: Partial, order: Sequence[str] | None) -> Partial:
    """The same with its queries in another order; those that are not in it are left out."""
    if order is None or list(order) == part.ids:
        return part
    place = {query: row for row, query in enumerate(part.ids)}
    rows = [place[query] for query in order]
    index = np.array(rows, np.int64)
    return Partial(
        ids=list(order),
        hits=take(part.hits, index),
        scores={name: values[index] for name, values in part.scores.items()},
        reading=part.reading,
        query=None if part.query is None else [part.query[row] for row in rows],
        meta={name: [column[row] for row in rows] for name, column in part.meta.items()},
        kept=None if part.kept is None else part.kept.take(index),
    )


def join_hits(parts: Sequence[Hits]) -> Hits:
    """The hits of all parts, their queries and gold counted through."""
    first = starts(np.array([part.queries for part in parts], np.int64)).tolist()
    gold = starts(np.array([len(part.of.grade) for part in parts], np.int64)).tolist()
    whole = all(part.part is None for part in parts)
    return Hits(
        np.concatenate([part.query + at for part, at in zip(parts, first, strict=False)]),
        np.concatenate([part.rank for part in parts]),
        np.concatenate([part.gold + at for part, at in zip(parts, gold, strict=False)]),
        depth=np.concatenate([part.depth for part in parts]),
        of=Gold(
            list(chain.from_iterable(part.of.label for part in parts)),
            starts(np.concatenate([np.diff(part.of.start) for part in parts])),
            np.concatenate([part.of.grade for part in parts]),
            open=any(part.of.open for part in parts),
        ),
        grade=np.concatenate([part.grade for part in parts]),
        repeated=np.concatenate([part.repeated for part in parts]),
        part=None if whole else np.concatenate([_parts_of(part) for part in parts]),
        why=_why(parts),
        along=_join_along([part.along for part in parts]),
        notes=join_notes([part.notes for part in parts], gold=gold[-1], hits=sum(map(len, parts))),
        failed={query + at: why for part, at in zip(parts, first, strict=False) for query, why in part.failed.items()},
    )


def _join_along(parts: Sequence[Along]) -> Along:
    names = dict.fromkeys(name for part in parts for name in part.totals)
    sizes = dict.fromkeys(name for part in parts for name in part.sizes)
    return Along(
        np.concatenate([part.depth for part in parts]),
        {name: np.concatenate([part.totals[name] for part in parts]) for name in names},
        {name: np.concatenate([part.sizes[name] for part in parts]) for name in sizes},
    )


def _parts_of(hits: Hits) -> Bools:
    return np.zeros(len(hits), bool) if hits.part is None else hits.part


def _why(parts: Sequence[Hits]) -> str | list[str]:
    """One reason for all, or one for each hit."""
    different = {part.why for part in parts if isinstance(part.why, str)}
    if len(different) == 1 and all(isinstance(part.why, str) for part in parts):
        return different.pop()
    return [why for part in parts for why in ([part.why] * len(part) if isinstance(part.why, str) else part.why)]


def _column(columns: Sequence[Sequence[Any] | None], parts: Sequence[Partial]) -> list[Any] | None:
    """A column of all parts; None where a part lacks it, or for all of it if every part does."""
    if all(column is None for column in columns):
        return None
    pairs = zip(columns, parts, strict=True)
    return [value for column, part in pairs for value in ([None] * len(part.ids) if column is None else column)]


def _check_once(ids: Sequence[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    twice = next(query for query in ids if query in seen or seen.add(query))  # type: ignore[func-returns-value]
    raise InputError(f'two parts have the same query "{twice}"', hint="each query is evaluated in one part, whole")


_RETRIEVED = ("id", "text", "doc", "score")
_GOLD = ("id", "text", "doc", "grade", "item", "label")


def merge_kept(parts: Sequence[Kept], depth: Ints, places: int, judge: str) -> Kept:
    """The items of all parts, in no more places than all queries together have.

    Whether a gold item was seen in the ranking of any query can be told if it was, or if the parts kept the rankings
    whole; if neither, nothing is said of any.
    """
    joined = join_kept([_fewer(part, places) for part in parts])
    retrieved, gold = _sorted(joined.retrieved, _RETRIEVED), _sorted(joined.gold, _GOLD)
    looked = all(part.extent.whole for part in parts) and int(depth.sum()) <= LOOKED_THROUGH
    if looked:
        field: Field = "doc" if judge == "ids(at=doc)" else "id"
        elsewhere = seen(gold, field, [part.retrieved.get(field, ()) for part in parts])
        own = chain.from_iterable(part.gold["seen"] for part in parts)
        gold["seen"] = [here or there for here, there in zip(own, elsewhere, strict=True)]
        stored = np.concatenate([np.diff(part.start) for part in parts])
        looked = all(gold["seen"]) or len(parts) == 1 or bool((stored == depth).all())
    if not looked:
        gold.pop("seen", None)
    return Kept(retrieved, joined.start, gold, joined.gold_start, Extent(places, looked))


def _fewer(part: Kept, places: int) -> Kept:
    """The items of a part with fewer places of each ranking: the more queries, the fewer are kept of each."""
    size = np.minimum(np.diff(part.start), places)
    start = starts(size)
    flat = (np.arange(int(start[-1])) + np.repeat(part.start[:-1] - start[:-1], size)).tolist()
    retrieved = {name: [column[i] for i in flat] for name, column in part.retrieved.items()}
    return Kept(retrieved, start, part.gold, part.gold_start, part.extent)


def _sorted(columns: Mapping[str, Sequence[Any]], names: Sequence[str]) -> dict[str, Any]:
    return {name: columns[name] for name in names if name in columns}
