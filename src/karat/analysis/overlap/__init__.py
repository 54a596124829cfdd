"""Compare two rankings of the same queries without gold: overlap, order, top results, scores, and what changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, mean_defined
from karat._internal.result import Result
from karat.analysis.compare import run_names
from karat.analysis.overlap.paired_lists import Listed, PairedLists
from karat.analysis.overlap.ranked_lists import ResultsLike, is_run, read_lists
from karat.analysis.overlap.score_drift import ScoreDrift, score_drift
from karat.errors import BadArgument, unknown
from karat.samples.field_map import Fields
from karat.samples.keys import short_id
from karat.samples.loading import Selection
from karat.samples.notes import Note
from karat.stats import intervals
from karat.stats.rank_similarity import CommonRanks, check_persistence, jaccard, other_top, rbo, same_order, tau

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ItemMove", "Overlap", "RankingChange", "ScoreDrift", "SimilarityRow", "is_run", "overlap"]

OTHER_TOP = "other_top"
_SHOWN, _NAMED = 10, 5


class SimilarityRow(NamedTuple):
    """One measure of similarity: its mean over the queries for which it is defined, with a 95 % interval."""

    name: str
    mean: float
    low: float
    high: float
    n: int
    """The number of queries for which it is defined."""


class ItemMove(NamedTuple):
    """An item of a query, and its rank in both rankings; None if it was not retrieved."""

    before: int | None
    after: int | None
    id: str | None
    text: str | None
    doc: str | None
    before_score: float | None
    after_score: float | None

    @property
    def mark(self) -> str:
        """The change: new, gone, up, down or kept."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        return "kept" if self.before == self.after else "up" if self.after < self.before else "down"


class RankingChange(NamedTuple):
    """A query with the similarity of its two rankings, and the items of either top k."""

    query_id: str
    query: str | None
    similarity: dict[str, float]
    common: int
    """The number of items in both top k."""
    sizes: tuple[int, int]
    """The numbers of items retrieved."""
    items: list[ItemMove]
    """The items by their new rank; those that are gone are where they were."""


