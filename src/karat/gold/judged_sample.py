"""A random sample of the judgements of a run for people to check, and their labels in the form of `karat calibrate`.

The sample consists of whole queries, because a corrected mean needs all judgements of a query; the query is the unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

import numpy as np

from karat.errors import BadArgument
from karat.gold.pool import Pool
from karat.gold.pool_items import Entry, PoolItem, PoolQuery
from karat.run import Run
from karat.run.file import as_run
from karat.run.item_keys import item_name
from karat.run.repeats import one_row_each
from karat.samples.notes import Note
from karat.stats import MIN_QUERIES


def sample_of(run: Run | str | PathLike[str], size: int = 50, *, seed: int = 0, depth: int = 10) -> Pool:
    """Draw queries of a judged run at random until they have enough judgements, and pool all of these.

    Args:
        run: a judged run, or the path of its file.
        size: the number of judgements; whole queries are drawn until there are at least so many, and at least 5
            queries.
        seed: the seed of the draw: the same seed draws the same queries.
        depth: the number of ranks of each query.

    Returns:
        A `Pool` of one run. No item is judged; `model` is the grade that the judge of the run gave.
    """
    for name, value in (("size", size), ("depth", depth)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BadArgument(f"{name} must be a whole number from 1 on", got=value, hint=f"{name}=50")
    judged = one_row_each(as_run(run), "a sample of judgements")
    if judged.stored_items is None:
        raise BadArgument(
            f"{judged.name} stores no items, so nobody can check them", hint="karat eval … -o run.parquet"
        )
    queries: list[PoolQuery] = []
    drawn = 0
    for row in np.random.default_rng(seed).permutation(len(judged)).tolist():
        if drawn >= size and len(queries) >= MIN_QUERIES:
            break
        items = [] if row in judged.all_hits.failed else list(_judgements(judged, row, depth))
        if items:
            text = None if judged.query is None else judged.query[row]
            queries.append(PoolQuery(judged.ids[row], text, items))
            drawn += len(items)
    if not queries:
        raise BadArgument(f"{judged.name} has no judgement that people could check", got="no query with items")
    note = Note("pool_sample", drawn, len(judged), details={"queries": len(queries), "seed": seed})
    return Pool(queries, [judged.name], depth, [], (note,))


def _judgements(run: Run, row: int, depth: int) -> Iterator[PoolItem]:
    """The items of a query, one per rank; copies that the judge graded once are one item."""
    hits, stored = run.all_hits, run.stored_items
    assert stored is not None
    first, last = np.searchsorted(hits.query, (row, row + 1)).tolist()
    grades: dict[int, float] = {}
    gold: dict[int, int] = {}
    for i in range(first, last):
        rank = int(hits.rank[i])
        grades[rank] = max(grades.get(rank, 0.0), float(hits.grade[i]))
        gold.setdefault(rank, int(hits.gold[i]))
    seen: set[int] = set()
    names: set[str] = set()
    for one in stored.items(row).retrieved[:depth]:
        if hits.gold_items.incomplete:
            if one.rank not in gold or gold[one.rank] in seen:
                continue
            seen.add(gold[one.rank])
        cells = (one.id, one.text, one.doc, one.start, one.end)
        name = item_name(cells, one.length)
        name = f"{name}@{one.rank}" if name in names else name
        names.add(name)
        entry = Entry(name, cells, one.length, 1)
        entry.add_rank(0, one.rank)
        entry.model = grades.get(one.rank, 0.0)
        yield entry.item()


def calibration_rows(sample: Pool, grades: Mapping[tuple[str, str], float], *, rel: float = 1) -> list[dict[str, Any]]:
    """The labels of a sample as `karat.calibrate` reads them.

    Args:
        sample: the pool from `sample_of`.
        grades: the grades that a person gave, by query id and key of the item. Items without one have no row.
        rel: the lowest grade that is relevant.

    Returns:
        One row per label: `query_id`, `rank`, `label` (1 or 0), and the text of the item, for people to read.
    """
    return [
        {
            "query_id": query.id,
            "rank": item.ranks[0],
            "label": int(grades[query.id, item.key] >= rel),
            "text": item.text,
        }
        for query in sample.queries
        for item in query.items
        if (query.id, item.key) in grades
    ]
