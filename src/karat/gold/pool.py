"""Pool the items that several runs retrieved: every different item within some rank, and what is known about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.result import Result
from karat.analysis.compare import run_names
from karat.analysis.overlap.ranked_lists import ResultsLike
from karat.errors import BadArgument
from karat.gold.known_gold import KnownGold, gold_files, read_gold_source
from karat.gold.pool_items import Gathering, PoolItem, PoolQuery
from karat.gold.pool_sources import read_source
from karat.samples.field_map import Fields
from karat.samples.loading import Selection
from karat.samples.notes import Note

__all__ = ["Pool", "PoolItem", "PoolQuery", "RunShare", "holes_of", "pool"]


class RunShare(NamedTuple):
    """The part of a pool that one run retrieved."""

    name: str
    queries: int
    """The number of queries for which it retrieved something."""
    items: int
    alone: int
    """The number of items that no other run retrieved."""
    unjudged: int
    """The number of its items that are not judged: the holes."""


@dataclass(repr=False, eq=False)
class Pool(Result):
    """The result of `karat.pool`."""

    queries: list[PoolQuery]
    """The queries that have items."""
    runs: list[str]
    """The names of the runs."""
    depth: int
    known: list[KnownGold]
    """All gold that was known before, also of items that no run retrieved; it is written with the new gold."""
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def size(self) -> int:
        """The number of items."""
        return sum(len(query.items) for query in self.queries)

    @cached_property
    def judged(self) -> int:
        """The number of items that are judged already."""
        return sum(item.judged is not None for query in self.queries for item in query.items)

    @cached_property
    def ranks(self) -> Ints:
        """The rank of each item in each run, one row per item; 0 if the run did not retrieve it."""
        rows = [[rank or 0 for rank in item.ranks] for query in self.queries for item in query.items]
        return np.array(rows, np.int64).reshape(-1, len(self.runs))

    @cached_property
    def shares(self) -> list[RunShare]:
        """The part of the pool that each run retrieved."""
        found = self.ranks > 0
        query = np.repeat(np.arange(len(self)), [len(one.items) for one in self.queries])
        open_ = np.array([item.judged is None for one in self.queries for item in one.items], bool)
        alone = found.sum(axis=1) == 1
        return [
            RunShare(
                name,
                len(np.unique(query[own])),
                int(own.sum()),
                int((own & alone).sum()),
                int((own & open_).sum()),
            )
            for name, own in zip(self.runs, found.T, strict=True)
        ]

    def holes(self) -> Pool:
        """The pool of the items that are not judged."""
        left = [one._replace(items=[item for item in one.items if item.judged is None]) for one in self.queries]
        return replace(self, queries=[one for one in left if one.items])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the pool to one Parquet file; `karat.gold.pool_file.read_pool` reads it.

        Args:
            path: the file, such as "pool.parquet". An existing file is replaced only after the new one is complete.
        """
        from karat.gold.pool_file import save_pool

        save_pool(self, path)

    def remarks(self) -> list[str]:
        """One sentence per note: what is missing, and how items and gold were matched."""
        return list(self._render("remarks"))


def pool(
    runs: Sequence[ResultsLike],
    *,
    depth: int = 10,
    gold: Any = None,
    names: Sequence[str] | None = None,
    fields: Fields = None,
) -> Pool:
    """Pool what several runs retrieved: every different item within the top ranks of any of them, for labelling.

    Args:
        runs: run files, runs, TREC runs, or samples with "retrieved"; gold is not needed.
        depth: the number of ranks of each run that are pooled.
        gold: gold that is known already, in any form that karat reads, or a list of such files. What it judges is
            not asked again. The gold of the runs and samples themselves is known, too.
        names: one name per run; default: the names of the files, or letters.
        fields: your column names, by karat's, as for `karat.evaluate`.

    Returns:
        A `Pool`: `queries` (each with its `items`, with their `ranks` in the runs and the grade that is known,
        `judged`), `shares` (the items of each run), `holes()` (the items that are not judged), `save("pool.parquet")`.

    Example:
        >>> found = karat.pool([{"q1": ["a", "b"]}, {"q1": ["b", "c"]}], gold={"q1": ["b"]})
        >>> [(item.id, item.ranks, item.judged) for item in found.queries[0].items]
        [('a', (1, None), None), ('b', (2, 1), 1.0), ('c', (None, 2), None)]
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise BadArgument("depth must be a whole number from 1 on", got=depth, hint="depth=10")
    if isinstance(runs, str | PathLike) or not isinstance(runs, Sequence) or not runs:
        raise BadArgument("expected a list of runs", got=runs, hint='["bm25.jsonl", "dense.jsonl"]')
    selection = Selection(fields)
    labels = run_names(runs, names)
    sources = [read_source(one, name, depth, selection) for one, name in zip(runs, labels, strict=True)]
    files = [read_gold_source(one, name, selection) for one, name in gold_files(gold)]
    selection.check()
    gathered = Gathering(sources)
    gathered.judge(files)
    queries = gathered.queries()
    return Pool(queries, labels, depth, list(gathered.known.values()), gathered.notes(queries))


def holes_of(run: ResultsLike, gold: Any, *, depth: int = 10) -> Pool:
    """The items of a new run that are not judged, with the gold that is known.

    Args:
        run: a run, the path of a run file, or results in any form that karat reads.
        gold: the gold, in any form that karat reads.
        depth: the number of ranks that are looked at.
    """
    return pool([run], depth=depth, gold=gold).holes()
