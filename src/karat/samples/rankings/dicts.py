"""Rankings as dicts of scores, item to score: the habit of information retrieval."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from math import nan
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat._internal.threads import Background
from karat.conventions import Convention
from karat.errors import InputError
from karat.samples.columns import Field, Found, Keys
from karat.samples.keys import as_id, number_of
from karat.samples.rankings.score_order import (
    Matrix,
    ScoreArray,
    Tied,
    as_rows,
    blocks,
    break_ties,
    count_above,
    order,
    precision_of,
    sort_rows,
)

_WORTH_A_THREAD = 1 << 21

_NOT_THERE = repeat(nan)

Scored = Mapping[Any, float]


class _Block(NamedTuple):
    """Some rankings laid out for counting, and the score of each gold key in them, NaN if it is not there."""

    first: int
    rows: list[Matrix]
    own: ScoreArray


class Dicts:
    """Rankings as dicts of scores; the dicts are the caller's, and are only read."""

    all_fields: frozenset[Field] = frozenset(("id", "text"))
    any_fields = all_fields
    plain = True

    def __init__(self, dicts: list[Scored], ids: Sequence[str]) -> None:
        self.dicts = dicts
        self.ids = ids

    def __len__(self) -> int:
        return len(self.dicts)

    def take(self, rows: Sequence[int | None]) -> Dicts:
        """The rankings in another order; None stands for one that is missing."""
        dicts: list[Scored] = [{} if row is None else self.dicts[row] for row in rows]
        return Dicts(dicts, ["" if row is None else self.ids[row] for row in rows])

    def without(self, ids: Sequence[str]) -> Dicts:
        """The rankings, each without the item of this id."""
        dicts: list[Scored] = [
            {item: score for item, score in scored.items() if as_id(item) != own}
            for scored, own in zip(self.dicts, ids, strict=True)
        ]
        return Dicts(dicts, self.ids)

    def sorted_scores(self, c: Convention) -> Iterator[Sequence[float]]:
        """The scores of each query, best first."""
        return (sorted(scored.values(), reverse=True) for scored in self.dicts)

    def each(self, field: Field, c: Convention) -> Iterator[list[str]]:
        """The items of each query, best first."""
        for query in range(len(self)):
            ids, scores = self._items(query)
            yield [ids[i] for i in order(scores, ids, c)]

    def find(self, field: Field, keys: Keys, c: Convention) -> Found:
        """Look the gold keys up, then count the greater scores."""
        keys.check()
        depth = np.fromiter(map(len, self.dicts), np.int64, len(self.dicts))
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
        if len(found) == 1:
            return found[0]
        return Found(
            np.concatenate([f.query for f in found]),
            np.concatenate([f.rank for f in found]),
            np.concatenate([f.gold for f in found]),
            depth,
            sum(f.rounded for f in found),
        )

    def _read(self, first: int, last: int, depth: Ints, keys: Keys, c: Convention) -> _Block:
        """Read every score of some rankings, and pick those of the gold keys."""
        letter, kind = precision_of(c)
        packed: list[bytes] = []
        own: list[float] = []
        begin = keys.start[first : last + 1].tolist()
        size, pack = -1, struct.Struct("").pack
        try:
            for i, scored in enumerate(self.dicts[first:last]):
                if len(scored) != size:
                    size = len(scored)
                    pack = _packer(letter, size)
                packed.append(pack(*scored.values()))
                own.extend(map(scored.get, keys.key[begin[i] : begin[i + 1]], _NOT_THERE))
        except (struct.error, AttributeError, TypeError, OverflowError) as error:
            raise self._explain(first, last) from error
        flat = np.frombuffer(bytearray().join(packed), kind)
        if np.count_nonzero(flat != flat):
            raise self._explain(first, last)
        scores = np.frombuffer(bytearray(_packer(letter, len(own))(*own)), kind)
        if keys.numbers:
            self._try_numbers(scores, keys, begin[0])
        return _Block(first, as_rows(flat, depth[first:last]), scores)

    def _try_numbers(self, own: ScoreArray, keys: Keys, begin: int) -> None:
        """Look again, now for ids that the rankings write as numbers."""
        for i in range(len(own)):
            number = number_of(keys.key[begin + i])
            query = keys.query[begin + i]
            if number is None or number not in self.dicts[query]:
                continue
            if own[i] == own[i]:
                raise InputError(f'query "{self.ids[query]}": {number} and "{number}" are the same id, retrieved twice')
            own[i] = self.dicts[query][number]

    def _rank(self, block: _Block, sorted_now: Callable[[], None], keys: Keys, depth: Ints, c: Convention) -> Found:
        """Turn the scores of the gold keys into ranks."""
        there = (block.own == block.own).nonzero()[0]
        gold = there + keys.start[block.first]
        query = keys.query[gold]
        own = block.own[there]
        sorted_now()
        above, tied = count_above(block.rows, query - block.first, own)
        rounded = break_ties(above, tied.nonzero()[0], Tied(query, own, gold, keys.key), self._items, c)
        return Found(query, above + 1, gold, depth, rounded)

    def _items(self, query: int) -> tuple[list[str], Floats]:
        """The ids and the scores of one ranking, as given."""
        scored = self.dicts[query]
        return [as_id(item) for item in scored], np.fromiter(scored.values(), float, len(scored))

    def _explain(self, first: int, last: int) -> InputError:
        """Find the score that is none."""
        for query, scored in zip(self.ids[first:last], self.dicts[first:last], strict=True):
            if not isinstance(scored, Mapping):
                return InputError(
                    f'query "{query}": retrieved is a {type(scored).__name__}; wanted a dict of scores',
                    got=scored,
                    hint='{"doc-4": 12.5, "doc-9": 11.0}',
                )
            for item, score in scored.items():
                if isinstance(score, bool) or not hasattr(score, "__float__") or score != score:
                    return InputError(f'query "{query}": the score of {item!r} is not a number', got=score)
        return InputError("a score is not a number")


@lru_cache(maxsize=1024)
def _packer(letter: str, size: int) -> Callable[..., bytes]:
    return struct.Struct(f"{size}{letter}").pack
