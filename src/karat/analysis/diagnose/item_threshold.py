"""A score threshold that drops items of the top k: the precision that it gains, also on held-out queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, row_number
from karat.analysis.diagnose.miss import Missed
from karat.analysis.diagnose.other_cutoffs import MAX_LOSS
from karat.run import Run
from karat.run.stored_items import StoredItems
from karat.samples.notes import Note
from karat.stats import MIN_QUERIES, difference_intervals

_MIN_GAIN = 0.02
"""The precision that a threshold must gain, also on held-out queries."""
_FOLDS = 10


class _Scored(NamedTuple):
    """The items in the top k of judged queries, the highest score first."""

    score: Floats
    relevant: Bools
    gold: Ints
    """The number of gold items first found at each item."""
    query: Ints
    missing: Ints
    """The number of relevant gold items of each query that are not in the top k."""

    def within(self, queries: Bools) -> _Scored:
        """The items and the gold of these queries."""
        keep = queries[self.query]
        return _Scored(self.score[keep], self.relevant[keep], self.gold[keep], self.query[keep], self.missing[queries])

    @property
    def gold_items(self) -> int:
        """The number of relevant gold items."""
        return int(self.gold.sum() + self.missing.sum())


def item_threshold(stored: StoredItems, run: Run, missed: Missed) -> Iterator[Note]:
    """The threshold that raises the pooled precision most at a negligible loss of recall."""
    if "score" not in stored.retrieved or stored.extent.places < missed.k:
        return
    items = _scored(stored, run, missed)
    found = _best(items)
    if found is None:
        return
    of_row = np.arange(len(run)) if run.repeats is None else run.repeats.query
    names = run.ids if run.repeats is None else run.repeats.queries
    missing = np.bincount(of_row, items.missing, minlength=len(names)).astype(np.int64)
    items = items._replace(query=of_row[items.query], missing=missing)
    used = np.unique(items.query)
    kept = items.score >= found.score
    gold = items.gold_items
    details = {
        "k": missed.k, "threshold": found.text, "queries": len(used),
        "precision": [float(items.relevant.mean()), float(items.relevant[kept].mean())],
        "recall": [float(items.gold.sum() / gold), float(items.gold[kept].sum() / gold)],
    }  # fmt: skip
    if len(used) >= MIN_QUERIES:
        order = np.array(sorted(used.tolist(), key=lambda query: names[query]), np.int64)
        tested = _held_out(items, order)
        if tested["held_out"][0] < _MIN_GAIN:
            return
        details |= tested
    yield Note("score_threshold", details=details)


class _Threshold(NamedTuple):
    """A score, and the same with few digits."""

    score: float
    text: str


def _best(items: _Scored) -> _Threshold | None:
    """The threshold of the highest precision that keeps nearly all gold; None if it gains too little."""
    score, relevant, gold = items[:3]
    if not len(score) or not gold.sum():
        return None
    last = np.append(score[1:] != score[:-1], True)  # a threshold keeps all items of a score, or none
    precision = (np.cumsum(relevant) / np.arange(1, len(score) + 1))[last]
    recall = (np.cumsum(gold) / items.gold_items)[last]
    good = np.flatnonzero(recall >= recall[-1] - MAX_LOSS)
    best = int(good[precision[good].argmax()])
    if precision[best] - precision[-1] < _MIN_GAIN:
        return None
    return _Threshold(float(score[last][best]), _short(score[last], best))


def _held_out(items: _Scored, order: Ints) -> dict[str, list[float]]:
    """The gain in precision with its interval, and the loss of recall, by thresholds chosen on other queries.

    A pooled precision is a ratio of two sums. Its interval is that of the mean of the linearised ratio of each query.
    """
    queries = len(items.missing)
    fold = np.full(queries, -1)
    fold[order] = np.arange(len(order)) % _FOLDS
    limit = np.full(queries, -np.inf)
    for number in range(min(_FOLDS, len(order))):
        found = _best(items.within(fold != number))
        limit[fold == number] = -np.inf if found is None else found.score
    own = limit[items.query]
    kept = (items.score >= own) | (own == -np.inf)

    def per_query(values: Bools) -> Floats:
        return np.bincount(items.query, values.astype(float), minlength=queries)[order].astype(float)

    before, after = per_query(items.relevant), per_query(items.relevant & kept)
    all_items, returned = per_query(np.ones(len(kept), bool)), per_query(kept)
    gain = after.sum() / returned.sum() - before.sum() / all_items.sum()
    linear = (after - after.sum() / returned.sum() * returned) / returned.mean()
    linear -= (before - before.sum() / all_items.sum() * all_items) / all_items.mean()
    low, high = difference_intervals({"gain": gain + linear})["gain"]
    return {"held_out": [float(gain), low, high], "loss": [float(items.gold[~kept].sum() / items.gold_items)]}


def _short(scores: Floats, place: int) -> str:
    """The score at a place with just enough digits to be above the next lower one."""
    if place + 1 == len(scores):
        return f"{scores[place]:.6g}"
    for digits in range(2, 17):
        text = f"{scores[place]:.{digits}g}"
        if scores[place + 1] < float(text) <= scores[place]:
            return text
    return repr(float(scores[place]))


def _scored(stored: StoredItems, run: Run, missed: Missed) -> _Scored:
    """The items in the top k of judged queries, each with its score, its relevance and the gold first found there."""
    start, k, hits = stored.start, missed.k, run.all_hits
    score = np.array(stored.retrieved["score"], float)
    size = np.diff(start)
    relevant, gold = np.zeros(len(score), bool), np.zeros(len(score), np.int64)
    good = (hits.grade > 0) & (hits.rank <= np.minimum(size[hits.query], k)) & ~hits.repeated
    relevant[start[hits.query[good]] + hits.rank[good] - 1] = True
    found = np.flatnonzero(missed.relevant & missed.found & (missed.first <= size[missed.query]))
    np.add.at(gold, start[missed.query[found]] + missed.first[found].astype(np.int64) - 1, 1)
    query = np.repeat(np.arange(len(run)), size)
    top = np.flatnonzero((row_number(start) < k) & ~np.isin(query, list(hits.failed)))
    order = top[np.argsort(-score[top], kind="stable")]
    missing = np.bincount(missed.query[missed.relevant], minlength=len(run))
    missing -= np.bincount(missed.query[found], minlength=len(run))
    return _Scored(score[order], relevant[order], gold[order], query[order], missing)
