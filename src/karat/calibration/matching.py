"""Labels set beside a run: which of its judgements each label is of, and what the judge said there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from karat.arrays import Bools, Floats, Ints
from karat.calibration.labels import Kind, Labels
from karat.errors import InputError
from karat.hits import Hits
from karat.run import Run
from karat.tables import many, storable

_NOWHERE = -1


class Matched(NamedTuple):
    """Labels of judgements that the run has, each once."""

    kind: Kind
    row: Ints
    """The query."""
    gold: Ints
    """The gold item, counted through all queries; -1 where the label is of a rank alone."""
    rank: Ints
    """The rank; 0 where the label is of a gold item alone."""
    value: Floats
    looked: Ints
    """How many ranks of each query of the run people have looked at."""
    notes: list[str]
    """What became of the labels that are not here."""


def match(run: Run, labels: Labels, seen: int | None = None) -> Matched:
    """Find the judgement of each label; a judgement that has two different labels is refused.

    People have looked at everything that was retrieved, unless they have `seen` only the top.
    """
    find = _finder(run, labels)
    found: dict[tuple[int, int, int], float] = {}
    lost = dict.fromkeys(("query", "item", "failed", "again"), 0)
    for place, (query, value) in enumerate(zip(labels.query, labels.value, strict=True)):
        row = find.rows.get(query)
        if row is None or row in run.all_hits.failed:
            lost["query" if row is None else "failed"] += 1
            continue
        keys = find.keys(row, place)
        lost["item"] += not keys
        lost["again"] += any(key in found for key in keys)
        for key in keys:
            if found.setdefault(key, value) != value:
                raise InputError(
                    f"{labels.source}: {find.told(key)} has two labels that differ",
                    got=(found[key], value),
                    hint="one label for each, such as the majority of several people",
                )
    if not found:
        raise _nothing(run, labels, lost, find.rows)
    row, gold, rank = np.array(list(found), np.int64).T
    values, depth = np.array(list(found.values())), run.all_hits.depth
    impossible = (values > 0) & (depth[row] == 0)
    if labels.kind != "score" and impossible.any():
        query = run.ids[int(row[impossible][0])]
        raise InputError(f'{labels.source}: a label says yes, but nothing was retrieved for the query "{query}"')
    looked = depth if seen is None or run.all_hits.of.open else np.minimum(depth, seen)
    return Matched(find.kind, row, gold, rank, values, looked, [*find.notes, *_told(lost, labels)])


class _Finder:
    """Where the judgements of a run are."""

    def __init__(self, run: Run, labels: Labels) -> None:
        hits = run.all_hits
        self.rows = {query: row for row, query in enumerate(storable(run.ids))} | {q: r for r, q in enumerate(run.ids)}
        self.notes: list[str] = []
        self._run, self._hits, self._labels = run, hits, labels
        self._number = labels.number
        # Where the judge makes gold of what was retrieved, an item and its gold are one.
        self.kind: Kind = "gold" if hits.of.open and labels.kind in ("rank", "pair") else labels.kind

    def keys(self, row: int, place: int) -> list[tuple[int, int, int]]:
        """The judgements of a label; several if gold items have the same name."""
        labels, hits = self._labels, self._hits
        rank = 0 if labels.rank is None else labels.rank[place]
        if labels.kind == "score":
            return [(row, _NOWHERE, 0)]
        if rank > hits.depth[row]:
            return []
        if labels.kind == "rank" and not hits.of.open:
            return [(row, _NOWHERE, rank)]
        gold = self._at_rank(row, rank) if labels.kind == "rank" else self._gold(row, place)
        return [(row, item, rank if self.kind == "pair" else 0) for item in gold]

    def _gold(self, row: int, place: int) -> list[int]:
        first, last = (int(end) for end in self._hits.of.start[row : row + 2])
        if self._number is not None:
            return [first + self._number[place]] if first + self._number[place] < last else []
        assert self._labels.gold is not None
        wanted = _folded(self._labels.gold[place])
        return [item for item in range(first, last) if _folded(self._hits.of.label[item]) == wanted]

    def _at_rank(self, row: int, rank: int) -> list[int]:
        hits = self._hits
        first, last = np.searchsorted(hits.query, (row, row + 1)).tolist()
        return [int(hits.gold[i]) for i in range(first, last) if hits.rank[i] == rank]

    def told(self, key: tuple[int, int, int]) -> str:
        """A judgement in words."""
        row, gold, rank = key
        parts = [f'query "{self._run.ids[row]}"']
        parts += [f"rank {rank}"] if rank else []
        parts += [f'gold item "{self._hits.of.label[gold][:60]}"'] if gold != _NOWHERE else []
        return ", ".join(parts)

    def by_number(self) -> None:
        """Take what names no gold item for its number."""
        assert self._labels.gold is not None
        self._number = [int(text) for text in self._labels.gold]
        self.notes.append(f'Column "{self._labels.columns["gold"]}" was taken for numbers of gold items, from 0.')


def _finder(run: Run, labels: Labels) -> _Finder:
    """Gold items go by their names; if none has such a name and all are whole numbers, by their numbers."""
    find = _Finder(run, labels)
    if labels.gold is None or not all(text.isascii() and text.isdecimal() for text in labels.gold):
        return find
    named = (find.rows.get(query) for query in labels.query)
    if not any(row is not None and find._gold(row, place) for place, row in enumerate(named)):  # noqa: SLF001
        find.by_number()
    return find


def _folded(text: str) -> str:
    return " ".join(text.split())


def _nothing(run: Run, labels: Labels, lost: dict[str, int], rows: dict[str, int]) -> InputError:
    """The error for labels of which not one can be used."""
    if lost["failed"]:
        return InputError(f"{labels.source}: no label is of the run, but for queries that could not be judged")
    if lost["query"] == len(labels.query):
        theirs, ours = (", ".join(f'"{query[:40]}"' for query in ids[:3]) for ids in (labels.query, run.ids))
        return InputError(f"{labels.source}: no label is of a query of the run", got=theirs, hint=f"ids such as {ours}")
    row = next(rows[query] for query in labels.query if query in rows)
    items = [item.gold[:40] for item in run.gold(run.ids[row])][:3]
    have = f"{int(run.all_hits.depth[row])} ranks, gold items {items}"
    return InputError(f'{labels.source}: no label is of an item of the run; query "{run.ids[row]}" has {have}')


def _told(lost: dict[str, int], labels: Labels) -> list[str]:
    words = {
        "query": "of queries that the run does not have: not used.",
        "item": "of items that the run does not have: not used.",
        "failed": "of queries that could not be judged: not used.",
        "again": "given twice: used once.",
    }
    said = [f"{many(count, 'label is', 'labels are')} {words[why]}" for why, count in lost.items() if count]
    return [*said, *([f"{many(labels.blank, 'row has', 'rows have')} no label."] if labels.blank else [])]


def said(hits: Hits, matched: Matched, rel: float | None) -> Bools:
    """What the judge says where the labels are: a gold item is found, a rank is relevant, or both."""
    kept = hits.grade > 0 if rel is None else hits.grade >= rel
    stride = int(hits.depth.max(initial=0)) + 1
    whole = kept if hits.part is None else kept & ~hits.part
    keys: dict[str, tuple[Any, Any]] = {
        "gold": (hits.gold[whole & (hits.rank <= matched.looked[hits.query])], matched.gold),
        "rank": ((hits.query * stride + hits.rank)[kept], matched.row * stride + matched.rank),
        "pair": ((hits.gold * stride + hits.rank)[kept], matched.gold * stride + matched.rank),
    }
    theirs, wanted = keys[matched.kind]
    found: Bools = np.isin(wanted, theirs)
    return found
