"""Putting parts together: the run that one call over all of their queries would have given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from karat.along import Along
from karat.arrays import Bools, starts
from karat.conventions import Convention
from karat.errors import InputError
from karat.evaluation import provenance_of
from karat.hits import Gold, Hits
from karat.items import Kept
from karat.judges import Judge
from karat.metrics import Metric
from karat.regroup import take
from karat.run import Run
from karat.samples import Reading, Samples
from karat.scale.batch import Partial
from karat.scale.items import join_kept
from karat.scale.notes import join_notes


class Asked(NamedTuple):
    """What every part was asked, and what is known of the data as a whole."""

    metrics: tuple[Metric, ...]
    judge: Judge
    convention: Convention
    reading: Reading
    reason: str = ""
    """Why the judge was taken, if karat chose it."""
    tokens: str = ""
    """Who counted the tokens, if there is a budget of them."""


def join(
    partials: Iterable[Partial],
    asked: Asked,
    *,
    order: Sequence[str] | None = None,
    samples: Samples | None = None,
    kept: Callable[[], Kept | None] | None = None,
) -> Run:
    """The run of all parts; its queries in the order of the parts, or in that of the ids in `order`.

    `samples`, or what `kept` fetches later, are the items of all queries in the order of the run; without either
    they are those that the parts kept.
    """
    parts = list(partials)
    if not parts:
        raise InputError("the data set is empty: there is no part to put together")
    joined = _in_order(_join(parts), order)
    if samples is None and kept is None:
        items = joined.kept
        kept = None if items is None else lambda: items
    about = provenance_of(asked.reading, joined.hits, asked.metrics, asked.judge, asked.reason, asked.convention)
    return Run(
        ids=joined.ids,
        hits=joined.hits,
        metrics=asked.metrics,
        convention=asked.convention,
        scores=joined.scores,
        provenance=about._replace(tokens=asked.tokens),
        query=joined.query,
        meta=joined.meta,
        samples=samples,
        kept=kept,
    )


def _join(parts: Sequence[Partial]) -> Partial:
    """One part in the place of several."""
    ids = list(chain.from_iterable(part.ids for part in parts))
    _check_once(ids)
    hits = join_hits([part.hits for part in parts])
    if len(hits) == 0:
        hits.notes += parts[0].hints
    items = [part.kept for part in parts if part.kept is not None]
    meta = dict.fromkeys(name for part in parts for name in part.meta)
    return Partial(
        ids=ids,
        hits=hits,
        scores={name: np.concatenate([part.scores[name] for part in parts]) for name in parts[0].scores},
        reading=parts[0].reading,
        query=_column([part.query for part in parts], parts),
        meta={name: _column([part.meta.get(name) for part in parts], parts) or () for name in meta},
        kept=join_kept(items) if len(items) == len(parts) else None,
    )


def _in_order(part: Partial, order: Sequence[str] | None) -> Partial:
    """The same with its queries in another order; those that are not in it are left out."""
    if order is None or list(order) == part.ids:
        return part
    place = {query: row for row, query in enumerate(part.ids)}
    rows = [place[query] for query in order]
    index = np.array(rows, np.int64)
    return Partial(
        ids=list(order),
        hits=take(part.hits, index),
        scores={name: values[index] for name, values in part.scores.items()},
        reading=part.reading,
        query=None if part.query is None else [part.query[row] for row in rows],
        meta={name: [column[row] for row in rows] for name, column in part.meta.items()},
        kept=None if part.kept is None else part.kept.take(index),
    )


def join_hits(parts: Sequence[Hits]) -> Hits:
    """The hits of all parts, their queries and gold counted through."""
    first = starts(np.array([part.queries for part in parts], np.int64)).tolist()
    gold = starts(np.array([len(part.of.grade) for part in parts], np.int64)).tolist()
    whole = all(part.part is None for part in parts)
    return Hits(
        np.concatenate([part.query + at for part, at in zip(parts, first, strict=False)]),
        np.concatenate([part.rank for part in parts]),
        np.concatenate([part.gold + at for part, at in zip(parts, gold, strict=False)]),
        depth=np.concatenate([part.depth for part in parts]),
        of=Gold(
            list(chain.from_iterable(part.of.label for part in parts)),
            starts(np.concatenate([np.diff(part.of.start) for part in parts])),
            np.concatenate([part.of.grade for part in parts]),
            open=any(part.of.open for part in parts),
        ),
        grade=np.concatenate([part.grade for part in parts]),
        repeated=np.concatenate([part.repeated for part in parts]),
        part=None if whole else np.concatenate([_parts_of(part) for part in parts]),
        why=_why(parts),
        along=_join_along([part.along for part in parts]),
        notes=join_notes([part.notes for part in parts], gold=gold[-1], hits=sum(map(len, parts))),
        failed={query + at: why for part, at in zip(parts, first, strict=False) for query, why in part.failed.items()},
    )


def _join_along(parts: Sequence[Along]) -> Along:
    names = dict.fromkeys(name for part in parts for name in part.totals)
    sizes = dict.fromkeys(name for part in parts for name in part.sizes)
    return Along(
        np.concatenate([part.depth for part in parts]),
        {name: np.concatenate([part.totals[name] for part in parts]) for name in names},
        {name: np.concatenate([part.sizes[name] for part in parts]) for name in sizes},
    )


def _parts_of(hits: Hits) -> Bools:
    return np.zeros(len(hits), bool) if hits.part is None else hits.part


def _why(parts: Sequence[Hits]) -> str | list[str]:
    """One reason for all, or one for each hit."""
    different = {part.why for part in parts if isinstance(part.why, str)}
    if len(different) == 1 and all(isinstance(part.why, str) for part in parts):
        return different.pop()
    return [why for part in parts for why in ([part.why] * len(part) if isinstance(part.why, str) else part.why)]


def _column(columns: Sequence[Sequence[Any] | None], parts: Sequence[Partial]) -> list[Any] | None:
    """A column of all parts; None where a part lacks it, or for all of it if every part does."""
    if all(column is None for column in columns):
        return None
    pairs = zip(columns, parts, strict=True)
    return [value for column, part in pairs for value in ([None] * len(part.ids) if column is None else column)]


def _check_once(ids: Sequence[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    twice = next(query for query in ids if query in seen or seen.add(query))  # type: ignore[func-returns-value]
    raise InputError(f'two parts have the same query "{twice}"', hint="each query is evaluated in one part, whole")
