"""The judge `fuzzy`: texts that are alike enough."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, pairwise
from operator import eq
from typing import NamedTuple

import numpy as np

from karat.arrays import Bools, Floats, Ints
from karat.conventions import Convention
from karat.errors import InputError
from karat.grammar import write_call
from karat.hits import Hits
from karat.judges.matches import Matches
from karat.judges.needs import Texts, texts_of
from karat.judges.protocol import judge
from karat.judges.scorers import Scorer, Similarity, find_scorer, lengths, scorer_name, similarities
from karat.judges.settings import share_of_one, truth
from karat.progress import Progress
from karat.samples import Samples

_AT_ONCE = 20_000
_TOO_LONG = 2e10
"""Characters times characters of one pair: some seconds of work."""


class _Pairs(NamedTuple):
    """Some of the pairs that are compared, gold beside chunk."""

    query: list[int]
    rank: list[int]
    gold: list[int]
    left: list[str]
    right: list[str]


@judge("fuzzy")
class Fuzzy:
    """Texts whose similarity reaches the threshold, `strict`: exceeds it; `graded` multiplies the grade by it."""

    def __init__(
        self,
        threshold: float = 0.8,
        scorer: str | Similarity = "ratio",
        *,
        strict: bool = False,
        graded: bool = False,
    ) -> None:
        self.threshold = share_of_one("threshold", threshold)
        self.scorer = find_scorer(scorer)
        self.strict = truth("strict", strict)
        self.graded = truth("graded", graded)
        settings: dict[str, object] = {"threshold": threshold, "scorer": scorer_name(self.scorer)}
        settings |= {"strict": True} if self.strict else {}
        settings |= {"graded": True} if self.graded else {}
        self.name = write_call("fuzzy", **settings)

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Compare every chunk with every gold text of its query."""
        texts = texts_of(samples, self.name, convention)
        matches = Matches(samples, texts)
        alike: list[float] = []
        sizes = zip(map(len, texts.chunks), pairwise(texts.start), strict=True)
        total = sum(depth * (end - begin) for depth, (begin, end) in sizes)
        with Progress(total, self.name) as bar:
            for pairs in _some_at_a_time(texts):
                similarity = self._similarity(pairs, samples)
                for i in np.flatnonzero(self._enough(similarity)).tolist():
                    alike.append(float(similarity[i]))
                    equal = pairs.left[i] == pairs.right[i]
                    why = "exact" if equal else f"similar {_two_places(alike[-1])}"
                    matches.add(pairs.query[i], pairs.rank[i], pairs.gold[i], why)
                bar.step(len(pairs.left))
        return matches.hits(np.array(alike) if self.graded else None)

    def _enough(self, similarity: Floats) -> Bools:
        """To twelve places: 1 - 0.7 is a little more than 0.3 to a computer, and not to the reader of a threshold."""
        similarity = np.round(similarity, 12)
        return similarity > self.threshold if self.strict else similarity >= self.threshold

    def _similarity(self, pairs: _Pairs, samples: Samples) -> Floats:
        """Equal texts first, then what the lengths rule out, then the rest by computation."""
        a, b = lengths(pairs.left), lengths(pairs.right)
        equal = np.fromiter(map(eq, pairs.left, pairs.right), bool, len(a))
        similarity = equal.astype(float)
        unclear = ~equal & (a > 0) & (b > 0)
        if isinstance(self.scorer, Scorer):
            if self.scorer.bound is not None:
                unclear &= self._enough(self.scorer.bound(a, b))
            _refuse_enormous(a, b, unclear, self.scorer, pairs, samples)
        if unclear.any():
            left, right = list(compress(pairs.left, unclear.tolist())), list(compress(pairs.right, unclear.tolist()))
            similarity[unclear] = similarities(self.scorer, left, right, self.threshold)
        return similarity


def _some_at_a_time(texts: Texts) -> Iterator[_Pairs]:
    pairs = _Pairs([], [], [], [], [])
    for query, (chunks, (begin, end)) in enumerate(zip(texts.chunks, pairwise(texts.start), strict=True)):
        for gold in range(begin, end):
            pairs.query.extend([query] * len(chunks))
            pairs.rank.extend(range(1, len(chunks) + 1))
            pairs.gold.extend([gold] * len(chunks))
            pairs.left.extend([texts.gold[gold]] * len(chunks))
            pairs.right.extend(chunks)
            if len(pairs.left) >= _AT_ONCE:
                yield pairs
                pairs = _Pairs([], [], [], [], [])
    if pairs.left:
        yield pairs


def _two_places(similarity: float) -> str:
    """Two decimal places; never 1.00 for texts that differ."""
    return f"{min(similarity, 0.99):.2f}" if similarity < 1 else "1.00"


def _refuse_enormous(a: Ints, b: Ints, unclear: Bools, scorer: Scorer, pairs: _Pairs, samples: Samples) -> None:
    work = np.where(unclear, a.astype(float) * b * scorer.dear, 0.0)
    if work.max(initial=0.0) > _TOO_LONG:
        i = int(work.argmax())
        raise InputError(
            f'query "{samples.ids[pairs.query[i]]}", item {pairs.rank[i]} of retrieved: texts of {a[i]:,} and {b[i]:,} '
            f"characters are too long to be compared by {scorer.name}",
            hint='judge="contains", or judge="spans"; both take time in proportion to the lengths',
        )
