"""Top items: the best ranks of every ranking with their scores, without sorting a long ranking completely."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from karat._internal.arrays import Floats
from karat._kernel import kernel
from karat.conventions import Convention
from karat.judges import Judge
from karat.judges.matches import identities
from karat.samples import Field, Rankings, Samples
from karat.samples.keys import as_id, without_copies
from karat.samples.rankings.dicts import Dicts
from karat.samples.rankings.score_order import order, precision_of
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
    for a, b in pairwise(rankings.start.tolist()):
        yield _best_of(rankings.item[a:b].to_list(), rankings.scores_in(a, b), c, ranks)


def best_of_dict(rankings: Dicts, query: int, c: Convention, ranks: int) -> tuple[list[Any], list[float]]:
    """The top items of one dict with their scores, by the kernel if it is there and no tie is decided by ids."""
    scored = rankings.dicts[query]
    if (native := kernel()) is not None and (found := native.best_of_dict(scored, ranks, c.scores == "single")):
        best: tuple[list[Any], list[float]] = found
        return best
    return _best_of(list(scored), rankings.scores(query), c, ranks)


def _best_of(names: list[Any], scores: Floats, c: Convention, ranks: int) -> tuple[list[Any], list[float]]:
    """The top items of a ranking by score; items that cannot be among them are not sorted."""
    with np.errstate(over="ignore"):  # a score that is too large for single precision is infinite
        compared = scores.astype(precision_of(c)[1])
    likely = np.arange(len(scores))
    if len(scores) > ranks:
        likely = (compared >= np.partition(compared, len(scores) - ranks)[len(scores) - ranks]).nonzero()[0]
        compared = compared[likely]
    best = likely[compared.argsort()[::-1]].tolist()
    if len(set(compared.tolist())) < len(compared):  # ids decide
        rows = likely.tolist()
        best = [rows[i] for i in order(scores[likely], [as_id(names[i]) for i in rows], c)[:ranks]]
    return [names[i] for i in best], scores[best].tolist()


def items_without_copies(samples: Samples, fields: Sequence[Field], c: Convention, judge: Judge, ranks: int) -> Columns:
    """The top items without the copies that the convention removes."""
    columns = top_items(samples.retrieved, fields, c, sys.maxsize)
    kept = [
        without_copies(list(range(len(names))), names.__getitem__, c.duplicates)[:ranks]
        for names in identities(samples, judge, c)
    ]
    return [[[own[i] for i in rows] for own, rows in zip(column, kept, strict=True)] for column in columns]
