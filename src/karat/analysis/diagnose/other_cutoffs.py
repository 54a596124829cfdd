"""Other cutoffs and orders of the same rankings: a higher or a lower k, and a perfect reranker."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np

from karat._internal.arrays import Floats, row_number, starts
from karat.analysis.diagnose.miss import Gain, Missed, first_ranks
from karat.hits import Hits
from karat.hits.reranking import ideal
from karat.hits.totals import Totals
from karat.metrics import parse
from karat.run import Run
from karat.samples.notes import Note

MAX_LOSS = 0.01
"""The recall that a change made for precision may cost."""
_MOST_CANDIDATES = 100
"""The number of items that a reranker is assumed to read at most, unless 2k is more."""


def cutoff_advice(run: Run, missed: Missed) -> tuple[Note, ...]:
    """Advice on k and on reranking, as far as the rankings of the run support it."""
    higher = tuple(_higher(run, missed))
    higher += tuple(_reranked(run, missed, *(note.details["recall"] for note in higher)))
    lower = tuple(_lower(run, missed))
    return higher + (lower or (() if higher else tuple(_better_order(run, missed))))


def _higher(run: Run, missed: Missed) -> Iterator[Note]:
    """A higher k that finds some of the gold below k: 2k, or the first rank at which there is any."""
    k, below = missed.k, missed.first[missed.items]
    below = below[np.isfinite(below)]
    if not len(below):
        return
    higher = min(2 * k, int(run.all_hits.depth.max())) if below.min() <= 2 * k else int(below.min())
    gain = missed.gain(missed.first <= higher, can_lose=False)
    if gain.helps:
        precision = Gain.of(precisions(run, k), precisions(run, higher))
        details = {"k": k, "higher": higher, "median": int(np.median(below)), "recall": gain, "precision": precision}
        yield Note("higher_k", len(below), details=details)


def _reranked(run: Run, missed: Missed, *higher: Gain) -> Iterator[Note]:
    """A perfect reranker of the fewest candidates that have nearly all of the gold it could lift."""
    k, first = missed.k, missed.first
    below = np.unique(first[missed.items])
    below = below[np.isfinite(below)]
    near = below[below <= max(2 * k, _MOST_CANDIDATES)]
    if not len(near):
        return
    candidates = max(_lowest(missed, near, missed.recall(first <= near[-1])), 2 * k)
    candidates = min(candidates, int(run.all_hits.depth.max()))
    hits = ideal(top(run.all_hits, candidates))
    gain = missed.gain(first_ranks(hits) <= k, can_lose=False)
    if gain.helps:
        precision = _reordered(precisions(run, k), precisions(run, k, hits))
        details = {"k": k, "candidates": candidates, "recall": gain, "precision": precision}
        yield Note("reranker", details={**details, "as_much": gain in higher})


def _lower(run: Run, missed: Missed) -> Iterator[Note]:
    """The lowest cutoff with nearly the same recall, if it is at most half of k."""
    k, recall = missed.k, missed.recall(missed.found)
    ks = np.unique(missed.first[(missed.first > 1) & (missed.first <= k // 2)])
    lower = _lowest(missed, np.append(1.0, ks), recall)
    if recall > 0 and k > 1 and lower and lower <= k // 2:
        precision = Gain.of(precisions(run, k), precisions(run, lower))
        details = {"k": k, "lower": lower, "recall": missed.gain(missed.first <= lower), "precision": precision}
        yield Note("lower_k", run.judged, len(run.queries), details=details)


def _better_order(run: Run, missed: Missed) -> Iterator[Note]:
    """The cutoff that would be enough if a perfect reranker ordered the top k, if it is at most half of k."""
    k, recall = missed.k, missed.recall(missed.found)
    if not recall > 0 or k == 1:
        return
    hits = ideal(top(run.all_hits, k))
    first = first_ranks(hits)
    enough = next((n for n in range(1, _most_gold(missed) + 1) if _nearly(missed.recall(first <= n), recall)), k)
    if enough <= k // 2:
        precision = _reordered(precisions(run, k), precisions(run, enough, hits))
        if precision.helps:
            yield Note("better_order", details={"k": k, "lower": enough, "precision": precision})


def _reordered(own: Floats, best: Floats) -> Gain:
    """The gain of a perfect order, by which a query can lose only if copies count, as by some conventions."""
    return Gain.of(own, best, can_lose=bool((best < own).any()))


def _most_gold(missed: Missed) -> int:
    """The highest number of gold items of a query in the top k, or half of k if that is less."""
    counts = np.bincount(missed.query[missed.relevant & missed.found])
    return min(int(counts.max(initial=0)), missed.k // 2)


def _lowest(missed: Missed, ranks: Floats, recall: float) -> int:
    """The lowest of these ranks, in order, with nearly this recall within it; 0 if there is none."""
    ks: Sequence[int] = ranks.astype(int).tolist()
    at = bisect_left(ks, True, key=lambda k: _nearly(missed.recall(missed.first <= k), recall))
    return ks[at] if at < len(ks) else 0


def _nearly(recall: float, whole: float) -> bool:
    return recall >= whole - MAX_LOSS


def precisions(run: Run, k: int, hits: Hits | None = None) -> Floats:
    """The precision of each query in the top k, by the convention of the run; of other hits, if they are given."""
    own = run.all_hits if hits is None else hits
    scores = parse(f"precision@{k}").scores(own, run.convention)[f"precision@{k}"]
    return run.per_query(np.where(np.isin(np.arange(len(run)), list(own.failed)), np.nan, scores))


def top(hits: Hits, k: int) -> Hits:
    """The hits within the top k."""
    keep, depth = hits.rank <= k, np.minimum(hits.depth, k)
    ranks = row_number(starts(hits.depth)) < k if hits.totals.at_rank else None
    return Hits(
        hits.query[keep], hits.rank[keep], hits.gold[keep], depth=depth,
        gold_items=hits.gold_items, grade=hits.grade[keep], repeated=hits.repeated[keep],
        part=None if hits.part is None else hits.part[keep], failed=hits.failed,
        totals=Totals(depth, {name: total[ranks] for name, total in hits.totals.at_rank.items()}),
    )  # fmt: skip
