"""The fused run: fused rankings, evaluated by the matches that the runs of the legs know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from karat import __version__
from karat._internal.arrays import Floats, Ints, is_relevant, row_number, starts
from karat._internal.grammar import parse_call
from karat.analysis.compare import chosen_metrics
from karat.analysis.fuse.legs import Aligned
from karat.errors import BadArgument, KaratError
from karat.fusion.candidates import Places
from karat.hits import Hits
from karat.hits.combine import take
from karat.hits.totals import Totals
from karat.judges import find_judge
from karat.metrics import Metric, parse_all
from karat.run import Run
from karat.run.stored_items import Extent, StoredItems, stored_ranks
from karat.samples.notes import Note
from karat.samples.rankings.score_order import precision_of

_FOLDING = ("text", "contains", "fuzzy")
"""The judges by text that say which texts are copies of one another."""
_ADDED = ("tokens", "used")
"""The totals that are sums over items, so that any order of them has its own."""


class Known(NamedTuple):
    """The matches that any leg knows, one row each: a candidate, a gold item, and the grade that the match earns."""

    row: Ints
    gold: Ints
    grade: Floats
    why: list[str]
    failed: dict[int, str]
    unstored: int
    """The number of retrieved items that the runs do not store."""
    lost: int
    """The number of matches of such items."""


class Evaluator:
    """Evaluates fused rankings by the matches that the legs know; the matches are collected once."""

    def __init__(self, aligned: Aligned, metrics: Any = None) -> None:
        self._aligned = aligned
        self.candidates = aligned.candidates
        self.runs = [leg.run for leg in aligned.legs if leg.run is not None]
        self.convention = self.runs[0].convention
        self._first = take(self.runs[0].all_hits, aligned.rows[0])
        self._known = self._matches()
        self._copies = self._identities()
        requested, left_out = self._computable(metrics)
        self.metrics = tuple(metric for metric in requested if not metric.unit)
        """The metrics of the fused run."""
        self.requested = requested
        """The metrics and the measures of the fused run."""
        self.notes = (*aligned.notes, *left_out, *self._unstored())

    def _matches(self) -> Known:
        """The matches of all legs, each once, with the best grade that a leg gave it."""
        rows: list[Ints] = []
        golds: list[Ints] = []
        grades: list[Floats] = []
        whys: list[str] = []
        failed: dict[int, str] = {}
        unstored = lost = 0
        for leg, own_rows in zip(self._aligned.legs, self._aligned.rows, strict=True):
            assert leg.run is not None
            hits = take(leg.run.all_hits, own_rows)
            stored = leg.run.stored_items
            assert stored is not None
            size = np.diff(stored.start)[own_rows]
            unstored += int(np.maximum(hits.depth - size, 0).sum())
            inside = hits.rank <= size[hits.query]
            lost += int(np.count_nonzero(~inside & (hits.grade > 0)))
            item = starts(size)[hits.query] + hits.rank - 1
            gold = _same_gold(hits, self._first)[hits.gold]
            keep = np.flatnonzero(inside & (gold >= 0))
            rows.append(self.candidates.rows[len(rows)][item[keep]])
            golds.append(gold[keep])
            grades.append(hits.grade[keep])
            why = hits.why
            whys += [why] * len(keep) if isinstance(why, str) else [why[i] for i in keep.tolist()]
            failed |= {row: reason for row, reason in hits.failed.items() if row not in failed}
        row, gold, grade = np.concatenate(rows), np.concatenate(golds), np.concatenate(grades)
        order = np.lexsort((-grade, gold, row))
        first = np.concatenate(([True], (np.diff(row[order]) != 0) | (np.diff(gold[order]) != 0)))[: len(order)]
        kept = order[first]
        return Known(row[kept], gold[kept], grade[kept], [whys[i] for i in kept.tolist()], failed, unstored, lost)

    def _unstored(self) -> list[Note]:
        known = self._known
        places = min(run.stored_items.extent.places for run in self.runs if run.stored_items is not None)
        details, sums = {"places": places}, {"lost": known.lost}
        return [Note("leg_items_unstored", known.unstored, details=details, sums=sums)] if known.unstored else []

    def _identities(self) -> Ints:
        """A number for each candidate, equal for copies: items of a query that are the same to the judge."""
        p, copies = self.runs[0].provenance, np.arange(len(self.candidates.keys))
        if p.compares == "id":
            return copies  # candidates with the same id are one
        fold: Callable[[str], str] = str
        if parse_call(p.judge).name in _FOLDING:
            with suppress(KaratError):  # a custom judge that is not registered here
                fold = find_judge(p.judge).same
        number: dict[tuple[int, Any], int] = {}
        query = self.candidates.query.tolist()
        for row, value in enumerate(self._column("doc" if p.compares == "doc" else "text")):
            if value is not None:
                copies[row] = number.setdefault((query[row], fold(str(value))), row)
        return copies

    def _column(self, field: str) -> list[Any]:
        """A stored field of each candidate, from the first leg that has it; `length` is that of the first text."""
        column: list[Any] = [None] * len(self.candidates.keys)
        done: set[int] = set()
        for leg, rows, own in zip(self._aligned.legs, self._aligned.rows, self.candidates.rows, strict=True):
            assert leg.run is not None
            stored = leg.run.stored_items
            if stored is None or field not in stored.retrieved:
                continue
            values = chain.from_iterable(
                stored.retrieved[field][stored.start[row] : stored.start[row + 1]] for row in rows.tolist()
            )
            for row, value in zip(own.tolist(), values, strict=True):
                if row not in done:
                    column[row] = value
                    if value is not None or field == "length":
                        done.add(row)
        return column

    def _computable(self, metrics: Any) -> tuple[tuple[Metric, ...], list[Note]]:
        """The metrics and measures of all legs that can be computed from hits; the others are left out."""
        common = [name for name in self.runs[0].columns if all(name in run.columns for run in self.runs)]
        if all(name in self.runs[0].measured for name in common):
            raise BadArgument("the legs have no metric in common", hint="karat eval with the same metrics")
        wanted = [metric for metric in self.runs[0].requested if set(metric.names) <= set(common)]
        if metrics is not None:
            chosen_metrics(metrics, common, "metric in every leg")
            wanted = list(parse_all(metrics))
        kept = tuple(metric for metric in wanted if self._is_from_hits(metric))
        out = [name for metric in wanted if metric not in kept for name in metric.names]
        if all(metric.unit for metric in kept):
            raise BadArgument("no metric of the legs can be computed for a fused ranking", got=", ".join(out))
        return kept, [Note("fused_metrics_left_out", len(out), details={"metrics": ", ".join(out)})] if out else []

    def _is_from_hits(self, metric: Metric) -> bool:
        """True if the hits of a leg give its scores again, and so does a fused ranking of known totals."""
        c, run = self.convention, self.runs[0]
        own = c.of(metric.name, cut=bool(metric.ks))
        if own.ranking_choices != c.ranking_choices:
            return False
        try:
            again = metric.scores(run.all_hits, c)
            metric.scores(self.hits(np.zeros(len(self.candidates.keys))), c)
        except (KaratError, LookupError):
            return False
        judged = ~np.isin(np.arange(len(run)), list(run.all_hits.failed)) & (run.all_hits.depth > 0)
        return all(np.allclose(again[name][judged], run.columns[name][judged], equal_nan=True) for name in metric.names)

    @cached_property
    def _places(self) -> Places:
        return Places(self.candidates, self._known.row)

    @cached_property
    def _amounts(self) -> dict[str, Floats]:
        """The amounts of each candidate that totals are sums of, such as its tokens."""
        amounts: dict[str, Floats] = {}
        for name in _ADDED:
            if not all(name in run.all_hits.totals.at_rank for run in self.runs):
                continue
            own = np.zeros(len(self.candidates.keys))
            for leg, (run, rows) in enumerate(zip(self.runs, self._aligned.rows, strict=True)):
                totals, stored = run.all_hits.totals, run.stored_items
                assert stored is not None
                size = np.diff(stored.start)[rows]
                place = row_number(starts(size))
                at = totals.row(np.repeat(rows, size), place + 1)
                total = totals.at_rank[name]
                own[self.candidates.rows[leg]] = total[at] - np.where(place > 0, total[at - 1], 0)
            amounts[name] = own
        return amounts

    def compared(self, fused: Floats) -> Floats:
        """The scores in the precision in which the convention compares them."""
        with np.errstate(over="ignore"):
            return fused.astype(precision_of(self.convention)[1]).astype(float)

    def hits(self, fused: Floats, depth: int | None = None) -> Hits:
        """The hits of the fused rankings."""
        known, c = self._known, self.candidates
        score = self.compared(fused)
        rank = self._places.ranks(score)
        deepest = np.diff(c.start) if depth is None else np.minimum(np.diff(c.start), depth)
        query = c.query[known.row]
        order = np.lexsort((rank, self._copies[known.row], known.gold))
        again = (np.diff(known.gold[order]) == 0) & (np.diff(self._copies[known.row][order]) == 0)
        repeated = np.zeros(len(rank), bool)
        repeated[order[1:]] = again
        keep = np.flatnonzero(rank <= deepest[query])
        return Hits(
            query[keep],
            rank[keep],
            known.gold[keep],
            depth=deepest,
            gold_items=self._first.gold_items,
            grade=known.grade[keep],
            repeated=repeated[keep],
            why=[known.why[i] for i in keep.tolist()],
            totals=self._totals(score, depth, deepest),
            failed=known.failed,
        )

    def _totals(self, score: Floats, depth: int | None, deepest: Ints) -> Totals:
        """The totals that the convention and the metrics need, in the fused order."""
        c = self.convention
        needed = c.above_zero or c.ties == "averaged" or c.precision_over == "different" or self._amounts
        totals = Totals(deepest)
        if not needed:
            return totals
        order, _ = self.candidates.ranking(score, depth)
        for name, amount in self._amounts.items():
            totals = totals.with_amounts(name, amount[order])
        if c.precision_over == "different":
            _, first = np.unique(self._copies[order], return_index=True)
            different = np.zeros(len(order))
            different[first] = 1
            totals = totals.with_amounts("different", different)
        return totals.with_values("score", score[order]) if c.above_zero or c.ties == "averaged" else totals

    def scores(self, hits: Hits, metrics: Sequence[Metric]) -> dict[str, Floats]:
        """The scores of each query; undefined where no leg has a score and nothing was retrieved."""
        scores = {name: own for metric in metrics for name, own in metric.scores(hits, self.convention).items()}
        legs = np.array([[own[name] for name in scores] for own in self.leg_scores()])
        missing = (hits.depth == 0) & np.isnan(legs).all(axis=(0, 1))
        missing[list(hits.failed)] = True
        return {name: np.where(missing, np.nan, own) for name, own in scores.items()}

    def leg_scores(self) -> list[dict[str, Floats]]:
        """The scores of the legs, over the queries of all."""
        names = [name for metric in self.requested for name in metric.names]
        every = zip(self.runs, self._aligned.rows, strict=True)
        return [{name: run.columns[name][rows] for name in names} for run, rows in every]

    def share_found(self, depth: int | None) -> float:
        """The share of the relevant gold that any leg found, within a depth of each leg, in the mean over queries."""
        known, gold = self._known, self._first.gold_items
        best = np.nanmin(self.candidates.rank[:, known.row], axis=0) if len(known.row) else np.zeros(0)
        hit = known.gold[(known.grade > 0) & (best <= (np.inf if depth is None else depth))]
        found = np.zeros(len(gold.grade))
        found[hit] = 1
        relevant = is_relevant(gold.grade)
        query = self._first.gold_query
        count = np.bincount(query[relevant], minlength=self._first.queries)
        judged = ~np.isin(np.arange(self._first.queries), list(known.failed)) & (count > 0)
        total = np.bincount(query[relevant], found[relevant], self._first.queries)
        return float((total[judged] / count[judged]).mean()) if judged.any() else float("nan")

    def run(self, fused: Floats, source: str, depth: int | None, notes: Sequence[Note]) -> Run:
        """The run of the fused rankings."""
        first, rows = self.runs[0], self._aligned.rows[0]
        hits = self.hits(fused, depth)
        made = replace(
            first.provenance, karat=__version__, source=source, notes=tuple(notes), missing=0, extra=0, skipped=0,
            metrics=tuple(map(str, self.requested)), commit="",
        )  # fmt: skip
        return Run(
            ids=self._aligned.ids,
            hits=hits,
            metrics=self.requested,
            convention=self.convention,
            scores=self.scores(hits, self.requested),
            provenance=made,
            query=None if first.query is None else [first.query[row] for row in rows.tolist()],
            meta={name: [column[row] for row in rows.tolist()] for name, column in first.meta.items()},
            items=partial(self._items, fused, depth),
        )

    def _items(self, fused: Floats, depth: int | None) -> StoredItems:
        """The top ranks of the fused rankings, as a run stores them."""
        first = self.runs[0].stored_items
        assert first is not None
        places = stored_ranks(self.metrics, len(self._aligned.ids))
        order, start = self.candidates.ranking(self.compared(fused), min(places, depth or places))
        names = dict.fromkeys(name for run in self.runs if run.stored_items for name in run.stored_items.retrieved)
        columns: Mapping[str, list[Any]] = {name: self._column(name) for name in names if name != "score"}
        retrieved = {name: [column[row] for row in order.tolist()] for name, column in columns.items()}
        retrieved["score"] = fused[order].tolist()
        own = first.take(self._aligned.rows[0])
        gold = {name: column for name, column in own.gold.items() if name != "seen"}
        return StoredItems(retrieved, start, gold, own.gold_start, Extent(places, whole=False))


def _same_gold(hits: Hits, first: Hits) -> Ints:
    """For each gold item of a leg, that of the first leg with the same query and label; -1 if there is none."""
    ours = hits.gold_items
    if ours.label == first.gold_items.label and np.array_equal(ours.start, first.gold_items.start):
        return np.arange(len(ours.label))
    known: dict[tuple[int, str], list[int]] = {}
    for item, key in enumerate(zip(first.gold_query.tolist(), first.gold_items.label, strict=True)):
        known.setdefault(key, []).append(item)
    pairs = zip(hits.gold_query.tolist(), ours.label, strict=True)
    return np.array([found.pop(0) if (found := known.get(key)) else -1 for key in pairs], np.int64)
