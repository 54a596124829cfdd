"""Rankings as dicts of scores, item to score, as in pytrec_eval and BEIR."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from math import nan
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat._internal.threads import Background
from karat._kernel import kernel
from karat.conventions import Convention
from karat.errors import InputError
from karat.samples.columns import SCORES, Field, Found, Keys, bad_number
from karat.samples.keys import are_usual, as_id, by_id, check_items, number_of, short_id, spellings
from karat.samples.notes import Note
from karat.samples.rankings.score_order import (
    Matrix,
    ScoreArray,
    Tied,
    as_rows,
    blocks,
    break_ties,
    order,
    precision_of,
    ranks,
    sort_rows,
)

_WORTH_A_THREAD = 1 << 21
"""The number of scores from which sorting in a second thread pays."""
_NOT_FOUND = repeat(nan)
_NOT_PACKED = (struct.error, TypeError, OverflowError)
_TRUTH = {bool, np.bool_}

Scored = Mapping[Any, float]


class _Block(NamedTuple):
    """Some rankings as matrices, and the score of each gold key, NaN if it was not retrieved."""

    first: int
    rows: list[Matrix]
    own: ScoreArray


class Dicts:
    """Rankings as dicts of scores; the caller's dicts are only read."""

    all_fields: frozenset[Field] = frozenset(("id", "text"))
    any_fields = all_fields
    plain = True
    notes: tuple[Note, ...] = ()

    def __init__(self, dicts: list[Scored], ids: Sequence[str], *, checked: bool = True) -> None:
        """With `checked=False` the keys are checked when they are first read."""
        self.dicts = dicts
        self.ids = ids
        self._checked = checked
        self._finite: bool | None = None
        """True if `find` has read all scores, and none is infinite."""

    @property
    def form(self) -> str:
        """The form of the items: with scores."""
        return SCORES if any(self.dicts) else ""

    @property
    def infinite(self) -> int:
        """The number of infinite scores."""
        return 0 if self._finite else sum(int(np.isinf(self.scores(query)).sum()) for query in range(len(self)))

    def __len__(self) -> int:
        return len(self.dicts)

    def take(self, rows: Sequence[int | None]) -> Dicts:
        """The rankings of these rows, in this order; None is a missing ranking."""
        dicts: list[Scored] = [{} if row is None else self.dicts[row] for row in rows]
        return Dicts(dicts, ["" if row is None else self.ids[row] for row in rows], checked=self._checked)

    def without(self, ids: Sequence[Collection[str]]) -> tuple[Dicts, int]:
        """The rankings, each without the items of the given ids, and the number of items removed."""
        dicts, removed = list(self.dicts), 0
        for row, own in enumerate(ids):
            scored = dicts[row]
            if out := [key for key in spellings(own) if key in scored]:
                dicts[row] = {item: score for item, score in scored.items() if item not in out}
                removed += len(out)
        return Dicts(dicts, self.ids, checked=self._checked), removed

    def check(self) -> None:
        """Refuse keys that are neither ids nor texts.

        To read every key would take as long as the evaluation. The first key of each dict shows the type, and null,
        True and False are looked up, since True equals 1; other keys that are no ids can match no gold.
        """
        if self._checked:
            return
        types = {type(next(iter(scored))) for scored in self.dicts if scored}
        usual = are_usual(types, self.dicts)
        if not usual or any(None in scored or True in scored or False in scored for scored in self.dicts):
            check_items(self.dicts, by_id(self.ids), "retrieved")
        self._checked = True

    def sorted_scores(self, c: Convention) -> Iterator[Sequence[float]]:
        """The scores of each query, best first."""
        return (np.sort(self.scores(query))[::-1].tolist() for query in range(len(self)))

    def each(self, field: Field, c: Convention) -> Iterator[list[str]]:
        """The items of each query, best first."""
        self.check()
        for query in range(len(self)):
            ids, scores = self._items(query)
            yield [ids[i] for i in order(scores, ids, c)]

    def find(self, field: Field, keys: Keys, c: Convention) -> Found:
        """Look the gold keys up, then count the greater scores."""
        keys.check()
        depth = np.fromiter(map(len, self.dicts), np.int64, len(self.dicts))
        return self._find_compiled(keys, depth, c) or self._find(keys, depth, c)

    def _find_compiled(self, keys: Keys, depth: Ints, c: Convention) -> Found | None:
        """By the kernel; None if there is none, or the dicts are not plain."""
        if (native := kernel()) is None:
            return None
        own, above, tied = np.empty(len(keys.key)), np.empty(len(keys.key), np.int64), np.empty(len(keys.key), bool)
        single = c.scores == "single"
        check = not self._checked
        finite = native.find_in_dicts(self.dicts, keys.key, keys.start, single, keys.numbers, check, own, above, tied)
        if finite is None:
            return None
        self._finite, self._checked = finite, True
        gold = (own == own).nonzero()[0]
        query, above = keys.query[gold], above[gold]
        ties, rounded = tied[gold].nonzero()[0], 0
        if len(ties):
            scores = own[gold].astype(precision_of(c)[1])
            rounded = break_ties(above, ties, Tied(query, scores, gold, keys.key), self._items, c)
        return Found(query, above + 1, gold, depth, rounded)

    def _find(self, keys: Keys, depth: Ints, c: Convention) -> Found:
        """The same without the kernel: one block is sorted while the next is read."""
        self.check()
        self._finite = True
        found: list[Found] = []
        waiting: tuple[_Block, Callable[[], None]] | None = None
        with Background(worth_a_thread=int(depth.sum()) >= _WORTH_A_THREAD) as background:
            for first, last in blocks(depth):
                block = self._read(first, last, depth, keys, c)
                sorted_now = background.start(sort_rows, block.rows)
                if waiting is not None:
                    found.append(self._rank(*waiting, keys, depth, c))
                waiting = block, sorted_now
            if waiting is not None:
                found.append(self._rank(*waiting, keys, depth, c))
        return Found.concat(found, depth)

    def _read(self, first: int, last: int, depth: Ints, keys: Keys, c: Convention) -> _Block:
        """Read all scores of some rankings, and those of the gold keys."""
        letter, kind = precision_of(c)
        packed: list[bytes] = []
        own: list[float] = []
        begin = keys.start[first : last + 1].tolist()
        size, pack = -1, struct.Struct("").pack
        with np.errstate(over="ignore"):  # a score that is too large for single precision is infinite
            for i, scored in enumerate(self.dicts[first:last]):
                if len(scored) != size:
                    size = len(scored)
                    pack = _packer(letter, size)
                try:
                    packed.append(pack(*scored.values()))
                except _NOT_PACKED:
                    packed.append(self.scores(first + i).astype(kind).tobytes())
                own.extend(map(scored.get, keys.key[begin[i] : begin[i + 1]], _NOT_FOUND))
            flat = np.frombuffer(bytearray().join(packed), kind)
            self._check(flat, first, last)
            scores = _as_doubles(own).astype(kind)
            if keys.numbers:
                self._try_numbers(scores, keys, begin[0])
        return _Block(first, as_rows(flat, depth[first:last]), scores)

    def scores(self, query: int) -> Floats:
        """The scores of one ranking, as given; refuses what is not a number."""
        values = self.dicts[query].values()
        try:
            flat = np.frombuffer(_packer("d", len(values))(*values))
        except _NOT_PACKED as error:
            raise bad_number(self.dicts[query : query + 1], self.ids[query : query + 1], "score") from error
        self._check(flat, query, query + 1)
        return flat

    def _check(self, scores: ScoreArray, first: int, last: int) -> None:
        """Refuse NaN and truth values among the scores of some rankings. Only 0 and 1 can be truth values."""
        if not np.isfinite(scores).all():
            self._finite = False
        truth = (scores == scores.astype(bool)).any() and not _TRUTH.isdisjoint(
            map(type, chain.from_iterable(own.values() for own in self.dicts[first:last]))
        )
        if truth or (self._finite is False and np.isnan(scores).any()):
            raise bad_number(self.dicts[first:last], self.ids[first:last], "score")

    def _try_numbers(self, own: ScoreArray, keys: Keys, begin: int) -> None:
        """Look the keys up again as integers."""
        for i in range(len(own)):
            number = number_of(keys.key[begin + i])
            query = keys.query[begin + i]
            if number is None or number not in self.dicts[query]:
                continue
            if own[i] == own[i]:
                raise InputError(
                    f'query "{short_id(self.ids[query])}": {number} and "{number}" are the same id, retrieved twice'
                )
            own[i : i + 1] = _as_doubles([self.dicts[query][number]])

    def _rank(self, block: _Block, sorted_now: Callable[[], None], keys: Keys, depth: Ints, c: Convention) -> Found:
        """The ranks of the gold keys, from their scores."""
        found = (block.own == block.own).nonzero()[0]
        gold = found + keys.start[block.first]
        query = keys.query[gold]
        own = block.own[found]
        sorted_now()
        rank, rounded = ranks(block.rows, block.first, Tied(query, own, gold, keys.key), self._items, c)
        return Found(query, rank, gold, depth, rounded)

    def _items(self, query: int) -> tuple[list[str], Floats]:
        """The ids and scores of one ranking, as given."""
        return [as_id(item) for item in self.dicts[query]], self.scores(query)


def _as_doubles(scores: Sequence[float]) -> Floats:
    """Some scores, read like those of a whole ranking: NumPy would call the `__float__` of a subclass of float."""
    return np.frombuffer(struct.pack(f"{len(scores)}d", *scores))


@lru_cache(maxsize=1024)
def _packer(letter: str, size: int) -> Callable[..., bytes]:
    return struct.Struct(f"{size}{letter}").pack
