"""The order of lists with scores: notes on lists that contradict their scores, and what sorting them would change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, starts
from karat.conventions import Convention
from karat.hits import Hits
from karat.hits.combine import take
from karat.judges.matches import identities
from karat.judges.protocol import Judge
from karat.samples import Samples
from karat.samples.notes import Note
from karat.samples.rankings.lists import Lists
from karat.samples.rankings.score_order import AS_GIVEN

_PAIRWISE = {"id", "doc", "text", "quote"}
"""The `compares` of judges whose decisions on an item do not depend on the items before it."""
_GRID = 2.0**30
"""Scores are rounded to multiples of 1 / _GRID, so that their sum is exact, in whatever parts it is computed."""


class Measured(NamedTuple):
    """A column of scores, and how it is computed from hits."""

    name: str
    scores: Floats
    compute: Callable[[Hits], Floats]


def order_notes(samples: Samples, hits: Hits, judge: Judge, c: Convention, measured: Measured | None) -> list[Note]:
    """Notes on lists whose scores contradict their order: sorted if the convention sorts, else with the effect."""
    lists = samples.retrieved
    if not isinstance(lists, Lists) or lists.scores is None:
        return []
    rows = lists.contradicted
    sums = {"rising": float(sum(sorted(lists.scores[row]) == list(lists.scores[row]) for row in rows))}
    if c.order == "score":
        tied = lists.tied if c.ties not in AS_GIVEN else 0
        notes = [
            Note("reordered_by_score", len(rows), sums=sums),
            Note("ties_by_id", tied, details={"direction": c.ties.removeprefix("id_")}),
        ]
        return [note for note in notes if note.count]
    if not rows:
        return []
    some = lists.take(rows)
    best = some.best_first(replace(c, order="score", duplicates="once"))
    sums["first"] = float(sum(order[0] != 0 for order in best))
    whole = c.duplicates == "once" and hits.depth[rows].tolist() == list(map(len, best))
    if measured is None or judge.compares not in _PAIRWISE or not whole or hits.totals.at_rank.keys() - {"tokens"}:
        return [Note("order_kept", len(rows), sums=sums)]
    listed = measured.scores[rows]
    by_score = measured.compute(_sorted(take(hits, np.array(rows)), best, replace(samples, retrieved=some), judge, c))
    defined = ~np.isnan(listed) & ~np.isnan(by_score)
    sums |= {"queries": float(defined.sum()), "listed": _sum(listed[defined]), "by_score": _sum(by_score[defined])}
    return [Note("order_kept", len(rows), details={"metric": measured.name}, sums=sums)]


def _sum(scores: Floats) -> float:
    return float((np.round(scores * _GRID) / _GRID).sum())


def _sorted(hits: Hits, best: Sequence[Sequence[int]], samples: Samples, judge: Judge, c: Convention) -> Hits:
    """The same hits, if the items of each ranking were in another order."""
    new = np.concatenate([np.argsort(order) for order in best]) + 1
    rank: Ints = new[starts(hits.depth)[hits.query] + hits.rank - 1]
    repeated = _repeated(hits, rank, samples, judge, c) if hits.repeated.any() else hits.repeated
    return Hits(
        hits.query,
        rank,
        hits.gold,
        depth=hits.depth,
        gold_items=hits.gold_items,
        grade=hits.grade,
        repeated=repeated,
        part=hits.part,
        why="sorted by score",
        failed=hits.failed,
    )


def _repeated(hits: Hits, rank: Ints, samples: Samples, judge: Judge, c: Convention) -> Bools:
    """Flags the hits whose item is a copy of one that is ranked higher in the new order."""
    names = list(identities(samples, judge, c))
    repeated = np.zeros(len(hits), bool)
    seen: set[object] = set()
    for row in np.lexsort((rank, hits.query)).tolist():
        query = int(hits.query[row])
        key = query, int(hits.gold[row]), names[query][int(hits.rank[row]) - 1]
        repeated[row] = key in seen
        seen.add(key)
    return repeated
