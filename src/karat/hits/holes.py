"""Holes in the gold: retrieved items without a judgement. Rankings without them, and rankings with labels for them.

An item is judged if it satisfies a gold item with a grade of 0 or more; a grade below 0 means pooled, not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, bool_column, group_number, row_number, starts, take_ragged
from karat.hits.aspects import Aspects, facets_of
from karat.hits.hits import Gold, Hits
from karat.hits.totals import RAW_SCORE, Totals

_MOST_BITS = 62
_VALUES = frozenset(["score", RAW_SCORE])
"""Columns of totals that are values at each rank, not sums."""


def condense(hits: Hits) -> Hits:
    """The hits of the rankings without unjudged items; the ranks are counted again."""
    keep = (hits.grade >= 0).nonzero()[0]
    query, rank = hits.query[keep], hits.rank[keep]
    begins: Bools = np.ones(len(keep), bool)
    begins[1:] = (query[1:] != query[:-1]) | (rank[1:] != rank[:-1])
    depth = np.bincount(query[begins], minlength=hits.queries)
    return Hits(
        query,
        np.cumsum(begins) - starts(depth)[query],
        hits.gold[keep],
        depth=depth,
        gold_items=hits.gold_items,
        grade=hits.grade[keep],
        repeated=hits.repeated[keep],
        part=None if hits.part is None else hits.part[keep],
        why=hits.why if isinstance(hits.why, str) else [hits.why[i] for i in keep.tolist()],
        totals=_condensed_totals(hits, keep, begins, depth),
        notes=hits.notes,
        failed=hits.failed,
    )


def _condensed_totals(hits: Hits, keep: Ints, begins: Bools, depth: Ints) -> Totals:
    """The totals over the items that are kept; each was counted when it was first read."""
    sizes = dict(hits.totals.sizes)
    if "different" in sizes:
        copy = np.logical_and.reduceat(hits.repeated[keep], begins.nonzero()[0]) if len(keep) else np.zeros(0, bool)
        sizes["different"] = np.bincount(hits.query[keep][begins][~copy], minlength=hits.queries).astype(float)
    totals = Totals(depth, {}, sizes)
    rows = hits.totals.row(hits.query[keep][begins], hits.rank[keep][begins])
    for name, total in hits.totals.at_rank.items():
        if name in _VALUES:
            totals = totals.with_values(name, total[rows])
        else:
            totals = totals.with_amounts(name, amounts(hits.totals, name)[rows])
    return totals


def amounts(totals: Totals, name: str) -> Floats:
    """The amount at each rank, of a total up to each rank."""
    total = totals.at_rank[name]
    own = np.diff(total, prepend=0.0)
    first = starts(totals.depth)[:-1][totals.depth > 0]
    own[first] = total[first]
    return own


class Holes(NamedTuple):
    """The ranks of the unjudged items of all queries, one query after the other."""

    start: Ints
    rank: Ints

    @property
    def sizes(self) -> Ints:
        """The number of unjudged items of each query."""
        return np.diff(self.start)


def find_holes(hits: Hits, within: Floats | float = np.inf) -> Holes:
    """The unjudged items within a cutoff, which may be one for each query."""
    reach = np.minimum(hits.depth, within).astype(np.int64)
    start = starts(reach)
    judged = (hits.grade >= 0) & (hits.rank <= reach[hits.query])
    free: Bools = np.ones(int(start[-1]), bool)
    free[start[hits.query[judged]] + hits.rank[judged] - 1] = False
    query = group_number(start)[free]
    return Holes(starts(np.bincount(query, minlength=hits.queries)), (row_number(start) + 1)[free])


class Labels(NamedTuple):
    """Labels for holes: one row for each query with one choice of labels. The others are judged irrelevant."""

    query: Ints
    first: Ints
    """The number of the first relevant hole of the query, from 0; …"""
    last: Ints
    """… and of the last, exclusive."""
    unretrieved: Ints
    """The number of other items that are judged, none of them retrieved, …"""
    relevant: Ints
    """… and how many of them are relevant."""
    bits: Ints
    """Other relevant holes: those of the numbers that are set in it."""

    def part(self, rows: slice) -> Labels:
        """Some of the rows."""
        return Labels(*(column[rows] for column in self))


def labelled(hits: Hits, holes: Holes, labels: Labels, top: float) -> Hits:
    """The hits with holes labelled, one query for each row of labels; `top` is the grade of relevant items."""
    row = labels.query
    kept = _without_pooled(hits, holes)
    old, hit_start = take_ragged(np.searchsorted(hits.query[kept], np.arange(hits.queries + 1)), row)
    old = kept[old]
    given, gold_start = take_ragged(hits.gold_items.start, row)
    hole, hole_start = take_ragged(holes.start, row)
    own, new = np.diff(gold_start), np.diff(hole_start)
    start = starts(own + new + labels.unretrieved)
    query, copy = group_number(hole_start), group_number(hit_start)
    number = row_number(hole_start)
    relevant = (number >= labels.first[query]) & (number < labels.last[query])
    relevant |= (labels.bits[query] >> np.minimum(number, _MOST_BITS)) & 1 > 0
    grade = np.zeros(int(start[-1]))
    grade[np.repeat(start[:-1] - gold_start[:-1], own) + np.arange(len(given))] = hits.gold_items.grade[given]
    at = start[query] + own[query] + number
    grade[at] = np.where(relevant, top, 0.0)
    more = row_number(starts(labels.unretrieved)) < np.repeat(labels.relevant, labels.unretrieved)
    behind = np.repeat(start[:-1] + own + new, labels.unretrieved) + row_number(starts(labels.unretrieved))
    grade[behind] = np.where(more, top, 0.0)
    nothing = np.zeros(len(hole), bool)
    part = bool_column(hits.part, len(hits))
    gold_items = Gold([], start, grade, hits.gold_items.incomplete)
    if hits.gold_items.aspects is not None:
        aspects = _labelled_aspects(hits, hits.gold_items.aspects, labels, holes)
        gold_items = gold_items._replace(label=[""] * len(grade), aspects=aspects)  # no id decides between equals
    return Hits(
        np.concatenate([copy, query]),
        np.concatenate([hits.rank[old], holes.rank[hole]]),
        np.concatenate([hits.gold[old] - hits.gold_items.start[row][copy] + start[copy], at]),
        depth=hits.depth[row],
        gold_items=gold_items,
        grade=np.concatenate([hits.grade[old], grade[at]]),
        repeated=np.concatenate([hits.repeated[old], nothing]),
        part=None if hits.part is None else np.concatenate([part[old], nothing]),
        totals=_with_text(hits.totals.take(row), query[relevant], holes.rank[hole][relevant]),
    )


def _labelled_aspects(hits: Hits, known: Aspects, labels: Labels, holes: Holes) -> Aspects:
    """The aspects of the gold of each row of labels: items that were unjudged serve every aspect of their query."""
    facets = facets_of(hits)
    name = np.zeros(0, np.int64) if facets is None else facets.name
    begin = starts(np.zeros(hits.queries, np.int64) if facets is None else facets.per_query.astype(np.int64)).tolist()
    start, size, new = hits.gold_items.start.tolist(), np.diff(known.start), holes.sizes.tolist()
    codes, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for query, more in zip(labels.query.tolist(), labels.unretrieved.tolist(), strict=True):
        first, last, unjudged = start[query], start[query + 1], new[query] + more
        own = name[begin[query] : begin[query + 1]]
        codes += [known.code[known.start[first] : known.start[last]], np.tile(own, unjudged)]
        sizes += [size[first:last], np.full(unjudged, len(own))]
    return Aspects(known.name, np.concatenate(codes), starts(np.concatenate(sizes)))


def _without_pooled(hits: Hits, holes: Holes) -> Ints:
    """The rows of hits that a label does not replace: those of holes are pooled, not judged."""
    size = int(hits.rank.max(initial=0)) + 1
    hole = group_number(holes.start) * size + np.minimum(holes.rank, size - 1)
    pooled = (hits.grade < 0).nonzero()[0]
    replaced = pooled[np.isin(hits.query[pooled] * size + hits.rank[pooled], hole[holes.rank < size])]
    return np.delete(np.arange(len(hits)), replaced)


def _with_text(totals: Totals, query: Ints, rank: Ints) -> Totals:
    """The totals if the text that was first read at these ranks were gold."""
    if "covered" not in totals.at_rank:
        return totals
    rows, read = totals.row(query, rank), amounts(totals, "read")
    text = np.zeros(len(read))
    text[rows] = read[rows]
    more: Mapping[str, Floats] = Totals(totals.depth).with_amounts("text", text).at_rank
    at_rank = {name: totals.at_rank[name] + more["text"] for name in ("covered", "gold_read")}
    size = totals.sizes["gold"] + np.bincount(query, read[rows], len(totals.depth))
    return totals._replace(at_rank={**totals.at_rank, **at_rank}).with_sizes({"gold": size})
