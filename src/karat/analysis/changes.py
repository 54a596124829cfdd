"""Two runs of the same task: check that they may be compared, and find the queries whose scores changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat._internal.display import cut_label, cut_name, plural, sanitize
from karat.errors import BadArgument
from karat.hits.combine import ALTERNATIVES
from karat.metrics.names import sign_of
from karat.run import Run
from karat.run.slices import Groups, group_rows

_ALLOW = "allow_mismatch=True, or --allow-mismatch"
_NAMES = ("the first run", "the second run")
_CHOICES_SHOWN = 3
_SHOWN = 40
_MAX_SLICES = 500


def check_comparable(
    a: Run, b: Run, *, allow_mismatch: bool = False, names: tuple[str, str] = _NAMES, hint: str = _ALLOW
) -> list[str]:
    """Refuse runs of different queries, gold, judges or conventions; with `allow_mismatch` return the differences.

    Runs that share no query are always refused.
    """
    names = cut_name(names[0], _SHOWN), cut_name(names[1], _SHOWN)
    if empty := [name for run, name in zip((a, b), names, strict=True) if not len(run)]:
        have = "has" if len(empty) == 1 else "have"
        raise BadArgument(f"{' and '.join(empty)} {have} no queries to compare", hint="runs of the same queries")
    if a.ids != b.ids and set(a.ids).isdisjoint(b.ids):
        raise _nothing_shared(a, b, names)
    differences = [*_settings(a, b, names), *_data(a, b, names)]
    if differences and not allow_mismatch:
        raise BadArgument(
            f"{names[0]} and {names[1]} cannot be compared: {'; '.join(differences)}",
            hint=hint,
        )
    return differences


def _nothing_shared(a: Run, b: Run, names: tuple[str, str]) -> BadArgument:
    """The error with ids of both runs and the likely cause."""
    from karat.samples.id_differences import find_difference

    found, cause, hint = find_difference([(a.ids, b.ids)]), "", "the same query ids in both runs"
    if found is not None:
        found = replace(found, sides=names)
        cause, hint = f": their ids differ by {found.phrase}", found.hint
    got = f"{_some_ids(a)} and {_some_ids(b)}"
    return BadArgument(f"{names[0]} and {names[1]} share no query{cause}", got=got, hint=hint)


def _settings(a: Run, b: Run, names: tuple[str, str]) -> list[str]:
    """Differences of convention, judge and token counter."""
    differences = []

    def add(what: str, ours: str, theirs: str, more: str = "") -> None:
        differences.append(f"their {what} differ: {names[0]} has {ours}, {names[1]} has {theirs}{more}")

    if choices := _choices(a, b):
        add("conventions", a.convention.name, b.convention.name, f" ({choices})")
    if a.provenance.judge != b.provenance.judge:
        add("judges", a.provenance.judge, b.provenance.judge)
    if a.provenance.tokens and b.provenance.tokens and a.provenance.tokens != b.provenance.tokens:
        add("token counters", a.provenance.tokens, b.provenance.tokens)
    return differences


def _choices(a: Run, b: Run) -> str:
    """The choices in which two conventions differ; compared as texts, because NaN is not equal to itself."""
    ours, theirs = a.convention.choices(), b.convention.choices()
    differ = [
        f"{choice}: {ours.get(choice)} / {theirs.get(choice)}"
        for choice in sorted(ours.keys() | theirs.keys())
        if str(ours.get(choice)) != str(theirs.get(choice))
    ]
    more = [f"and {len(differ) - _CHOICES_SHOWN} more"] if len(differ) > _CHOICES_SHOWN else []
    return ", ".join([*differ[:_CHOICES_SHOWN], *more])


def _data(a: Run, b: Run, names: tuple[str, str]) -> list[str]:
    """Differences of queries and gold."""
    if a.gold_hash == b.gold_hash:
        return []
    details = all(run.all_hits.gold_items.detail is not None for run in (a, b))
    details |= any(run.all_hits.gold_items.aspects is not None for run in (a, b))
    ours, theirs = _gold(a, details=details), _gold(b, details=details)
    counts = (len(ours.keys() - theirs.keys()), names[0]), (len(theirs.keys() - ours.keys()), names[1])
    only = [f"{plural(count, 'query', 'queries')} only in {name}" for count, name in counts if count]
    differences = [" and ".join(only)] if only else []
    unknown = a.failures.keys() | b.failures.keys()  # a judge that makes the gold has made none for these
    changed = [query for query in a.ids if query in theirs and ours[query] != theirs[query] and query not in unknown]
    if changed:
        query = changed[0]
        item = next(iter([*(ours[query] - theirs[query]), *(theirs[query] - ours[query])]))
        owner = names[0] if ours[query][item] > theirs[query][item] else names[1]
        place = f", {cut_name(item.detail, _SHOWN)}" if item.detail else ""
        example = f'"{cut_label(item.label, _SHOWN)}" (grade {item.grade:g}{place}) only in {owner}'
        shared = plural(len(changed), "shared query", "shared queries")
        has = "has other groups:" if _regrouped(ours[query], theirs[query]) else "has"
        differences.append(f"their gold differs for {shared}, such as {cut_name(query, _SHOWN)} {has} {example}")
    return [*differences, *_marks(a, b, names), *_texts(a, b)]


def _marks(a: Run, b: Run, names: tuple[str, str]) -> list[str]:
    """Differences of the marks of queries without an answer."""
    ours, theirs = (dict(zip(run.ids, run.unanswerable.tolist(), strict=True)) for run in (a, b))
    changed = [query for query, mark in ours.items() if theirs.get(query, mark) != mark]
    if not changed:
        return []
    owner = names[0] if ours[changed[0]] else names[1]
    shared = plural(len(changed), "shared query", "shared queries")
    return [
        f"their marks of queries without an answer differ for {shared}: {cut_name(changed[0], _SHOWN)} only in {owner}"
    ]


def _texts(a: Run, b: Run) -> list[str]:
    """Differences of the texts of shared queries that have one in both runs."""
    if a.query is None or b.query is None:
        return []
    theirs = dict(zip(b.ids, b.query, strict=True))
    pairs = ((query, text, theirs.get(query)) for query, text in zip(a.ids, a.query, strict=True))
    changed = [(query, text, other) for query, text, other in pairs if None not in (text, other) and text != other]
    if not changed:
        return []
    query, *both = changed[0]
    example = " / ".join(_apart(*(text or "" for text in both)))
    shared = plural(len(changed), "shared query", "shared queries")
    return [f"the query text differs for {shared}, such as {cut_name(query, _SHOWN)}: {example}"]


def _apart(a: str, b: str) -> list[str]:
    """Two texts, cut and quoted; if they look the same, only the place where they differ, with escapes."""
    shown = [f'"{sanitize(text, _SHOWN)}"' for text in (a, b)]
    if normalize("NFKC", shown[0]) != normalize("NFKC", shown[1]):
        return shown
    equal = next((i for i, (ours, theirs) in enumerate(zip(a, b, strict=False)) if ours != theirs), min(len(a), len(b)))
    start = max(equal - _SHOWN // 2, 0)
    parts = [text[start : start + _SHOWN] for text in (a, b)]
    return [("…" if start else "") + ascii(part) for part in parts]


def _regrouped(ours: Counter[_Item], theirs: Counter[_Item]) -> bool:
    """True if both have the same alternatives, in other groups."""
    labels = [sorted(item.label for item in gold.elements()) for gold in (ours, theirs)]
    parts = [sorted(part for label in own for part in label.split(ALTERNATIVES)) for own in labels]
    return labels[0] != labels[1] and parts[0] == parts[1]


class _Item(NamedTuple):
    """A gold item as it is compared."""

    label: str
    grade: float
    detail: str


def _gold(run: Run, *, details: bool) -> dict[str, Counter[_Item]]:
    """The gold items of each query, in any order; details are compared only if both runs have them."""
    gold = run.all_hits.gold_items
    bounds, grades = gold.start.tolist(), gold.grade.tolist()
    detail = gold.full_detail() if details else [""] * len(grades)
    return {
        query: Counter(_Item(gold.label[i], grades[i], detail[i]) for i in range(bounds[row], bounds[row + 1]))
        for row, query in enumerate(run.ids)
    }


def _some_ids(run: Run) -> str:
    return ", ".join(cut_name(query, _SHOWN) for query in run.ids[:2]) + (", …" if len(run) > 2 else "")


def rows_of(run: Run, ids: Iterable[str]) -> Ints:
    """The rows of these queries in a run."""
    wanted = list(ids)
    if run.repeats is None and wanted == run.ids:  # as in nearly every comparison; looking up a million takes seconds
        return np.arange(len(wanted))
    return np.array([run.row(query) for query in wanted], np.int64)


def few_groups(meta: Mapping[str, Sequence[Any]], *fields: str) -> Groups:
    """The rows of each slice, unless the slices are too many to be read."""
    groups = group_rows(meta, *fields)
    if len(groups.rows) > _MAX_SLICES:
        raise BadArgument(f'"{groups.name}" has {len(groups.rows):,} values; expected at most {_MAX_SLICES}')
    return groups


class Move(NamedTuple):
    """A gold item and its rank in both runs; None if it was not retrieved."""

    label: str
    before: int | None
    after: int | None


class QueryChange(NamedTuple):
    """A query with its scores in two runs, and its relevant gold items, those first that moved most."""

    query_id: str
    query: str | None
    metric: str
    before: float
    """NaN without a baseline."""
    after: float
    gold: list[Move]

    @property
    def gain(self) -> float:
        """The change of the score, negative if the query became worse."""
        return sign_of(self.metric) * (self.after - self.before)


def query_change(before: Run | None, after: Run, query_id: str, metric: str) -> QueryChange:
    """The change of one query between two runs, or its score in one."""
    row = after.row(query_id)
    if before is None:
        score, gold = np.nan, [Move(item.gold, None, item.rank) for item in after.gold(query_id) if item.grade > 0]
    else:
        score, gold = float(before.scores[metric][before.row(query_id)]), _moves(before, after, query_id)
    query = None if after.query is None else after.query[row]
    return QueryChange(query_id, query, metric, score, float(after.scores[metric][row]), gold)


def largest_changes(changes: Mapping[str, Floats], metric: str, limit: int) -> list[int]:
    """The rows whose score of a metric changed most; losses and gains of equal size alternate.

    Ties are broken by the sum of the changes in all metrics.
    """
    change = np.nan_to_num(changes[metric]).round(9)  # so that rounding does not decide the order
    total = np.sum([np.abs(np.nan_to_num(values)) for values in changes.values()], axis=0).round(9)
    order = np.lexsort((-total, -np.abs(change)))
    losses, gains = ([int(row) for row in order[side[order]][:limit]] for side in (change < 0, change > 0))
    turns = [(-abs(change[row]), turn, row) for rows in (losses, gains) for turn, row in enumerate(rows)]
    return [row for *_, row in sorted(turns, key=lambda one: one[:2])][:limit]


def _moves(a: Run, b: Run, query_id: str) -> list[Move]:
    """The ranks of the relevant gold items that a query has in both runs, those first that moved most."""
    after = defaultdict(list)
    for item in b.gold(query_id):
        after[item.gold].append(item.rank)
    moves = [
        Move(item.gold, item.rank, after[item.gold].pop(0))
        for item in a.gold(query_id)
        if item.grade > 0 and after[item.gold]
    ]

    def distance(move: Move) -> float:
        """The change of 1 / rank: moves at the top matter most."""
        before, after = (0.0 if rank is None else 1 / rank for rank in (move.before, move.after))
        return abs(before - after)

    return sorted(moves, key=lambda move: -distance(move))
