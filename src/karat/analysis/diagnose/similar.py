"""The most similar of several texts, for many texts at once: near copies of gold among the retrieved items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, compress
from operator import eq
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat.judges.fuzzy import SCORERS, Scorer, lengths, similarities

_NEAR = 0.8
_OF_THRESHOLD = 0.9
_AT_ONCE = 50_000
_NEARLY = 1 - 1e-9
"""The highest similarity of different texts: those that differ only in white space, or after the part compared."""
_COMPARED = 10_000
"""Characters of a text that are compared; the time of an edit distance is quadratic in them."""
_MAX_COST = 10
"""The cost of a scorer, in edit distances, above which it is not used: there may be millions of pairs."""


class Similarity(NamedTuple):
    """A measure of similarity, and the value from which texts are nearly equal."""

    scorer: Scorer
    near: float
    threshold: float | None = None
    """The threshold of the judge, if it uses the same scorer."""


NEAR_COPY = Similarity(SCORERS["ratio"], 0.9)
"""Texts so similar that either would do."""


class Nearest(NamedTuple):
    """The most similar of several texts: its place among them, and its similarity."""

    place: int
    similarity: float


def is_fuzzy(compares: str, settings: Mapping[str, Any]) -> bool:
    """True if a judge compares whole texts by one of the scorers, with a threshold."""
    threshold = settings.get("threshold")
    return compares == "text" and str(settings.get("scorer")) in SCORERS and isinstance(threshold, int | float)


def judge_similarity(compares: str, settings: Mapping[str, Any]) -> Similarity:
    """The measure of a judge that compares texts by similarity; else the ratio of common characters."""
    if not is_fuzzy(compares, settings) or (scorer := SCORERS[str(settings["scorer"])]).cost > _MAX_COST:
        return Similarity(SCORERS["ratio"], _NEAR)
    threshold = float(settings["threshold"])
    return Similarity(scorer, min(_NEAR, _OF_THRESHOLD * threshold), threshold)


def nearest(wanted: Sequence[str], texts: Sequence[Sequence[str]], by: Similarity) -> list[Nearest | None]:
    """The most similar candidate for each text, the first of equal ones; None if none is near."""
    best: list[Nearest | None] = []
    start = 0
    while start < len(wanted):  # in batches, to bound the memory
        stop, pairs = start, 0
        while stop < len(wanted) and (stop == start or pairs + len(texts[stop]) <= _AT_ONCE):
            pairs += len(texts[stop])
            stop += 1
        best += _nearest(wanted[start:stop], texts[start:stop], by)
        start = stop
    return best


def _nearest(wanted: Sequence[str], texts: Sequence[Sequence[str]], by: Similarity) -> list[Nearest | None]:
    left = [text for text, candidates in zip(wanted, texts, strict=True) for _ in candidates]
    right = list(chain.from_iterable(texts))
    similarity: Floats = np.zeros(len(left))
    a, b = lengths(left), lengths(right)
    likely = (a > 0) & (b > 0)
    if by.scorer.bound is not None:
        likely &= by.scorer.bound(a, b) >= by.near
    if likely.any():
        chosen = likely.tolist()
        one, other = ([text[:_COMPARED] for text in compress(side, chosen)] for side in (left, right))
        same = np.fromiter(map(eq, compress(left, chosen), compress(right, chosen)), bool)
        similarity[likely] = np.minimum(similarities(by.scorer, one, other, by.near), np.where(same, 1.0, _NEARLY))
    best: list[Nearest | None] = []
    for part in np.split(similarity, np.cumsum(lengths(texts))[:-1]):
        place = int(part.argmax()) if len(part) else 0
        best.append(Nearest(place, float(part[place])) if len(part) and part[place] >= by.near else None)
    return best
