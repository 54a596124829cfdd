"""Hits: which retrieved item satisfies which gold item. Judges create them, metrics read them.

The columns are sparse: one row per match, however long the rankings are. Metrics read them through two
views: *per rank* (how many of the top k are relevant?) and *per gold item* (how many gold items were found?).
One item may satisfy two gold items, and two items the same one. The views handle both, so metrics need not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, frozen, group_number, is_relevant
from karat._internal.display import valid_utf8
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits.aspects import Aspects
from karat.hits.totals import Totals
from karat.hits.trajectory import Trajectory
from karat.hits.views import View, apart, best_of_rank, best_ranking, count_rows, seen_before, shares_rank
from karat.samples.notes import Note


class Gold(NamedTuple):
    """The gold items of all queries, one query after the other."""

    label: Sequence[str]
    """The display name of each item: its id, or its text."""
    start: Ints
    """The offset of each query's first item; the last value is the number of items."""
    grade: Floats
    """The relevance of each item; 0 means judged irrelevant, below 0 not judged."""
    incomplete: bool = False
    """True if there may be relevant items that were not judged. A query without gold is then defined: score 0."""
    unit: Ints | None = None
    """For each gold item as it was given, the index of its item here; None if no items were merged into one."""
    detail: Sequence[str] | None = None
    """More that tells gold items apart: the range of a text, and the alternatives that were merged with their grades.
    Empty where label and grade say all; None if they do for every item, or if it is not known."""
    hop: Ints | None = None
    """The hop of each item, from 1; 0 if it has none. None if no item has one."""
    aspects: Aspects | None = None
    """The aspects that each item serves; None if no item has one."""
    unanswerable: Bools | None = None
    """Flags of the queries that are known to have no answer; None if there are none."""

    def full_detail(self) -> Sequence[str]:
        """The detail of each item, with its aspects in the order of their names."""
        detail = self.detail or [""] * len(self.grade)
        if self.aspects is None:
            return detail
        pairs = zip(detail, self.aspects.each(), strict=True)
        return [f"{own} aspects {', '.join(sorted(names))}".strip() if names else own for own, names in pairs]


_SHORT = 1000

Cutoffs: TypeAlias = Floats
"""Cutoffs with shape (n_cutoffs, 1), broadcast over queries, or (n_cutoffs, n_queries) if each query has its own.
`inf` means no cutoff."""


class _Views(NamedTuple):
    """The same hits per rank and per gold item; one object where they are the same."""

    ranks: View
    items: View


