"""May two runs be compared? Only if they had the same task: queries, gold, judge and convention."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.display import plural, sanitize
from karat.errors import BadArgument
from karat.run import Run

_NAMES = ("the first run", "the second run")
_CHOICES_SHOWN = 3
_SHOWN = 40


def check_comparable(a: Run, b: Run, allow: bool = False, names: tuple[str, str] = _NAMES) -> list[str]:  # noqa: FBT001, FBT002
    """Refuse runs of different tasks and name every difference; with `allow` return them instead.

    Runs that share no query are refused in any case.
    """
    names = sanitize(names[0], _SHOWN), sanitize(names[1], _SHOWN)
    found = [*_settings(a, b, names), *_data(a, b, names)]
    shared = len(set(a.ids) & set(b.ids))
    if not shared:
        raise BadArgument(
            f"{names[0]} and {names[1]} share no query",
            got=f"{_ids(a)} and {_ids(b)}",
            hint="check how the ids of the queries were written",
        )
    if found and not allow:
        over = plural(shared, "query", "queries")
        raise BadArgument(
            f"{names[0]} and {names[1]} cannot be compared: {'; '.join(found)}",
            hint=f"allow=True, or --allow, to compare them over the {over} that both have",
        )
    return found


def _settings(a: Run, b: Run, names: tuple[str, str]) -> list[str]:
    """How the two were judged and measured differently."""
    found = []
    if differing := _choices(a, b):
        named = f"{names[0]} has {a.convention.name}, {names[1]} has {b.convention.name}"
        found.append(f"their conventions differ: {named} ({differing})")
    if a.provenance.judge != b.provenance.judge:
        named = f"{names[0]} has {a.provenance.judge}, {names[1]} has {b.provenance.judge}"
        found.append(f"their judges differ: {named}")
    counters = a.provenance.tokens, b.provenance.tokens
    if all(counters) and counters[0] != counters[1]:
        found.append(f"their tokens were counted differently: by {counters[0]} and by {counters[1]}")
    return found


def _choices(a: Run, b: Run) -> str:
    """The choices in which two conventions differ; by their texts, for NaN is not equal to itself."""
    ours, theirs = a.convention.choices(), b.convention.choices()
    differ = [
        f"{choice}: {ours.get(choice)} / {theirs.get(choice)}"
        for choice in sorted(ours.keys() | theirs.keys())
        if str(ours.get(choice)) != str(theirs.get(choice))
    ]
    more = [f"and {len(differ) - _CHOICES_SHOWN} more"] if len(differ) > _CHOICES_SHOWN else []
    return ", ".join([*differ[:_CHOICES_SHOWN], *more])


def _data(a: Run, b: Run, names: tuple[str, str]) -> list[str]:
    """What the two were asked differently."""
    if a.gold_hash == b.gold_hash:
        return []
    ours, theirs = _gold(a), _gold(b)
    found = []
    alone = [len(ours.keys() - theirs.keys()), len(theirs.keys() - ours.keys())]
    if any(alone):
        only = [f"{plural(count, 'query', 'queries')} only in {name}" for count, name in zip(alone, names, strict=True)]
        found.append(" and ".join(text for text, count in zip(only, alone, strict=True) if count))
    changed = [query for query in a.ids if query in theirs and ours[query] != theirs[query]]
    if changed:
        query = changed[0]
        items = [*(ours[query] - theirs[query]), *(theirs[query] - ours[query])]
        label, grade = items[0]
        whose = names[0] if ours[query][items[0]] > theirs[query][items[0]] else names[1]
        example = f'{sanitize(query, _SHOWN)} has "{sanitize(label, _SHOWN)}" (grade {grade:g}) only in {whose}'
        noun = plural(len(changed), "query that both have", "queries that both have")
        found.append(f"their gold differs for {noun}, such as {example}")
    return found


def _gold(run: Run) -> dict[str, Counter[tuple[str, float]]]:
    """Each query's gold items with their grades, in whatever order they stand."""
    of = run.all_hits.gold_items
    bounds, grades = of.start.tolist(), of.grade.tolist()
    return {
        query: Counter((of.label[i], grades[i]) for i in range(bounds[row], bounds[row + 1]))
        for row, query in enumerate(run.ids)
    }


def _ids(run: Run) -> str:
    return ", ".join(sanitize(query, _SHOWN) for query in run.ids[:2]) + (", …" if len(run) > 2 else "")


class Move(NamedTuple):
    """A gold item, and its rank in both runs; None where it was not retrieved."""

    label: str
    before: int | None
    after: int | None


class Moved(NamedTuple):
    """A query whose score changed, and its relevant gold items, those first that moved."""

    query_id: str
    query: str | None
    metric: str
    before: float
    after: float
    gold: list[Move]


def most_moved(changes: Mapping[str, Floats], metric: str, limit: int) -> list[int]:
    """The rows whose score of this metric changed most; losses and gains of the same size take turns.

    Among equal ones those come first that moved more in all metrics together.
    """
    change = np.nan_to_num(changes[metric]).round(9)  # so that the last digits put nothing in order
    together = np.sum([np.abs(np.nan_to_num(values)) for values in changes.values()], axis=0).round(9)
    order = np.lexsort((-together, -np.abs(change)))
    losses, gains = ([int(row) for row in order[side[order]][:limit]] for side in (change < 0, change > 0))
    turns = [(-abs(change[row]), turn, row) for rows in (losses, gains) for turn, row in enumerate(rows)]
    return [row for *_, row in sorted(turns, key=lambda one: one[:2])][:limit]


def moves(a: Run, b: Run, query_id: str) -> list[Move]:
    """Where the relevant gold items that a query has in both runs stand in each: those that moved most come first."""
    after = defaultdict(list)
    for item in b.gold(query_id):
        after[item.gold].append(item.rank)
    every = [
        Move(item.gold, item.rank, after[item.gold].pop(0))
        for item in a.gold(query_id)
        if item.grade > 0 and after[item.gold]
    ]
    return sorted(every, key=_still)


def _still(move: Move) -> float:
    """The less it moved the larger, measured in 1 / rank: what happens at the top is what is read."""
    before, after = (0.0 if rank is None else 1 / rank for rank in (move.before, move.after))
    return -abs(before - after)