@dataclass(repr=False, eq=False)
class Overlap(Result):
    """The result of `karat.overlap`."""

    names: list[str]
    k: int
    p: float
    depth: int | None
    """The number of items of each ranking that are used; None for all of them."""
    ids: list[str]
    """The queries in both."""
    query: list[str | None]
    """The texts of the queries."""
    compared: str
    """The field by which items are recognised: id, text, doc or place."""
    common: CommonRanks
    """The ranks of the items that both rankings have."""
    values: dict[str, Floats]
    """Each measure of similarity, one number per query; NaN where it is undefined."""
    scores: list[ScoreDrift]
    """The drift of the scores, if both have scores."""
    notes: tuple[Note, ...]
    _paired: PairedLists

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def rows(self) -> list[SimilarityRow]:
        """One row per measure."""
        ends = intervals({name: (own + 1) / 2 if name == "tau" else own for name, own in self.values.items()})
        found = []
        for name, own in self.values.items():
            low, high = (2 * end - 1 for end in ends[name]) if name == "tau" else ends[name]
            found.append(SimilarityRow(name, mean_defined(own), low, high, int((~np.isnan(own)).sum())))
        return found

    @cached_property
    def mean(self) -> dict[str, float]:
        """The mean of each measure over the queries for which it is defined."""
        return {row.name: row.mean for row in self.rows}

    @cached_property
    def only(self) -> tuple[int, int]:
        """The numbers of items that only one of the two top k has, over all queries."""
        both = int(self.common.total(self.k).sum())
        sizes = self.common.first_size, self.common.second_size
        first, second = (int(np.minimum(size, self.k).sum()) - both for size in sizes)
        return first, second

    @cached_property
    def same(self) -> int:
        """The number of queries with the same top k in the same order."""
        return int(same_order(self.common, self.k).sum())

    @cached_property
    def differs(self) -> Bools:
        """The queries whose rankings are not the same, at any depth."""
        c = self.common
        return ~same_order(c, int(max(c.first_size.max(initial=0), c.second_size.max(initial=0))))

    def changed(self, limit: int = _SHOWN) -> list[RankingChange]:
        """The queries whose rankings changed most: those with the lowest rank-biased overlap.

        Args:
            limit: the number of queries.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise BadArgument("limit is a number of queries", got=limit, hint="10")
        similar = self.values[_rbo_name(self.p)].round(9)  # so that rounding does not decide the order
        order = np.lexsort((self.values[f"jaccard@{self.k}"].round(9), similar))
        return [self._change(row) for row in order[self.differs[order]][:limit].tolist()]

    def change(self, query_id: str) -> RankingChange:
        """The change of one query, given its id or its text."""
        for names in (self.ids, self.query):
            if query_id in names:
                return self._change(names.index(query_id))
        some = ", ".join(map(short_id, self.ids[:_NAMED])) + ", …" * (len(self.ids) > _NAMED)
        raise unknown("query", short_id(str(query_id)), self.ids, f"one of: {some}")

    def _change(self, row: int) -> RankingChange:
        before, after = self._paired.listed(row, 0), self._paired.listed(row, 1)
        return RankingChange(
            query_id=self.ids[row],
            query=self.query[row],
            similarity={name: float(own[row]) for name, own in self.values.items()},
            common=len({one.key for one in before[: self.k]} & {one.key for one in after[: self.k]}),
            sizes=(len(before), len(after)),
            items=_moves(before, after, self.k),
        )

    def remarks(self) -> list[str]:
        """One sentence per note: what was compared, and what was left out."""
        return list(self._render("remarks"))

    @property
    def table(self) -> pl.DataFrame:
        """One row per query: its measures, and the numbers of items."""
        import polars as pl

        return pl.DataFrame(
            {
                "query_id": self.ids,
                "query": pl.Series(self.query, dtype=pl.String),
                **self.values,
                "common": self.common.total(self.k),
                "first_retrieved": self.common.first_size,
                "second_retrieved": self.common.second_size,
            }
        )


def _moves(before: Sequence[Listed], after: Sequence[Listed], k: int) -> list[ItemMove]:
    ours = {one.key: (rank, one) for rank, one in enumerate(before, 1)}
    theirs = {one.key: (rank, one) for rank, one in enumerate(after, 1)}
    near = dict.fromkeys(one.key for one in (*after[:k], *before[:k]))
    moves = []
    for key in near:
        (old, left), (new, right) = ours.get(key, (None, None)), theirs.get(key, (None, None))
        shown = [one.item for one in (right, left) if one is not None]
        name, text, doc = (next((item[i] for item in shown if item[i] is not None), None) for i in range(3))
        score, other = (None if one is None else one.score for one in (left, right))
        moves.append(ItemMove(old, new, name, text, doc, score, other))
    return sorted(moves, key=lambda move: (move.before or 0) + 0.5 if move.after is None else move.after)


def _rbo_name(p: float) -> str:
    return f"rbo(p={p:g})"


def overlap(
    a: ResultsLike,
    b: ResultsLike,
    *,
    k: int = 10,
    p: float = 0.9,
    at: str = "item",
    depth: int | None = None,
    names: Sequence[str] | None = None,
    fields: Fields = None,
) -> Overlap:
    """Compare two rankings of the same queries without gold.

    Args:
        a: the first results: the path of samples, of a TREC run or of a run file, a run, or results by query, such as
            `{"q1": ["doc-4", "doc-9"]}` or `{"q1": {"doc-4": 12.5}}`. Gold is not needed, and not used.
        b: the second results, which are compared with the first.
        k: the depth of jaccard, and of the lists that are shown.
        p: the persistence of rank-biased overlap: the higher, the more the lower ranks count. At 0.9 the top 10 have
            86 % of the weight.
        at: "doc" compares documents in place of items.
        depth: the number of items of each ranking that are used; default: all of them.
        names: one name for each; default: the names of the files, or A and B.
        fields: your column names, by karat's, as for `karat.evaluate`.

    Returns:
        An `Overlap`: `rows` (jaccard, rank-biased overlap, Kendall's tau and the share of queries with another top
        result, each with a 95 % interval), `values` (the same for each query), `scores` (the drift of the scores),
        `changed()` (the queries that changed most, with their items), `change("q17")` (one query), `table`.

    Example:
        >>> found = karat.overlap({"q1": ["a", "b", "c"]}, {"q1": ["b", "a", "d"]}, k=3)
        >>> found.mean["jaccard@3"]
        0.5
    """
    if at not in ("item", "doc"):
        raise BadArgument('at must be "item" or "doc"', got=at)
    for name, value in (("k", k), ("depth", 1 if depth is None else depth)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BadArgument(f"{name} must be a whole number from 1 on", got=value, hint=f"{name}=10")
    check_persistence(p)
    labels = run_names((a, b), names)
    selection = Selection(fields)
    lists = [read_lists(one, name, selection) for one, name in zip((a, b), labels, strict=True)]
    selection.check()
    paired = PairedLists(*lists, at=at, depth=depth)
    common = paired.common
    similar = {f"jaccard@{k}": jaccard(common, k), _rbo_name(p): rbo(common, p), "tau": tau(common)}
    return Overlap(
        names=labels,
        k=k,
        p=p,
        depth=paired.depth,
        ids=paired.ids,
        query=paired.query,
        compared=paired.by,
        common=common,
        values={**similar, OTHER_TOP: other_top(common)},
        scores=score_drift(paired),
        notes=(*_same_source(a, b), *paired.notes, *_empty(common, labels)),
        _paired=paired,
    )


def _same_source(a: ResultsLike, b: ResultsLike) -> list[Note]:
    """A note if both are the same file or object."""
    same = a is b
    if isinstance(a, str | os.PathLike) and isinstance(b, str | os.PathLike):
        try:
            same = Path(a).samefile(b)
        except (OSError, ValueError):
            same = str(a) == str(b)
    return [Note("overlap_same_source")] if same else []


def _empty(common: CommonRanks, names: Sequence[str]) -> list[Note]:
    """Notes on rankings without items, on items that are nowhere the same, and on scores."""
    size, notes = len(common.first_size), []
    if both := int(common.empty.sum()):
        notes.append(Note("overlap_both_empty", both, size))
    for own, other, name in (
        (common.first_size, common.second_size, names[0]),
        (common.second_size, common.first_size, names[1]),
    ):
        if alone := int(((own == 0) & (other > 0)).sum()):
            notes.append(Note("overlap_one_empty", alone, size, details={"name": name}))
    few = int(((common.total() < 2) & ~common.empty).sum())
    if few:
        notes.append(Note("overlap_few_common", few, size))
    if not len(common.query) and (common.first_size.any() and common.second_size.any()):
        notes.append(Note("overlap_nothing_common"))
    return notes