class Hits:
    """Matches as sparse columns, with the depth of each ranking and the gold of each query. Immutable."""

    query: Ints
    rank: Ints
    gold: Ints
    grade: Floats
    why: str | list[str]
    repeated: Bools
    part: Bools | None
    depth: Ints
    queries: int
    gold_items: Gold
    gold_query: Ints
    totals: Totals
    notes: tuple[Note, ...]
    failed: dict[int, str]
    steps: Trajectory | None
    """The steps that were merged into the rankings, if there are any."""
    one_to_one: bool
    """True if no item satisfies two gold items, and no gold item is satisfied twice."""
    _copies: bool
    """False if no match is marked as repeated."""
    _views: dict[tuple[object, ...], _Views]
    _columns: dict[tuple[object, ...], tuple[object, Floats]]
    _without: dict[float | None, Bools | None]
    _condensed: Hits | None

    def __init__(
        self,
        query: Ints,
        rank: Ints,
        gold: Ints,
        *,
        depth: Ints,
        gold_items: Gold,
        grade: Floats | None = None,
        repeated: Bools | None = None,
        equality: bool = False,
        part: Bools | None = None,
        why: str | Sequence[str] = "same",
        totals: Totals | None = None,
        notes: Sequence[Note | str] = (),
        failed: Mapping[int, str] | None = None,
        steps: Trajectory | None = None,
        gold_query: Ints | None = None,
    ) -> None:
        """Take the matches in any order.

        query, rank, gold: one row per match; `gold` is an index into `gold_items`.
        depth: the number of retrieved items of each query.
        gold_items: the gold of all queries.
        grade: the grade each match earns; by default that of its gold item.
        repeated: marks copies of an item ranked higher in the same query.
        equality: True if every further match of a gold item is a copy, as with ids.
        part: marks matches that make their rank relevant but do not find the gold item by themselves.
        why: the reason of all matches, or one per match.
        totals: cumulative per-rank quantities, such as tokens.
        notes: facts for the reader, or sentences.
        failed: queries that could not be judged, with the reason.
        steps: the steps of each query, if the rankings are merged from several.
        gold_query: the query of each gold item, if it is known already.
        """
        query, rank = np.asarray(query, np.int64), np.asarray(rank, np.int64)
        gold, depth = np.asarray(gold, np.int64), np.asarray(depth, np.int64)
        key = query * (int(rank.max(initial=0)) + 1) + rank
        detail = None if gold_items.detail is None else valid_utf8(gold_items.detail)
        if (label := valid_utf8(gold_items.label)) is not gold_items.label or detail is not gold_items.detail:
            gold_items = gold_items._replace(label=label, detail=detail)
        order = key.argsort(kind="stable")
        key, again = key[order], seen_before(gold[order])
        gold = gold[order]
        try:
            own_grade = gold_items.grade[gold] if grade is None else grade[order]
        except IndexError as error:
            raise BadArgument(f"the judge returned a hit on a gold item that does not exist: {error}") from error
        found_again = np.count_nonzero(again) > 0
        copies = repeated is not None or (equality and found_again)
        if repeated is None:
            repeated = again if equality else np.zeros(len(order), bool)
        else:
            repeated = np.asarray(repeated, bool)[order]
        self.__dict__.update(
            query=query[order],
            rank=rank[order],
            gold=gold,
            grade=own_grade,
            why=why if isinstance(why, str) else [why[i] for i in order],
            repeated=repeated,
            part=None if part is None or not part.any() else np.asarray(part, bool)[order],
            depth=depth,
            queries=len(depth),
            gold_items=gold_items,
            gold_query=group_number(gold_items.start) if gold_query is None else gold_query,
            totals=Totals(depth) if totals is None else totals,
            notes=tuple([Note.of_text(note) if isinstance(note, str) else note for note in notes]),
            failed=dict(zip(failed, valid_utf8(list(failed.values())), strict=True)) if failed else {},
            steps=steps,
            one_to_one=not (found_again or np.count_nonzero(key[1:] == key[:-1])),
            _copies=copies,
            _views={},
            _columns={},
            _without={},
            _condensed=None,
        )

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"Hits are immutable: use hits.replace({name}=…)")

    def replace(
        self,
        *,
        totals: Totals | None = None,
        notes: Sequence[Note] | None = None,
        failed: Mapping[int, str] | None = None,
        steps: Trajectory | None = None,
        gold_items: Gold | None = None,
    ) -> Hits:
        """A copy with other totals, notes, failures, steps or facts on the gold; the matches are shared."""
        given: dict[str, Any] = {"totals": totals, "steps": steps, "gold_items": gold_items}
        given |= {"notes": notes and tuple(notes), "failed": failed and dict(failed)}
        changed = Hits.__new__(Hits)
        changed.__dict__.update(self.__dict__)
        changed.__dict__.update({name: value for name, value in given.items() if value is not None})
        changed.__dict__.update(_views={}, _columns={}, _without={}, _condensed=None)
        return changed

    def __len__(self) -> int:
        return len(self.query)

    def check(self) -> None:
        """Refuse hits that no judge may return and no run file may contain: the bounds of every metric depend on it."""
        inside = (self.query >= 0) & (self.query < self.queries)
        query = np.where(inside, self.query, 0)
        start = self.gold_items.start
        for good, wanted in (
            (inside, "query must be a row number of the samples, from 0"),
            (
                (self.rank >= 1) & (self.rank <= self.depth[query]),
                "rank must be between 1 and the depth of the ranking",
            ),
            (
                (self.gold >= start[query]) & (self.gold < start[query + 1]),
                "gold must be an index into the gold items of the same query",
            ),
        ):
            if not good.all():
                row = int(np.flatnonzero(~good)[0])
                got = f"query {self.query[row]}, rank {self.rank[row]}, gold {self.gold[row]}"
                raise BadArgument(f"a hit is invalid: {wanted}", got=got)
        if (self.grade > self.gold_items.grade[self.gold]).any():
            raise BadArgument("a hit has a higher grade than its gold item")

    @property
    def best_order(self) -> View:
        """The ideal ranking: every gold item with a grade above 0, best grade first."""
        known = self._views.get(("best",))
        if known is None:
            keep = (self.gold_items.grade > 0).nonzero()[0]
            best = best_ranking(self.gold_query[keep], self.gold_items.grade[keep], self.queries)
            known = self._views["best",] = _Views(best, best)
        return known.ranks

    def without_gold(self, rel: float | None = None) -> Bools | None:
        """Flags of the queries without relevant gold; None if every query has some."""
        if rel not in self._without:
            none = self.gold_count(rel) == 0
            self._without[rel] = none if np.count_nonzero(none) and not self.gold_items.incomplete else None
        return self._without[rel]

    def judged_nothing(self) -> Bools:
        """Flags of the queries without any gold item, not even an irrelevant one."""
        nothing: Bools = np.diff(self.gold_items.start) == 0
        return nothing

    def gold_count(self, rel: float | None = None) -> Floats:
        """The number of relevant gold items of each query."""
        return self.once(("gold", rel), lambda: self._count_gold(rel))

    def _count_gold(self, rel: float | None) -> Floats:
        relevant = self.gold_query[is_relevant(self.gold_items.grade, rel)]
        return np.bincount(relevant, minlength=self.queries).astype(float)

    def ranks(self, c: Convention, rel: float | None = None, of: str = "precision") -> View:
        """Per rank: the relevant ranks of each query without copies, with the best grade of each.

        If the convention counts copies for the metric `of`, with copies.
        """
        return self._view(c, rel, copies=of in c.per_rank).ranks

    def items(self, c: Convention, rel: float | None = None, of: str = "recall") -> View:
        """Per gold item: the relevant gold items that were found, each at its first rank.

        If the convention counts ranks for the metric `of`, the relevant ranks instead.
        """
        return self._view(c, rel, copies=of in c.per_rank).items

    def judged(self, c: Convention) -> View:
        """Per rank: the ranks with a judged item, relevant or not."""
        return self._view(c, 0.0 if c.pooled == "unjudged" else -np.inf).ranks

    @property
    def condensed(self) -> Hits:
        """The same without the retrieved items that have no judgement: those below each move up."""
        if self._condensed is None:
            from karat.hits.holes import condense

            self.__dict__["_condensed"] = condense(self)
            return self.condensed
        return self._condensed

    def copies(self, c: Convention) -> View:
        """Per rank: the relevant ranks with a copy of an item ranked higher."""
        keep = self._relevant(c, None)
        return self._once_each(keep[self.repeated[keep]])

    def matches(self, c: Convention, rel: float | None = None) -> Ints:
        """The rows that find a gold item by themselves; with copies if average precision counts them."""
        keep = self._relevant(c, rel)
        keep = keep if "ap" in c.per_rank else keep[~self.repeated[keep]]
        return keep if self.part is None else keep[~self.part[keep]]

    def retrieved_count(self, c: Convention, rel: float | None = None, of: str = "recall") -> Floats:
        """The number of relevant gold items (or ranks, as the convention counts) retrieved at any rank."""
        view = self._view(c, rel, copies=of in c.per_rank, scored=False).items
        return np.bincount(view.query, minlength=self.queries).astype(float)

    def relevant(self, k: Cutoffs, c: Convention, rel: float | None = None) -> Floats:
        """The number of relevant ranks in the top k."""
        return self.count(self.ranks(c, rel), k)

    def found(self, k: Cutoffs, c: Convention, rel: float | None = None) -> Floats:
        """The number of gold items found in the top k."""
        return self.count(self.items(c, rel), k)

    def first_rank(self, k: Cutoffs, c: Convention, rel: float | None = None) -> Floats:
        """The rank of the first relevant item; infinite if the top k have none."""
        view = self.ranks(c, rel)
        first = np.empty(self.queries)
        first.fill(inf)
        first[view.query[::-1]] = view.rank[::-1]  # the last one written is the highest rank
        return first[None] if len(k) == 1 and k[0, 0] == inf and k.shape[1] == 1 else np.where(first <= k, first, inf)

    def returned(self, k: Cutoffs) -> Floats:
        """The number of items retrieved in the top k."""
        return np.minimum(self.depth, k)

    def once(self, key: tuple[object, ...], make: Callable[[], Floats], about: object = None) -> Floats:
        """A read-only column that several metrics share, computed when it is first needed.

        `about` is stored with it: if the key contains the id() of that object, the object must stay alive.
        """
        known = self._columns.get(key)
        if known is None:
            known = self._columns[key] = about, frozen(make())
        return known[1]

    def count(self, view: View, k: Cutoffs) -> Floats:
        """The number of rows of a view in the top k of each query, for all cutoffs in one pass."""
        return self.once((id(view), k.shape, k.tobytes()), lambda: count_rows(view, k, self.queries), view)

    def total(self, view: View, value: Floats, place: Ints, k: Cutoffs) -> Floats:
        """The sum of a value over the rows whose place is in the top k, for each query.

        Each cutoff is summed separately, rank by rank, so that other cutoffs do not change a digit.
        """
        query, queries = view.query, self.queries
        if len(k) > 1 and len(place) <= _SHORT:  # all cutoffs at once: adding 0 changes no digit
            inside = place <= (k if k.shape[1] == 1 else k[:, query])
            cells = query + np.arange(0, len(k) * queries, queries)[:, None]
            worth = np.where(inside, value, 0.0)
            flat: Floats = np.bincount(cells.ravel(), worth.ravel(), len(k) * queries).astype(float, copy=False)
            return flat.reshape(len(k), queries)
        sums = []
        deepest = place.max() if len(place) > _SHORT else inf
        for cutoffs in k:
            cutoff = cutoffs[0] if len(cutoffs) == 1 else cutoffs[query]
            if len(cutoffs) == 1 and cutoff >= deepest:
                sums.append(np.bincount(query, value, queries))
            else:
                top = place <= cutoff
                sums.append(np.bincount(query[top], value[top], queries))
        return np.array(sums)

    def _view(self, c: Convention, rel: float | None, *, copies: bool = False, scored: bool = True) -> _Views:
        key = (copies, rel, c.above_zero and scored)
        known = self._views.get(key)
        if known is None:
            keep = self._relevant(c, rel, scored=scored)
            if copies:
                ranks = self._once_each(keep)
                known = _Views(ranks, ranks)
            else:
                known = self._make_views(keep)
            self._views[key] = known
        return known

    def _relevant(self, c: Convention, rel: float | None, *, scored: bool = True) -> Ints:
        """The relevant rows; some conventions also require a score above 0."""
        keep = is_relevant(self.grade, rel).nonzero()[0]
        if c.above_zero and scored and (score := self.totals.at_rank.get("score")) is not None:
            keep = keep[score[self.totals.row(self.query[keep], self.rank[keep])] > 0]
        return keep

    def _once_each(self, keep: Ints) -> View:
        """The ranks of these rows, each once."""
        ranks = self._rows(keep)
        shared = shares_rank(ranks)
        return best_of_rank(ranks, shared) if shared.any() else ranks

    def _make_views(self, keep: Ints) -> _Views:
        keep = keep[~self.repeated[keep]] if self._copies else keep
        ranks = items = self._rows(keep)
        if self.one_to_one and self.part is None:
            return _Views(ranks, items)
        whole = keep if self.part is None else keep[~self.part[keep]]
        items = self._rows(whole[~seen_before(self.gold[whole])])
        if (shared := shares_rank(ranks)).any():
            ranks = best_of_rank(ranks, shared)
        if shares_rank(items).any():
            items = apart(items)
        return _Views(ranks, items)

    def _rows(self, keep: Ints) -> View:
        rank = self.rank[keep]
        return View(self.query[keep], rank, self.grade[keep], rank)
