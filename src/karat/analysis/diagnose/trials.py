"""Trials: the stored items of a run, evaluated again with another judge or other gold, so that advice is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from karat.analysis.diagnose.miss import Gain, Missed
from karat.errors import KaratError
from karat.judges import find_judge
from karat.metrics import parse
from karat.pipeline import evaluate
from karat.run import Run
from karat.run.stored_items import GoldText, Items, Retrieved
from karat.stats import SEED

MAX_QUERIES = 2_000
"""Runs with more queries are tried with a random sample of this size."""
_ITEM = ("id", "text", "doc", "start", "end")

Change: TypeAlias = Callable[[int, Items], Items]
"""Changes the stored items of a query, given its row, for a trial."""


def unchanged(row: int, items: Items) -> Items:
    """The items as they are."""
    return items


class Trial(NamedTuple):
    """The recall of a trial, compared with that of the run over the same queries."""

    gain: Gain
    sample: int | None
    """The number of queries, if they are a random sample of those that were judged."""


class Trials:
    """Evaluates the stored top k of a run again."""

    def __init__(self, run: Run, missed: Missed) -> None:
        self._run = run
        self._k = missed.k
        self._metric = parse(f"recall@{missed.k}")
        judged = np.setdiff1d(np.arange(len(run)), list(run.all_hits.failed))
        self._sample = MAX_QUERIES if len(judged) > MAX_QUERIES else None
        drawn = np.random.default_rng(SEED).choice(judged, self._sample or len(judged), replace=False)
        self._rows = judged if self._sample is None else np.sort(drawn)

    def of(self, judge: str, change: Change = unchanged) -> Trial | None:
        """The recall with this judge; None if the run does not store enough for it."""
        samples = self._samples(change)
        if samples is None:
            return None
        try:
            found = evaluate(samples, [self._metric], judge=find_judge(judge), convention=self._run.convention)
        except KaratError:  # the judge needs other fields, or is not known here
            return None
        (name,) = self._metric.names
        own = self._metric.scores(self._run.all_hits, self._run.convention)[name]
        scores = np.full(len(own), np.nan)
        scores[self._rows] = found.scores[name]
        return Trial(
            Gain.of(*map(self._run.per_query, (np.where(np.isnan(scores), np.nan, own), scores))), self._sample
        )

    def _samples(self, change: Change) -> list[dict[str, Any]] | None:
        """The queries as samples; None if some item of the top k, or the end of a text, is not stored."""
        stored, rows = self._run.stored_items, self._rows.tolist()
        if stored is None or not rows:
            return None
        if (np.minimum(self._run.all_hits.depth[rows], self._k) > stored.extent.places).any():
            return None
        queries = [stored.items(row) for row in rows]
        top = [Items(items.retrieved[: self._k], items.gold) for items in queries]
        if any(item.length is not None for items in top for side in items for item in side):
            return None
        return [_sample(change(row, items)) for row, items in zip(rows, top, strict=True)]


def _sample(items: Items) -> dict[str, Any]:
    """A query as a record. Alternatives have a common group: the index of the gold item that they are."""
    return {
        "retrieved": [_fields(item) for item in items.retrieved],
        "gold": [{**_fields(gold), "grade": gold.grade, "group": str(gold.item)} for gold in items.gold],
    }


def _fields(item: Retrieved | GoldText) -> dict[str, Any]:
    return {name: value for name in _ITEM if (value := getattr(item, name)) is not None}


def folded(fold: Callable[[str], str]) -> Change:
    """Ids, documents and texts of both sides in a normal form."""

    def one(item: Any) -> Any:
        names = [name for name in ("id", "doc", "text") if getattr(item, name) is not None]
        return item._replace(**{name: fold(getattr(item, name)) for name in names})

    return lambda row, items: Items(list(map(one, items.retrieved)), list(map(one, items.gold)))


def with_copies(copies: Mapping[int, Sequence[tuple[int, int]]]) -> Change:
    """Retrieved items as alternatives of gold items; given by query: the gold item, and the rank of its near copy."""

    def change(row: int, items: Items) -> Items:
        more = [_alternative(items.retrieved[rank - 1], item) for item, rank in copies.get(row, ())]
        return items._replace(gold=[*items.gold, *more])

    return change


def _alternative(copy: Retrieved, item: int) -> GoldText:
    return GoldText(copy.id or "", copy.text, copy.doc, 1.0, copy.id, item)


def without_ranges(row: int, items: Items) -> Items:
    """The gold quotes without their ranges."""
    return items._replace(gold=[gold._replace(start=None, end=None) if gold.text else gold for gold in items.gold])


def with_neighbours(row: int, items: Items) -> Items:
    """Each chunk extended by its own length before and after it."""
    return items._replace(retrieved=list(map(_extended, items.retrieved)))


def _extended(chunk: Retrieved) -> Retrieved:
    if chunk.start is None or chunk.end is None:
        return chunk
    size = chunk.end - chunk.start
    return chunk._replace(start=max(chunk.start - size, 0), end=chunk.end + size)
