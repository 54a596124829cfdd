"""Top items: the best ranks of every ranking with their scores, without sorting a long ranking completely."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, starts
from karat._kernel import kernel
from karat.conventions import Convention
from karat.judges import Judge
from karat.judges.matches import identities
from karat.samples import Field, Rankings, Samples
from karat.samples.keys import as_id, without_copies
from karat.samples.rankings.dicts import Dicts
from karat.samples.rankings.score_order import ScoreArray, as_rows, blocks, order, precision_of
from karat.samples.rankings.table import Table

Columns = list[list[Sequence[Any]]]
"""The fields of all rankings, best first, one list per query; last the scores, if there are any."""


def top_items(rankings: Rankings, fields: Sequence[Field], c: Convention, ranks: int) -> Columns:
    """The top items of each ranking; long rankings by score are not sorted completely."""
    if isinstance(rankings, Dicts) or (isinstance(rankings, Table) and rankings.scores is not None):
        with np.errstate(over="ignore"):  # a score that is too large for single precision is infinite
            items, scores = zip(*_by_score(rankings, c, ranks), strict=True)
        return [*repeat(list(items), len(fields)), list(scores)]
    columns: list[Iterator[Sequence[Any]]] = [rankings.each(field, c) for field in fields]
    in_order = rankings.sorted_scores(c)
    columns += [] if in_order is None else [in_order]
    return [[own[:ranks] for own in column] for column in columns]


def _by_score(rankings: Dicts | Table, c: Convention, ranks: int) -> Iterator[tuple[list[Any], list[float]]]:
    if isinstance(rankings, Dicts):
        yield from (best_of_dict(rankings, query, c, ranks) for query in range(len(rankings)))
        return
    assert rankings.scores is not None
    depth = np.diff(rankings.start)
    every = np.concatenate([np.zeros(0, np.int64), *_best_of_table(rankings, depth, c, ranks)])
    items, scores = rankings.item.gather(every).to_list(), rankings.scores.gather(every).to_list()
    for begin, end in pairwise(starts(np.minimum(depth, ranks)).tolist()):
        yield items[begin:end], scores[begin:end]


def _best_of_table(rankings: Table, depth: Ints, c: Convention, ranks: int) -> Iterator[Ints]:
    """The rows of the top items, for many rankings at once; those with ties are looked at one by one."""
    start = rankings.start
    for first, last in blocks(depth):
        flat = rankings.scores_in(start[first], start[last]).astype(precision_of(c)[1])
        for begin, matrix in as_rows(flat, depth[first:last], first):
            own = slice(begin, begin + len(matrix))
            looked_at = min(ranks + 1, matrix.shape[1])  # one more shows a tie at the end
            place, tied = _greatest(matrix, looked_at, depth[own])
            rows = start[own, None] + place[:, :ranks]
            for i in tied.nonzero()[0].tolist():
                a, b = start[begin + i : begin + i + 2].tolist()
                best = a + _best_rows(rankings.scores_in(a, b), rankings.item[a:b].gather, c, ranks)
                rows[i, : len(best)] = best
            yield rows[np.arange(rows.shape[1]) < depth[own, None]]


def _greatest(matrix: ScoreArray, size: int, depth: Ints) -> tuple[Ints, Bools]:
    """The places of the greatest scores in each row, the greatest first, and true if two of them are equal."""
    if size == 0:
        return np.zeros((len(matrix), 0), np.int64), np.zeros(len(matrix), bool)
    last = matrix.shape[1] - size
    place = np.argpartition(matrix, last, axis=1)[:, last:]
    best = np.take_along_axis(matrix, place, 1)
    by_score = best.argsort(axis=1)[:, ::-1]
    best = np.take_along_axis(best, by_score, 1)
    equal = (best[:, 1:] == best[:, :-1]) & (np.arange(1, size) <= depth[:, None])  # the padding may equal a score
    return np.take_along_axis(place, by_score, 1), equal.any(axis=1)


def best_of_dict(rankings: Dicts, query: int, c: Convention, ranks: int) -> tuple[list[Any], list[float]]:
    """The top items of one dict with their scores, by the kernel if it is there and no tie is decided by ids."""
    scored = rankings.dicts[query]
    if (native := kernel()) is not None and (found := native.best_of_dict(scored, ranks, c.scores == "single")):
        best: tuple[list[Any], list[float]] = found
        return best
    names, scores = list(scored), rankings.scores(query)
    rows = _best_rows(scores, lambda some: [names[i] for i in some.tolist()], c, ranks)
    return [names[i] for i in rows.tolist()], scores[rows].tolist()


def _best_rows(scores: Floats, names: Callable[[Ints], Iterable[Any]], c: Convention, ranks: int) -> Ints:
    """The rows of a ranking with the greatest scores, best first; rows that cannot be among them are not sorted."""
    with np.errstate(over="ignore"):  # a score that is too large for single precision is infinite
        compared = scores.astype(precision_of(c)[1])
    likely = np.arange(len(scores))
    if len(scores) > ranks:
        likely = (compared >= np.partition(compared, len(scores) - ranks)[len(scores) - ranks]).nonzero()[0]
        compared = compared[likely]
    best: Ints = likely[compared.argsort()[::-1]]
    if len(set(compared.tolist())) < len(compared):  # ids decide
        best = likely[order(scores[likely], list(map(as_id, names(likely))), c)[:ranks]]
    return best


def items_without_copies(samples: Samples, fields: Sequence[Field], c: Convention, judge: Judge, ranks: int) -> Columns:
    """The top items without the copies that the convention removes."""
    columns = top_items(samples.retrieved, fields, c, sys.maxsize)
    kept = [
        without_copies(list(range(len(names))), names.__getitem__, c.duplicates)[:ranks]
        for names in identities(samples, judge, c)
    ]
    return [[[own[i] for i in rows] for own, rows in zip(column, kept, strict=True)] for column in columns]
