"""Rankings of several steps: what each search of a query returned, merged into one ranking per query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, compress, pairwise, zip_longest
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Ints, starts, take_ragged
from karat._internal.grammar import parse_call, write
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, unknown
from karat.samples.columns import Field, Found, Keys, Rankings
from karat.samples.notes import Note
from karat.samples.rankings.lists import Lists
from karat.samples.rankings.places import FoundInSteps, Places, as_strings, find_in_steps, repeated_items

_K = 60.0
_RANGE: tuple[Field, ...] = ("doc", "start", "end")
_MISSING = object()


class Searched(NamedTuple):
    """The steps of one query: the keys of the items of each, best first, and their scores if the merge needs them."""

    keys: list[Sequence[Any]]
    scores: list[Sequence[float]] | None


Order = Callable[[Searched, float], list[Any]]
"""The different keys of all steps, best first."""


class Merge(NamedTuple):
    """A way of making one ranking of several steps; `str(merge)` reads back as the same."""

    name: str = "concat"
    k: float = _K
    """The constant of reciprocal rank fusion."""

    def __str__(self) -> str:
        return f"rrf({write(self.k)})" if self.name == "rrf" else self.name

    @property
    def ordered(self) -> bool:
        """False for a set, which has no ranks."""
        return self.name != "union"

    @classmethod
    def of(cls, given: Merge | str) -> Merge:
        """The merge of this name, such as "concat" or "rrf(60)"."""
        if isinstance(given, Merge):
            return given
        if not isinstance(given, str):
            raise BadArgument("merge is the name of a way to merge steps", got=given, hint='"concat"')
        call = parse_call(given)
        if call.name not in MERGES:
            raise unknown("merge", call.name, MERGES, "one of: " + ", ".join(MERGES))
        values = [*call.positional, *call.named.values()]
        if call.name != "rrf" or len(values) > 1 or set(call.named) - {"k"}:
            if values:
                raise BadArgument(f'merge "{call.name}" has no such setting', got=given, hint="rrf(60)")
            return cls(call.name)
        k = values[0] if values else _K
        if isinstance(k, bool) or not isinstance(k, int | float) or not 0 <= k < 1e9:
            raise BadArgument("the k of rrf is a number from 0 on", got=given, hint="rrf(60)")
        return cls("rrf", float(k))


def _concat(steps: Searched, k: float) -> list[Any]:
    return list(dict.fromkeys(chain.from_iterable(steps.keys)))


def _interleave(steps: Searched, k: float) -> list[Any]:
    by_rank = chain.from_iterable(zip_longest(*steps.keys, fillvalue=_MISSING))
    return [key for key in dict.fromkeys(by_rank) if key is not _MISSING]


def _rrf(steps: Searched, k: float) -> list[Any]:
    total: dict[Any, float] = {}
    for keys in steps.keys:
        for rank, key in enumerate(dict.fromkeys(keys), 1):
            total[key] = total.get(key, 0.0) + 1.0 / (k + rank)
    return sorted(total, key=total.__getitem__, reverse=True)  # stable: equals stay in the order of the steps


def _max(steps: Searched, k: float) -> list[Any]:
    best: dict[Any, float] = {}
    for keys, scores in zip(steps.keys, steps.scores or (), strict=False):
        for key, score in zip(keys, scores, strict=True):
            best[key] = max(best.get(key, score), score)
    return sorted(best, key=best.__getitem__, reverse=True)


MERGES: dict[str, Order] = {
    "concat": _concat,
    "interleave": _interleave,
    "rrf": _rrf,
    "max": _max,
    "union": _concat,
}
"""The ways of making one ranking of several steps: one step after the other, rank 1 of each and then rank 2, reciprocal
rank fusion, the best score of each item, and a set."""


CONCAT = Merge()


class About(NamedTuple):
    """Facts on each step of all queries; None where they were not given."""

    name: Sequence[str | None]
    query: Sequence[str | None]
    latency: Sequence[float | None]
    tokens: Sequence[float | None]
    span_id: Sequence[str | None]

    def take(self, rows: Ints) -> About:
        """The facts on some steps."""
        some = rows.tolist()
        return About(*([column[row] for row in some] for column in self))


class _Merged(NamedTuple):
    lists: Lists
    keys: list[list[Any]]
    """The identity of each item of the merged rankings."""
    steps: list[Sequence[Any]]
    """The identity of each item of each step."""
    repeated: Ints
    """The number of different items of each step that an earlier step of its query returned."""


class Steps:
    """Rankings of steps, one after the other, of all queries; as rankings of queries, the merged ones."""

    def __init__(self, own: Rankings, start: Ints, ids: Sequence[str], about: About, merge: Merge = CONCAT) -> None:
        self.own = own
        self.start = start
        self.ids = ids
        self.about = about
        self.merge = merge
        self._known: dict[tuple[object, ...], _Merged] = {}
        self._found: dict[tuple[object, ...], FoundInSteps] = {}

    @property
    def all_fields(self) -> frozenset[Field]:
        """The fields that every item has."""
        return self.own.all_fields

    @property
    def any_fields(self) -> frozenset[Field]:
        """The fields that at least one item has."""
        return self.own.any_fields

    @property
    def plain(self) -> bool:
        """True if the items are bare strings."""
        return self.own.plain

    @property
    def notes(self) -> tuple[Note, ...]:
        """Facts noticed when the items were read."""
        return self.own.notes

    @property
    def form(self) -> str:
        """The form of the items."""
        return self.own.form

    @property
    def infinite(self) -> int:
        """The number of infinite scores."""
        return self.own.infinite

    def __len__(self) -> int:
        return len(self.ids)

    def merged_by(self, merge: Merge) -> Steps:
        """The same steps, merged in this way."""
        return self if merge == self.merge else Steps(self.own, self.start, self.ids, self.about, merge)

    def take(self, rows: Sequence[int | None]) -> Steps:
        """The rankings of these rows, in this order; a missing one has no step."""
        flat, start = _take_steps(self.start, rows)
        ids = ["" if row is None else self.ids[row] for row in rows]
        return Steps(self.own.take(flat.tolist()), start, ids, self.about.take(flat), self.merge)

    def without(self, ids: Sequence[Collection[str]]) -> tuple[Steps, int]:
        """The rankings, each step without the items of the given ids, and the number of items removed."""
        each = np.repeat(np.arange(len(ids)), np.diff(self.start)).tolist()
        own, removed = self.own.without([ids[row] for row in each])
        return (Steps(own, self.start, self.ids, self.about, self.merge) if removed else self), removed

    def sorted_scores(self, c: Convention) -> None:
        """No scores: those of different searches cannot be compared."""

    def each(self, field: Field, c: Convention) -> Iterator[Sequence[Any]]:
        """One field of all items of each merged ranking."""
        return self._merged(c).lists.each(field, c)

    def find(self, field: Field, keys: Keys, c: Convention) -> Found:
        """Look the gold keys up in the merged rankings; one step after the other needs no merged ranking for that."""
        if MERGES[self.merge.name] is not _concat or field != self._identity or not len(self.start) - 1:
            return self._merged(c).lists.find(field, keys, c)
        found = find_in_steps(self.own, self.start, field, keys, c)
        self._found[_order_of(c)] = found
        return Found(found.query, found.rank, found.gold, found.depth, found.rounded)

    def repeated(self, c: Convention) -> Ints:
        """The number of items of each step that an earlier step of its query returned."""
        known = self._found.get(_order_of(c))
        return self._merged(c).repeated if known is None else known.repeated

    def depth(self, c: Convention) -> Ints:
        """The number of items that each step returned."""
        known = self._found.get(_order_of(c))
        if known is not None:
            return known.step_depth
        steps = self._merged(c).steps
        return np.fromiter(map(len, steps), np.int64, len(steps))

    def places(self, query: Ints, rank: Ints, c: Convention) -> Places:
        """The places in the steps of the items at these ranks of the merged rankings."""
        if (known := self._found.get(_order_of(c))) is not None and known.has(query, rank):
            return known.places
        merged, bounds = self._merged(c), self.start.tolist()
        wanted: dict[int, dict[Any, int]] = {}
        for row, place in zip(query.tolist(), rank.tolist(), strict=True):
            wanted.setdefault(row, {})[merged.keys[row][place - 1]] = place
        numbers = range(int(self.depth(c).max(initial=0)))
        found: list[tuple[int, int, int, int]] = []
        for row, known_keys in wanted.items():
            for step, keys in enumerate(merged.steps[bounds[row] : bounds[row + 1]]):
                here = list(compress(numbers, map(known_keys.__contains__, keys)))
                if len(here) > 1:
                    here = list({keys[at]: at for at in reversed(here)}.values())  # the first of several copies
                found += [(row, known_keys[keys[at]], step, at + 1) for at in here]
        columns = np.array(found, np.int64).reshape(-1, 4).T
        return Places(*columns)

    def _merged(self, c: Convention) -> _Merged:
        key = _order_of(c)
        if key not in self._known:
            self._known[key] = self._merge(c)
        return self._known[key]

    def _merge(self, c: Convention) -> _Merged:
        steps = list(self._identities(c))
        scores = self._scores(c)
        order, keys = MERGES[self.merge.name], []
        repeated: list[int] = []
        for begin, end in pairwise(self.start.tolist()):
            given = steps[begin:end]
            keys.append(order(Searched(given, None if scores is None else scores[begin:end]), self.merge.k))
            repeated += [0] * len(given) if sum(map(len, given)) == len(keys[-1]) else repeated_items(given)
        columns: dict[Field, list[Sequence[Any]]] = {}
        for field in self.any_fields:
            columns[field] = keys if self.plain else self._pick(field, steps, keys, c)  # type: ignore[assignment]
        lists = Lists(columns, self.ids, plain=self.plain, complete=self.all_fields)
        return _Merged(lists, keys, steps, np.array(repeated, np.int64))

    @property
    def _identity(self) -> Field | None:
        """The field by which items are the same, if it is one."""
        fields: tuple[Field, ...] = ("id", "text")
        return next((field for field in fields if field in self.all_fields), None)

    def _identities(self, c: Convention) -> Iterator[Sequence[Any]]:
        """The identities of the items of each step: the id, else the text, else the range of a document."""
        if self._identity is not None:
            return map(as_strings, self.own.each(self._identity, c))
        fields = [field for field in _RANGE if field in self.all_fields]
        if not fields:
            raise InputError('steps can be merged if every item has an "id", a "text" or a "doc"')
        parts = [self.own.each(field, c) for field in fields]
        return (list(zip(*own, strict=True)) for own in zip(*parts, strict=True))

    def _scores(self, c: Convention) -> list[Sequence[float]] | None:
        if self.merge.name != "max" or not self.own.form:
            return None
        scores = self.own.sorted_scores(c)
        if scores is None:
            hint = '"score" in each record of retrieved, or merge="concat"'
            raise InputError('merge="max" compares scores, and the steps have none', hint=hint)
        return list(scores)

    def _pick(self, field: Field, steps: list[Sequence[Any]], keys: list[list[Any]], c: Convention) -> list[list[Any]]:
        """A field of the merged items: that of their first occurrence."""
        values = list(self.own.each(field, c))
        picked = []
        for own, (begin, end) in zip(keys, pairwise(self.start.tolist()), strict=True):
            pairs = zip(chain(*steps[begin:end]), chain(*values[begin:end]), strict=True)
            first: dict[Any, Any] = {}
            for key, value in pairs:
                first.setdefault(key, value)
            picked.append([first[key] for key in own])
        return picked


def _order_of(c: Convention) -> tuple[object, ...]:
    """The choices of a convention that decide the order within a step."""
    return (c.order, c.ties, c.scores)


def _take_steps(start: Ints, rows: Sequence[int | None]) -> tuple[Ints, Ints]:
    """The steps of these queries, and their new offsets; a missing query has none."""
    there = np.array([row for row in rows if row is not None], np.int64)
    flat, _ = take_ragged(start, there)
    sizes = np.diff(start)
    return flat, starts(np.array([0 if row is None else int(sizes[row]) for row in rows], np.int64))
