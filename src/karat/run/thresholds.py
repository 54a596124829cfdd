"""Score thresholds: the false alarms on queries without an answer that one prevents, and the recall that it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, is_relevant, mean_defined, row_number, starts, take_ragged
from karat._internal.result import Result
from karat.errors import BadArgument
from karat.hits.totals import RAW_SCORE
from karat.metrics.names import sign_of
from karat.run.repeats import one_row_each
from karat.run.step_summary import shown_cutoff
from karat.stats import Interval
from karat.stats.discrimination import auroc, auroc_interval, confidences, nauc, share_interval, top_scores

if TYPE_CHECKING:
    from karat.run.run import Run

_MAX_POINTS = 101
_FOLDS = 10
KEPT = (1.0, 0.95, 0.9)
"""The shares of the recall for which a table shows the threshold."""
_DEFAULT_CUTOFF = 10


class ThresholdPoint(NamedTuple):
    """The results if only items with at least this score are returned."""

    threshold: float
    """Minus infinity if there is none."""
    false_alarm: float
    """The share of the queries without an answer for which anything is returned in the top k."""
    recall: float
    """The mean recall of the others in the top k."""
    kept: float
    """The recall as a share of that without a threshold."""


class ThresholdChoice(NamedTuple):
    """The threshold with the largest difference between the recall kept and the false alarms."""

    threshold: float
    before: ThresholdPoint
    after: ThresholdPoint
    false_alarm: float
    """On held-out queries: the threshold was chosen on the others."""
    false_alarm_interval: Interval
    """The 95 % interval around the false alarms of `after`, which holds for a threshold chosen on the same queries."""
    loss: float
    """The recall that it costs, on held-out queries."""
    loss_interval: Interval
    """The same around the recall that it costs on the queries on which it was chosen."""


@dataclass(repr=False, eq=False, kw_only=True)
class Thresholds(Result):
    """The result of `run.thresholds()`: false alarms and recall at each threshold of the scores."""

    k: int
    """The cutoff: items below it are not returned."""
    ids: Sequence[str]
    alarm: Floats
    """The highest score in the top k of each query without an answer; minus infinity if nothing was retrieved."""
    alarm_rows: Ints
    tops: Floats
    """The highest score in the top k of each query with an answer."""
    score: Floats
    """The highest score at which each relevant gold item was found in the top k; minus infinity if it was not."""
    gold_row: Ints
    """The query of each relevant gold item, as a number of `answerable_rows`."""
    answerable_rows: Ints
    unknown: int
    """Queries whose scores are not known, and which are left out."""

    @property
    def unanswerable(self) -> int:
        """The number of queries without an answer."""
        return len(self.alarm)

    @property
    def answerable(self) -> int:
        """The number of queries with relevant gold."""
        return len(self.answerable_rows)

    @cached_property
    def auroc(self) -> float:
        """The chance that the top score of a query with an answer is higher than that of one without."""
        return auroc(self.tops, self.alarm)

    @cached_property
    def auroc_interval(self) -> Interval:
        """The 95 % interval of the AUROC; NaN with fewer than five queries of either kind."""
        return auroc_interval(self.auroc, len(self.tops), len(self.alarm))

    def at(self, threshold: float) -> ThresholdPoint:
        """The results with a threshold.

        Args:
            threshold: the lowest score that is returned.
        """
        if isinstance(threshold, bool) or not isinstance(threshold, int | float) or threshold != threshold:
            raise BadArgument("a threshold is a number", got=threshold, hint="0.7")
        whole = mean_defined(self._recalls(-inf))
        recall = mean_defined(self._recalls(threshold))
        return ThresholdPoint(
            threshold, mean_defined(self._alarms(threshold)), recall, recall / whole if whole else nan
        )

    @cached_property
    def points(self) -> list[ThresholdPoint]:
        """The curve: the thresholds at which something changes, at most about a hundred, the highest first."""
        values = self._candidates(np.ones(len(self.alarm), bool), np.ones(self.answerable, bool))
        if len(values) > _MAX_POINTS:
            values = values[np.unique(np.linspace(0, len(values) - 1, _MAX_POINTS).round().astype(np.int64))]
        return [self.at(value) for value in values.tolist()]

    def keeping(self, share: float) -> ThresholdPoint:
        """The point with the fewest false alarms that keeps this share of the recall.

        Args:
            share: the share of the recall without a threshold, from 0 to 1.
        """
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise BadArgument("a share of the recall is a number from 0 to 1", got=share, hint="0.95")
        values = self._candidates(np.ones(len(self.alarm), bool), np.ones(self.answerable, bool))
        low, high = 0, len(values)  # recall falls as the threshold rises
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.at(float(values[middle])).kept >= share - 1e-12 else (middle + 1, high)
        if low == len(values):
            return self.at(-inf)
        # Of all thresholds with as few false alarms, the lowest one keeps most of the recall.
        alarms = np.sort(self.alarm)
        above = len(alarms) - alarms.searchsorted(values)
        return self.at(_short(values, int(np.flatnonzero(above == above[low])[-1])))

    def _alarms(self, threshold: float) -> Floats:
        """1 for each query without an answer for which anything is returned."""
        return ((self.alarm >= threshold) & (self.alarm > -inf)).astype(float)

    def _recalls(self, threshold: float) -> Floats:
        """The recall of each query with relevant gold."""
        gold = np.bincount(self.gold_row, minlength=self.answerable)
        found = (self.score >= threshold) & (self.score > -inf)
        return np.bincount(self.gold_row[found], minlength=self.answerable) / np.maximum(gold, 1)

    def _candidates(self, alarms: Bools, queries: Bools) -> Floats:
        """The scores at which the results of some queries change, the highest first."""
        scores = np.concatenate([self.alarm[alarms], self.score[queries[self.gold_row]]])
        return np.unique(scores[np.isfinite(scores)])[::-1]

    def _best(self, alarms: Bools, queries: Bools) -> float:
        """The threshold with the largest recall kept minus false alarms on some queries; -inf if none is better.

        It is between the lowest score that it keeps and the highest one that it does not.
        """
        values = self._candidates(alarms, queries)
        weight = 1 / np.maximum(np.bincount(self.gold_row, minlength=self.answerable), 1)
        own = queries[self.gold_row] & (self.score > -inf)
        order = np.argsort(self.score[own])
        score, part = self.score[own][order], weight[self.gold_row[own][order]]
        left = np.append(np.cumsum(part[::-1])[::-1], 0.0)
        tops = np.sort(self.alarm[alarms])
        kept = left[score.searchsorted(values)] / (left[0] or 1.0)
        alarm = (len(tops) - tops.searchsorted(values)) / max(len(tops), 1)
        gain = np.round(kept - alarm, 12)
        without = round(1.0 - float((tops > -inf).mean()) if len(tops) else 1.0, 12)
        if not len(values) or gain.max() <= without:
            return -inf
        last = int(np.flatnonzero(gain == gain.max())[-1])
        return _short(values, last)

    @cached_property
    def choice(self) -> ThresholdChoice | None:
        """The best threshold with its effect on held-out queries; None if none is better than no threshold.

        Each tenth of the queries gets the threshold that is the best one on the others, so the figures are of queries
        that had no part in the choice. The intervals hold for any threshold that is chosen from the data: they are
        around the figures of these queries.
        """
        every, all_queries = np.ones(len(self.alarm), bool), np.ones(self.answerable, bool)
        best = self._best(every, all_queries)
        if best == -inf:
            return None
        folds = min(_FOLDS, len(self.alarm), self.answerable)
        alarms, losses = np.full(len(self.alarm), nan), np.full(self.answerable, nan)
        if folds > 1:
            of_alarm, of_query = self._folds(self.alarm_rows, folds), self._folds(self.answerable_rows, folds)
            for fold in range(folds):
                chosen = self._best(of_alarm != fold, of_query != fold)
                alarms[of_alarm == fold] = self._alarms(chosen)[of_alarm == fold]
                losses[of_query == fold] = (self._recalls(-inf) - self._recalls(chosen))[of_query == fold]
        before, after = self.at(-inf), self.at(best)
        return ThresholdChoice(
            best,
            before,
            after,
            mean_defined(alarms),
            share_interval(after.false_alarm, len(self.alarm)),
            mean_defined(losses),
            share_interval(before.recall - after.recall, self.answerable),
        )

    def _folds(self, rows: Ints, folds: int) -> Ints:
        """The number of the part of each query; by the order of the ids, so that the order of the rows is no matter."""
        number = np.empty(len(rows), np.int64)
        number[sorted(range(len(rows)), key=lambda i: self.ids[int(rows[i])])] = np.arange(len(rows)) % folds
        return number


def _short(values: Floats, place: int) -> float:
    """A threshold that keeps the value at this place and not the next lower one: near their middle, with few digits."""
    high = float(values[place])
    low = float(values[place + 1]) if place + 1 < len(values) else high - max(abs(high) / 100, 1e-6)
    middle = low + (high - low) / 2
    shorter = (float(f"{middle:.{digits}g}") for digits in range(2, 17))
    return next((short for short in shorter if low < short <= high), high)


def thresholds_of(run: Run, k: int | None) -> Thresholds:
    """The false alarms and the recall of a run at each threshold."""
    if isinstance(k, bool) or not (k is None or (isinstance(k, int) and k > 0)):
        raise BadArgument("k is a whole number from 1", got=k)
    one_row_each(run, "thresholds")
    hits, k = run.all_hits, k or shown_cutoff(run) or _DEFAULT_CUTOFF
    without = run.unanswerable
    if not without.any():
        raise BadArgument("thresholds need queries without an answer", hint='"answerable": false in some samples')
    scores = raw_scores(run)
    if scores is None:
        raise BadArgument("thresholds need retrieval scores", hint='"score" in each record of retrieved')
    rank, query = row_number(starts(hits.depth)) + 1, np.repeat(np.arange(hits.queries), hits.depth)
    top = np.where(rank <= k, scores, -inf)
    unknown = np.bincount(query[np.isnan(scores)], minlength=hits.queries) > 0
    known = ~unknown & ~np.isin(np.arange(hits.queries), list(hits.failed))
    best = top_scores(np.nan_to_num(top, nan=-inf, posinf=inf, neginf=-inf), hits.depth)
    relevant = is_relevant(hits.gold_items.grade)
    has_gold = np.bincount(hits.gold_query[relevant], minlength=hits.queries) > 0
    answerable = np.flatnonzero(known & ~without & has_gold)
    if not len(answerable) or not (known & without).any():
        raise BadArgument("thresholds need queries with relevant gold, and queries without an answer, with scores")
    number = np.full(hits.queries, -1)
    number[answerable] = np.arange(len(answerable))
    own = relevant & (number[hits.gold_query] >= 0)
    return Thresholds(
        k=k,
        ids=run.ids,
        alarm=best[known & without],
        alarm_rows=np.flatnonzero(known & without),
        tops=best[answerable],
        score=_found_scores(run, top)[own],
        gold_row=number[hits.gold_query[own]],
        answerable_rows=answerable,
        unknown=int(unknown.sum()),
    )


def _found_scores(run: Run, top: Floats) -> Floats:
    """The highest score in the top k at which each gold item was found."""
    hits = run.all_hits
    whole = is_relevant(hits.grade) if hits.part is None else is_relevant(hits.grade) & ~hits.part
    score = np.full(len(hits.gold_items.grade), -inf)
    found = top[hits.totals.row(hits.query[whole], hits.rank[whole])]
    np.maximum.at(score, hits.gold[whole], np.where(np.isnan(found), -inf, found))
    return score


def raw_scores(run: Run) -> Floats | None:
    """The retrieval score at each rank of each query; None if they are not stored. NaN if one is not known."""
    hits, stored = run.all_hits, run.stored_items
    known = hits.totals.at_rank.get(RAW_SCORE)
    if known is not None and not np.isnan(known).any():
        return known
    if stored is None or "score" not in stored.retrieved:
        return known
    whole = np.diff(stored.start) == hits.depth
    if known is None and not whole.all():
        return None
    # A part of a merged run may lack scores next to its hits; its stored items have them if they are whole rankings.
    scores = np.full(int(hits.depth.sum()), nan) if known is None else known.copy()
    rows = np.flatnonzero(whole)
    given = np.array(stored.retrieved["score"], float)
    into, source = take_ragged(starts(hits.depth), rows)[0], take_ragged(stored.start, rows)[0]
    scores[into] = np.where(np.isnan(scores[into]), given[source], scores[into])
    return scores


def naucs_of(run: Run) -> dict[str, dict[str, float]]:
    """MTEB's nAUC of each metric, by the confidences max, std and diff1."""
    scores = raw_scores(run)
    if scores is None:
        raise BadArgument(
            "nAUC needs the retrieval scores of whole rankings", hint='"score" in each record of retrieved'
        )
    by = confidences(scores, starts(run.all_hits.depth))
    found = {}
    columns = {name: run.scores[name] for metric in run.metrics for name in metric.names if sign_of(name) > 0}
    for name, values in columns.items():
        defined = ~np.isnan(values)
        found[name] = {own: nauc(confidence[defined], values[defined]) for own, confidence in by.items()}
    return found
