"""Paired lists: two sources over the queries that both have, and the items that their rankings have in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, starts
from karat._internal.display import plural, valid_texts
from karat.analysis.overlap.ranked_lists import BY, RankedLists, ShownItem, row_names
from karat.errors import BadArgument
from karat.samples.keys import numbered, short_id
from karat.samples.notes import Note
from karat.stats.rank_similarity import CommonRanks


class Listed(NamedTuple):
    """An item of one of two rankings of a query."""

    key: str
    item: ShownItem
    score: float | None


class PairedLists:
    """Two sources over the queries that both have; copies of an item count once, at the best rank."""

    def __init__(self, a: RankedLists, b: RankedLists, *, at: str = "item", depth: int | None = None) -> None:
        self.sources = (a, b)
        self.by = _common_way(a, b, at)
        """The field by which items are recognised: id, text, doc or place."""
        pairing = _without_failures(_pair_queries(a, b), a, b)
        self.matched_by = pairing.by
        """The way in which queries are paired: id, text or position."""
        self.rows = pairing.rows
        """The rows of the shared queries in both sources."""
        names = row_names(a)
        self.ids = [names[row] for row in self.rows[0]]
        self.query = _texts(a, b, self.rows)
        limits = [limit for limit in (depth, a.stored, b.stored) if limit is not None]
        self.depth = min(limits, default=None)
        """The number of items of each ranking that are used: a run file may store less than was retrieved."""
        self._sides = [_Lists(one, self.by, own, self.depth) for one, own in zip((a, b), self.rows, strict=True)]
        self.common = _common(*(side.keys for side in self._sides))
        self.notes = (*a.notes, *b.notes, *pairing.notes, *(note for side in self._sides for note in side.copies()))

    @cached_property
    def scores(self) -> tuple[Floats, Floats] | None:
        """The scores of the items of both sources, one query after the other; None unless both have scores."""
        ours, theirs = (side.scores for side in self._sides)
        return None if ours is None or theirs is None else (ours, theirs)

    def listed(self, query: int, side: int) -> list[Listed]:
        """The items of a query in one source, without copies, best first."""
        return self._sides[side].listed(query)


class _Lists:
    """The rankings of one source over the shared queries, without copies."""

    def __init__(self, source: RankedLists, by: str, rows: list[int], depth: int | None) -> None:
        self._source, self._by, self._rows = source, by, rows
        every = source.keys(by)
        self._whole = [every[row] for row in rows]
        unique = [list(dict.fromkeys(own)) for own in self._whole]
        self._copies = sum(map(len, self._whole)) - sum(map(len, unique))
        self.keys = unique if depth is None else [own[:depth] for own in unique]

    def copies(self) -> list[Note]:
        """A note on copies, if there are any."""
        details = {"name": self._source.name, "by": self._by}
        return [Note("overlap_copies", self._copies, details=details)] if self._copies else []

    @cached_property
    def start(self) -> Ints:
        """The offset of the items of each query."""
        return starts(np.fromiter(map(len, self.keys), np.int64, len(self.keys)))

    @cached_property
    def scores(self) -> Floats | None:
        """The scores of the items, one query after the other; None if there are none."""
        given = self._source.scores()
        if given is None:
            return None
        flat: list[float] = []
        for row, whole, keys in zip(self._rows, self._whole, self.keys, strict=True):
            if not self._copies:
                flat += given[row][: len(keys)]
                continue
            first = dict(zip(reversed(whole), reversed(given[row]), strict=True))
            flat += [first[key] for key in keys]
        return np.array(flat, float)

    def listed(self, query: int) -> list[Listed]:
        """The items of a query, best first."""
        place = {key: place for place, key in reversed(list(enumerate(self._whole[query])))}
        shown, begin = self._source.shown(self._rows[query]), int(self.start[query])
        scores = self.scores
        return [
            Listed(key, shown[place[key]], None if scores is None else float(scores[begin + rank]))
            for rank, key in enumerate(self.keys[query])
        ]


def _common_way(a: RankedLists, b: RankedLists, at: str) -> str:
    """The way in which items of both sources are recognised: their ids, else their texts, else their places."""
    both = a.ways & b.ways
    if at == "doc":
        if "doc" in both:
            return "doc"
        lacks = a.name if "doc" not in a.ways else b.name
        raise BadArgument(f'at="doc" compares documents, but not every item of {lacks} has a "doc"', hint='at="item"')
    order = ("text", "id", "place", "doc") if a.like_texts or b.like_texts else BY
    for by in order:
        if by in both:
            return by
    have = "; ".join(f"{one.name}: {', '.join(sorted(one.ways)) or 'neither id nor text'}" for one in (a, b))
    hint = "ids on both sides, or texts on both"
    raise BadArgument("the items have no field in common by which they could be compared", got=have, hint=hint)


class _Pairing(NamedTuple):
    """The rows of the shared queries in both sources."""

    rows: tuple[list[int], list[int]]
    by: str
    notes: tuple[Note, ...]


def _without_failures(pairing: _Pairing, a: RankedLists, b: RankedLists) -> _Pairing:
    """The shared queries whose retrieval failed in neither source, with a note on the others."""
    pairs = list(zip(*pairing.rows, strict=True))
    notes = []
    for one, failed in ((a, sum(x in a.failed for x, _ in pairs)), (b, sum(y in b.failed for _, y in pairs))):
        notes += [Note("overlap_failed", failed, len(pairs), details={"name": one.name})] if failed else []
    kept = [(x, y) for x, y in pairs if x not in a.failed and y not in b.failed]
    if pairs and not kept:
        raise BadArgument(f"the retrieval of every query failed in {a.name} or {b.name}: nothing can be compared")
    rows = ([x for x, _ in kept], [y for _, y in kept])
    return _Pairing(rows, pairing.by, (*pairing.notes, *notes)) if notes else pairing


def _pair_queries(a: RankedLists, b: RankedLists) -> _Pairing:
    """The shared queries: by id, else by text, else by position."""
    for one in (a, b):
        if not len(one):
            raise BadArgument(f"{one.name} has no queries to compare")
    if a.ids is not None and b.ids is not None and (rows := _shared(a.ids, b.ids)):
        return _paired(a, b, rows, "id")
    texts = _unique(a), _unique(b)
    if texts[0] is not None and texts[1] is not None and (rows := _shared(texts[0], texts[1])):
        return _paired(a, b, rows, "text")
    if len(a) == len(b) and all(one.ids in (None, numbered(len(one))) for one in (a, b)) and None in texts:
        return _paired(a, b, list(zip(range(len(a)), range(len(a)), strict=True)), "position")
    raise _nothing_shared(a, b, texts)


def _shared(ours: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, int]]:
    at = dict(zip(theirs, count()))
    return [(row, at[name]) for row, name in enumerate(ours) if name in at]


def _unique(lists: RankedLists) -> list[str] | None:
    """The texts of all queries, if every query has one and no two have the same; without texts, ids may be texts."""
    texts = lists.ids if lists.query is None else lists.query
    if texts is None or None in texts or len(set(texts)) < len(texts):
        return None
    return [str(text) for text in texts]


def _paired(a: RankedLists, b: RankedLists, rows: list[tuple[int, int]], by: str) -> _Pairing:
    notes = [Note("overlap_paired_by", details={"by": by})] if by != "id" else []
    for one, other in ((a, b), (b, a)):
        if only := len(one) - len(rows):
            details = {"name": one.name, "other": other.name}
            notes.append(Note("overlap_only_in", only, len(one), details=details))
    ours, theirs = [row for row, _ in rows], [row for _, row in rows]
    if by != "text" and a.query is not None and b.query is not None:
        names = row_names(a)
        pairs = [(names[i], a.query[i], b.query[j]) for i, j in rows]
        changed = [name for name, left, right in pairs if None not in (left, right) and left != right]
        if changed:
            notes.append(Note("overlap_query_texts", len(changed), len(rows), (changed[0],)))
    return _Pairing((ours, theirs), by, tuple(notes))


def _nothing_shared(a: RankedLists, b: RankedLists, texts: tuple[Any, Any]) -> BadArgument:
    """The error with queries of both sources and the likely cause."""
    if (a.ids is None) != (b.ids is None) and None in texts:
        with_ids, other = (a, b) if b.ids is None else (b, a)
        problem = f"{with_ids.name} has query ids, {other.name} has none: the queries cannot be paired"
        return BadArgument(problem, hint='"id" in both, or a different "query" text for each')
    if a.ids is None and None in texts:
        sizes = " and ".join(f"{one.name} has {plural(len(one), 'query', 'queries')}" for one in (a, b))
        problem = f"{sizes}, without ids: they cannot be paired"
        return BadArgument(problem, hint='"id" in both, or a different "query" text for each')
    from karat.samples.id_differences import find_difference

    known = zip((a, b), texts, strict=True)
    ours, theirs = (row_names(one) if one.ids is not None or text is None else text for one, text in known)
    found = find_difference([(ours, theirs)])
    cause = "" if found is None else f": they differ by {found.phrase}"
    shown = " and ".join(f'{one.name}: "{short_id(names[0])}", …' for one, names in ((a, ours), (b, theirs)))
    return BadArgument(f"{a.name} and {b.name} share no query{cause}", got=shown, hint="results of the same queries")


def _texts(a: RankedLists, b: RankedLists, rows: tuple[list[int], list[int]]) -> list[str | None]:
    """The text of each query; the first source that has one counts."""
    found: list[str | None] = [None] * len(rows[0])
    for one, own in ((b, rows[1]), (a, rows[0])):
        if one.query is not None:
            found = [one.query[row] or text for row, text in zip(own, found, strict=True)]
    return valid_texts(found)


def _common(ours: Sequence[list[str]], theirs: Sequence[list[str]]) -> CommonRanks:
    """The common items of each query, in the order of the first ranking."""
    sizes = [np.fromiter(map(len, side), np.int64, len(side)) for side in (ours, theirs)]
    second: list[int] = []
    for left, right in zip(ours, theirs, strict=True):
        if left == right:
            second += range(1, len(left) + 1)
            continue
        rank = dict(zip(right, count(1)))
        second += [rank.get(key, 0) for key in left]
    found = np.array(second, np.int64)
    kept = np.flatnonzero(found)
    start = starts(sizes[0])
    query = np.repeat(np.arange(len(sizes[0])), sizes[0])[kept]
    return CommonRanks(query, kept - start[query] + 1, found[kept], *sizes)
