"""Numbers per query that some metrics need besides hits: the different items retrieved, the items cited.

A metric names them in `@metric(sizes=…)`. They are counted only then, once for all metrics, and stored with the hits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from math import nan
from typing import Any, TypeAlias

import numpy as np

from karat._internal.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument, InputError
from karat.hits import Hits
from karat.judges.ids import Exact, Ids
from karat.judges.matches import as_texts, identities
from karat.judges.protocol import Judge
from karat.samples import Field, Samples
from karat.samples.keys import as_id, short_id, without_copies
from karat.samples.notes import Note, Tally
from karat.samples.rankings.dicts import Dicts

Sizes: TypeAlias = tuple[dict[str, Floats], tuple[Note, ...]]
"""Numbers per query by name, and what should be known about them."""


def count_sizes(names: Iterable[str], samples: Samples, hits: Hits, judge: Judge, c: Convention) -> Sizes:
    """All numbers that metrics need."""
    sizes: dict[str, Floats] = {}
    notes: tuple[Note, ...] = ()
    for name in names:
        if name not in _COUNT:
            raise BadArgument(f'a metric needs unknown sizes "{name}"', hint=" or ".join(f'"{own}"' for own in _COUNT))
        more, own_notes = _COUNT[name](samples, hits, judge, c)
        sizes |= more
        notes += own_notes
    return sizes, notes


def check_cited(samples: Samples) -> None:
    """Refuse samples without any `cited`."""
    if samples.cited is None or all(own is None for own in samples.cited):
        raise nothing_cited()


def nothing_cited() -> InputError:
    """The error for citation metrics of samples that do not say what was cited."""
    problem = 'citation metrics need to know what the answers cite, but no sample has "cited"'
    return InputError(problem, hint='"cited": ["doc-4"] in each sample, [] if nothing is cited')


def first_occurrences(samples: Samples, hits: Hits, judge: Judge, c: Convention) -> Floats:
    """For every retrieved item, best first: 1 if it is not a copy of one ranked higher, else 0."""
    first: list[bool] = []
    for names in counted_items(samples, hits, judge, _names(samples, judge, c), c):
        seen: set[object] = set()
        first += [not (name in seen or seen.add(name)) for name in names]  # type: ignore[func-returns-value]
    return np.array(first, float)


def counted_items(
    samples: Samples, hits: Hits, judge: Judge, columns: Iterable[Sequence[Any]], c: Convention
) -> Iterator[Sequence[Any]]:
    """A column of every ranking without the copies that the convention removes."""
    names = identities(samples, judge, c) if c.duplicates != "once" else repeat(None)
    for depth, column, own in zip(hits.depth.tolist(), columns, names, strict=False):
        pairs: list[tuple[object, Any]] = list(zip(range(len(column)) if own is None else own, column, strict=True))
        kept = [value for _, value in without_copies(pairs, lambda pair: pair[0], c.duplicates)]
        if len(kept) != depth:
            raise BadArgument(f'judge "{judge.name}" counts other items than were retrieved: a budget is impossible')
        yield kept


def _different(samples: Samples, hits: Hits, judge: Judge, c: Convention) -> Sizes:
    """The number of different items of each ranking; there are copies only if the convention keeps them."""
    if c.duplicates != "once" or isinstance(samples.retrieved, Dicts):
        return {"different": hits.depth.astype(float)}, ()
    return {"different": np.array([len(set(own)) for own in _names(samples, judge, c)], float)}, ()


def _names(samples: Samples, judge: Judge, c: Convention) -> Iterator[Sequence[object]]:
    """The identity of each retrieved item, query by query, without a tuple for every item if one field says it."""
    if isinstance(judge, Ids | Exact):
        return (as_texts(own) for own in samples.retrieved.each(judge.field, c))
    return identities(samples, judge, c)


def _cited(samples: Samples, hits: Hits, judge: Judge, c: Convention) -> Sizes:
    """The different ids that each answer cites, those that are relevant, and the gold items among them.

    The first is NaN if a sample does not say what was cited. The others differ if a gold item has alternatives.
    """
    lists: Sequence[Sequence[str] | None] = samples.cited or [None] * len(samples)
    field: Field = "doc" if judge.compares == "doc" else "id"
    unit = hits.gold_items.unit
    other_gold = judge.makes_gold or len(hits.gold_items.grade if unit is None else unit) != len(samples.gold.grade)
    if other_gold or not {field, "id"} & samples.gold.all_fields:
        problem = f'citations are compared with the ids of gold items, but judge "{judge.name}" has gold without ids'
        raise InputError(problem, hint='{"id": …} in every gold item')
    each = samples.gold.keys(field).each()
    start = samples.gold.start.tolist()
    counts = []
    for query, (own, keys) in enumerate(zip(lists, each, strict=True)):
        known: dict[str, set[int]] = {}
        for number, key in enumerate(keys, start[query]):
            gold = number if unit is None else int(unit[number])
            if samples.gold.grade[number] > 0:
                known.setdefault(as_id(key), set()).add(gold)
        good = [known[one] for one in set(own or ()) if one in known]
        counts.append((nan if own is None else len(set(own)), len(good), len(set().union(*good))))
    cited, relevant, gold_items = np.array(counts, float).reshape(-1, 3).T
    sizes = {"cited": cited, "cited_relevant": relevant, "cited_gold": gold_items}
    return sizes, _not_retrieved(samples, lists, field, c)


def _not_retrieved(
    samples: Samples, lists: Sequence[Sequence[str] | None], field: Field, c: Convention
) -> tuple[Note, ...]:
    """A note on cited ids that were not retrieved for their query: how many of all, also if none."""
    if field not in samples.retrieved.any_fields:
        return ()
    tally, total = Tally(), 0
    for query, own, items in zip(samples.ids, lists, samples.retrieved.each(field, c), strict=True):
        if own:
            there = {as_id(item) for item in items if item is not None}
            total += len(set(own))
            for one in dict.fromkeys(own):
                if one not in there:
                    tally.add(f'"{short_id(one)}" in query "{short_id(query)}"')
    return (Note("cited_not_retrieved", tally.count, total, tuple(tally.examples)),) if total else ()


_COUNT: dict[str, Callable[[Samples, Hits, Judge, Convention], Sizes]] = {"different": _different, "cited": _cited}
