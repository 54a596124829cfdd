"""What follows from the misses of a run: each sentence rests on numbers of this run, and names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.display import plural
from karat.analysis.diagnose.causes import Causes
from karat.analysis.diagnose.miss import Cause, Finding, Missed
from karat.run import Run
from karat.run.stored_items import without_mark

_LOSS, _GAIN = 0.01, 0.02
"""How much recall a score threshold may cost, and how much precision it must bring to be worth a sentence."""
_LITTLE = 0.3
_AS_GOOD: dict[Cause, tuple[str, str, str]] = {
    "case or white space": ("but for case or white space", "judge text", "ids written the same on both sides"),
    "nearly equal": ("as a nearly equal text", "judge fuzzy", "near copies as alternatives, in one group"),
    "cut differently": ("cut differently", "judge spans", "judge spans"),
    "split over chunks": ("split over chunks", "judge spans", "judge spans"),
}
"""Causes of which a judge could say that the item was found: how it stands in the top k, and what would count it,
for texts and for ids."""
_BY_JUDGE = {
    ("contains", "case or white space"): "contains(fold=(space, case))",
    ("spans", "case or white space"): "gold quotes written as in the documents",
    ("fuzzy", "nearly equal"): "a lower threshold of fuzzy",
}
"""What would count it where the judge is another one than equality."""


def advise(run: Run, missed: Missed, findings: dict[int, Finding], causes: Causes, other: Run | None) -> list[str]:
    """Every sentence that the numbers support."""
    told = [
        *_deeper(run, missed),
        *_judged_otherwise(run, missed, findings),
        *_without_copies(run, missed, causes),
        *_threshold(run, missed),
        *_chunk_size(run, missed),
    ]
    return told if other is None else [*told, _union(run, missed, other)]


def _deeper(run: Run, missed: Missed) -> Iterator[str]:
    """What recall would be at 2k, if anything was retrieved below k."""
    k = missed.k
    if not (run.all_hits.depth > k).any() or not len(missed.items):
        return
    now, then = missed.recall(missed.found), missed.recall(missed.first <= 2 * k)
    more = int((missed.relevant & (missed.first > k) & (missed.first <= 2 * k)).sum())
    if more:
        stand = plural(more, "missed gold item stands", "missed gold items stand")
        yield f"recall@{2 * k} is {then:.3f}, recall@{k} {now:.3f}: {stand} at ranks {k + 1} to {2 * k}."
    else:
        yield f"recall@{2 * k} is {then:.3f} like recall@{k}: no missed gold item stands at ranks {k + 1} to {2 * k}."


def _judged_otherwise(run: Run, missed: Missed, findings: dict[int, Finding]) -> Iterator[str]:
    """What recall would be if what is as good as found counted as found."""
    ids = run.provenance.judge.startswith("ids")
    for cause, (how, for_texts, for_ids) in _AS_GOOD.items():
        numbers = [n for n, f in findings.items() if f.cause == cause and max(f.ranks) <= missed.k]
        if not numbers:
            continue
        found = missed.found.copy()
        found[numbers] = True
        count = plural(len(numbers), "missed gold item stands", "missed gold items stand")
        recall = f"recall@{missed.k} would be {missed.recall(found):.3f}"
        by = for_ids if ids else _BY_JUDGE.get((run.provenance.judge.partition("(")[0], cause), for_texts)
        yield f"{count} in the top {missed.k} {how}: counted as found ({by}), {recall}."


def _without_copies(run: Run, missed: Missed, causes: Causes) -> Iterator[str]:
    """How much recall deduplication frees."""
    if run.stored_items is None:
        return
    k = missed.k
    rows = range(len(run))
    copies = [causes.copies(row) for row in rows]
    inside = sum(rank <= k for own in copies for rank in own)
    if not inside:
        return
    first = missed.first.copy()
    for number in np.flatnonzero(missed.relevant & np.isfinite(first)).tolist():
        own = copies[int(missed.query[number])]
        # Gold that stands on a copy leaves with it.
        first[number] = np.inf if first[number] in own else first[number] - sum(rank < first[number] for rank in own)
    then, now = missed.recall(first <= k), missed.recall(missed.found)
    places = int(np.minimum(run.all_hits.depth, k).sum())
    if then > now:
        yield (
            f"{inside:,} of {places:,} places in the top {k} hold copies: without them recall@{k} would be "
            f"{then:.3f}, now {now:.3f}."
        )


def _threshold(run: Run, missed: Missed) -> Iterator[str]:
    """The score below which leaving items out raises precision most, at hardly any loss of recall."""
    kept, k = run.stored_items, missed.k
    if kept is None or "score" not in kept.retrieved or kept.extent.places < k:
        return
    score, relevant, gold = _scored(run, missed)
    total = int(missed.relevant.sum())
    if not len(score) or not gold.sum():
        return
    order = np.argsort(-score, kind="stable")
    score, relevant, gold = score[order], relevant[order], gold[order]
    last = np.append(score[1:] != score[:-1], True)  # a threshold keeps all of one score, or none
    precision = (np.cumsum(relevant) / np.arange(1, len(score) + 1))[last]
    recall = (np.cumsum(gold) / total)[last]
    good = np.flatnonzero(recall >= recall[-1] - _LOSS)
    best = good[precision[good].argmax()]
    if precision[best] - precision[-1] < _GAIN:
        return
    found = f"take the share of all gold that is found from {recall[-1]:.3f} to {recall[best]:.3f}"
    lost = "lose no gold" if recall[best] == recall[-1] else found
    yield (
        f"A score threshold of {_short(score[last], int(best))} would raise the share of the top {k} that is relevant "
        f"from {precision[-1]:.3f} to {precision[best]:.3f}, and {lost}."
    )


def _short(scores: Floats, place: int) -> str:
    """The score at a place in few digits: just enough to lie above the next lower one."""
    if place + 1 == len(scores):
        return f"{scores[place]:.6g}"
    for digits in range(2, 17):
        text = f"{scores[place]:.{digits}g}"
        if scores[place + 1] < float(text) <= scores[place]:
            return text
    return repr(float(scores[place]))


def _scored(run: Run, missed: Missed) -> tuple[Floats, Bools, Ints]:
    """For each item of the top k: its score, whether it is relevant, and how many gold items are first found there."""
    assert run.stored_items is not None
    start, k, hits = run.stored_items.start, missed.k, run.all_hits
    score = np.array(run.stored_items.retrieved["score"], float)
    size = np.diff(start)
    rank = np.arange(len(score)) - np.repeat(start[:-1], size) + 1
    relevant, gold = np.zeros(len(score), bool), np.zeros(len(score), np.int64)
    good = (hits.grade > 0) & (hits.rank <= np.minimum(size[hits.query], k)) & ~hits.repeated
    relevant[start[hits.query[good]] + hits.rank[good] - 1] = True
    found = np.flatnonzero(missed.relevant & missed.found & (missed.first <= size[missed.query]))
    np.add.at(gold, start[missed.query[found]] + missed.first[found].astype(np.int64) - 1, 1)
    top = rank <= k
    return score[top], relevant[top], gold[top]


def _chunk_size(run: Run, missed: Missed) -> Iterator[str]:
    """How much of the relevant texts is gold, where gold are passages of them."""
    if run.stored_items is None or not run.provenance.judge.startswith(("contains", "spans")):
        return
    hits, k = run.all_hits, missed.k
    gold = read = whole = 0
    rows = np.unique(hits.query[(hits.rank <= k) & (hits.grade > 0)]).tolist()
    for row in rows:
        items = run.stored_items.items(row)
        texts = [without_mark(item.text or "") for item in items.retrieved[:k]]
        first, last = np.searchsorted(hits.query, (row, row + 1)).tolist()
        best: dict[int, int] = {}
        for i in range(first, last):
            rank, number = int(hits.rank[i]), int(hits.gold[i] - hits.gold_items.start[row])
            if rank <= len(texts) and hits.grade[i] > 0:
                sizes = [len(g.text) for g in items.gold if g.item == number and g.text]
                best[rank] = best.get(rank, 0) + max(sizes, default=0)
        gold += sum(min(size, len(texts[rank - 1])) for rank, size in best.items())
        read += sum(len(texts[rank - 1]) for rank in best)
        whole += sum(map(len, texts))
    if read and gold / read < _LITTLE:
        yield (
            f"Of the characters of relevant chunks in the top {k} {_percent(gold / read)} are gold, of all characters "
            f"there {_percent(gold / whole)}: chunks are {read / gold:.0f} times as long as what is sought in them."
        )


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _union(run: Run, missed: Missed, other: Run) -> str:
    """What both runs find together: the most that a hybrid of the two could."""
    k = missed.k
    there = Missed(other, k)
    where = _same_gold(run, other)
    found = missed.found | (np.where(where >= 0, there.found[where], False))
    alone, second = missed.recall(missed.found), missed.recall(np.where(where >= 0, there.found[where], False))
    more = int((missed.relevant & found & ~missed.found).sum())
    total = len(missed.items)
    return (
        f"The top {k} of both runs together (up to {2 * k} items) have a recall of {missed.recall(found):.3f}, "
        f"alone {alone:.3f} and {second:.3f}: the other finds {more:,} of the {total:,} missed gold items."
    )


def _same_gold(run: Run, other: Run) -> Ints:
    """For each gold item of a run, its number in the other one; -1 if it is not there."""
    numbers: dict[tuple[str, str], int] = {}
    for name, number in _named(other):
        numbers.setdefault(name, number)
    return np.array([numbers.get(name, -1) for name, _ in _named(run)], np.int64)


def _named(run: Run) -> Iterator[tuple[tuple[str, str], int]]:
    of, ids = run.all_hits.gold_items, run.ids
    rows: Sequence[int] = run.all_hits.gold_query.tolist()
    for number, (row, label) in enumerate(zip(rows, of.label, strict=True)):
        yield (ids[row], label), number
