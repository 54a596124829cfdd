"""Advice from the misses of a run: what would raise recall or precision, each with the numbers that support it.

Every piece of advice is a note; `report/advice.py` has the sentences.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, row_number
from karat.analysis.diagnose.causes import Causes
from karat.analysis.diagnose.miss import Finding, Missed
from karat.run import Run
from karat.run.stored_items import StoredItems, without_mark
from karat.samples.notes import Note

_MAX_LOSS, _MIN_GAIN = 0.01, 0.02
"""The recall that a score threshold may cost, and the precision that it must gain."""
_LOW_DENSITY = 0.3
"""The share of gold in relevant chunks below which chunks are called long."""
COULD_COUNT = ("case or white space", "nearly equal", "cut differently", "split over chunks")
"""Causes for which another judge, or other gold, would count the item as found."""


def advise(
    run: Run, missed: Missed, findings: dict[int, Finding], causes: Causes, other: Run | None
) -> tuple[Note, ...]:
    """All advice that the numbers support."""
    notes = [*_deeper(run, missed), *_another_judge(run, missed, findings)]
    if run.stored_items is not None:
        notes += _without_copies(run, missed, causes)
        notes += _threshold(run.stored_items, run, missed)
        notes += _chunk_size(run.stored_items, run, missed)
    return tuple(notes if other is None else [*notes, _union(run, missed, other)])


def _deeper(run: Run, missed: Missed) -> Iterator[Note]:
    """Recall at 2k, if anything was retrieved below k."""
    k = missed.k
    if (run.all_hits.depth > k).any() and len(missed.items):
        more = int((missed.relevant & (missed.first > k) & (missed.first <= 2 * k)).sum())
        recall, deeper = missed.recall(missed.found), missed.recall(missed.first <= 2 * k)
        yield Note("deeper", more, details={"k": k, "recall": recall, "deeper": deeper})


def _another_judge(run: Run, missed: Missed, findings: dict[int, Finding]) -> Iterator[Note]:
    """Recall if items in the top k in another form were counted as found."""
    p = run.provenance
    fuzzy = p.compares == "text" and "threshold" in p.judge_settings
    for cause in COULD_COUNT:
        numbers = [n for n, f in findings.items() if f.cause == cause and max(f.ranks) <= missed.k]
        if numbers:
            found = missed.found.copy()
            found[numbers] = True
            details = {"k": missed.k, "cause": cause, "compares": "fuzzy" if fuzzy else p.compares}
            yield Note("another_judge", len(numbers), details=details | {"recall": missed.recall(found)})


def _without_copies(run: Run, missed: Missed, causes: Causes) -> Iterator[Note]:
    """Recall if copies were removed."""
    k = missed.k
    copies = [causes.copies(row) for row in range(len(run))]
    inside = sum(rank <= k for own in copies for rank in own)
    if not inside:
        return
    first = missed.first.copy()
    for number in np.flatnonzero(missed.relevant & np.isfinite(first)).tolist():
        own = copies[int(missed.query[number])]
        # Gold that is found on a copy is removed with it.
        first[number] = np.inf if first[number] in own else first[number] - sum(rank < first[number] for rank in own)
    without, recall = missed.recall(first <= k), missed.recall(missed.found)
    ranks = int(np.minimum(run.all_hits.depth, k).sum())
    if without > recall:
        yield Note("copies", inside, ranks, details={"k": k, "recall": recall, "without": without})


def _threshold(stored: StoredItems, run: Run, missed: Missed) -> Iterator[Note]:
    """The score threshold that raises precision most at a negligible loss of recall."""
    if "score" not in stored.retrieved or stored.extent.places < missed.k:
        return
    score, relevant, gold = _scored(stored, run, missed)
    if not len(score) or not gold.sum():
        return
    order = np.argsort(-score, kind="stable")
    score, relevant, gold = score[order], relevant[order], gold[order]
    last = np.append(score[1:] != score[:-1], True)  # a threshold keeps all items of a score, or none
    precision = (np.cumsum(relevant) / np.arange(1, len(score) + 1))[last]
    recall = (np.cumsum(gold) / int(missed.relevant.sum()))[last]
    good = np.flatnonzero(recall >= recall[-1] - _MAX_LOSS)
    best = int(good[precision[good].argmax()])
    if precision[best] - precision[-1] >= _MIN_GAIN:
        details = {
            "k": missed.k, "threshold": _short(score[last], best),
            "precision": (float(precision[-1]), float(precision[best])),
            "recall": (float(recall[-1]), float(recall[best])),
        }  # fmt: skip
        yield Note("score_threshold", details=details)


def _short(scores: Floats, place: int) -> str:
    """The score at a place with just enough digits to be above the next lower one."""
    if place + 1 == len(scores):
        return f"{scores[place]:.6g}"
    for digits in range(2, 17):
        text = f"{scores[place]:.{digits}g}"
        if scores[place + 1] < float(text) <= scores[place]:
            return text
    return repr(float(scores[place]))


def _scored(stored: StoredItems, run: Run, missed: Missed) -> tuple[Floats, Bools, Ints]:
    """For each item in the top k: its score, its relevance, and the number of gold items first found there."""
    start, k, hits = stored.start, missed.k, run.all_hits
    score = np.array(stored.retrieved["score"], float)
    size = np.diff(start)
    relevant, gold = np.zeros(len(score), bool), np.zeros(len(score), np.int64)
    good = (hits.grade > 0) & (hits.rank <= np.minimum(size[hits.query], k)) & ~hits.repeated
    relevant[start[hits.query[good]] + hits.rank[good] - 1] = True
    found = np.flatnonzero(missed.relevant & missed.found & (missed.first <= size[missed.query]))
    np.add.at(gold, start[missed.query[found]] + missed.first[found].astype(np.int64) - 1, 1)
    top = row_number(start) < k
    return score[top], relevant[top], gold[top]


def _chunk_size(stored: StoredItems, run: Run, missed: Missed) -> Iterator[Note]:
    """The share of gold in the relevant texts, if gold items are passages of them."""
    if run.provenance.compares not in {"quote", "span"}:
        return
    hits, k = run.all_hits, missed.k
    gold = relevant = total = 0
    for row in np.unique(hits.query[(hits.rank <= k) & (hits.grade > 0)]).tolist():
        items = stored.items(row)
        texts = [without_mark(item.text or "") for item in items.retrieved[:k]]
        first, last = np.searchsorted(hits.query, (row, row + 1)).tolist()
        gold_at: dict[int, int] = {}
        for i in range(first, last):
            rank, number = int(hits.rank[i]), int(hits.gold[i] - hits.gold_items.start[row])
            if rank <= len(texts) and hits.grade[i] > 0:
                sizes = [len(g.text) for g in items.gold if g.item == number and g.text]
                gold_at[rank] = gold_at.get(rank, 0) + max(sizes, default=0)
        gold += sum(min(size, len(texts[rank - 1])) for rank, size in gold_at.items())
        relevant += sum(len(texts[rank - 1]) for rank in gold_at)
        total += sum(map(len, texts))
    if relevant and gold / relevant < _LOW_DENSITY:
        yield Note("long_chunks", gold, relevant, details={"k": k, "total": total})


def _union(run: Run, missed: Missed, other: Run) -> Note:
    """The gold that two runs find together: an upper bound for a hybrid of both."""
    number_of: dict[tuple[str, str], int] = {}
    for number, key in enumerate(_gold_keys(other)):
        number_of.setdefault(key, number)
    numbers = np.array([number_of.get(key, -1) for key in _gold_keys(run)], np.int64)
    there = np.where(numbers >= 0, Missed(other, missed.k).found[numbers], False)
    more = int((missed.relevant & there & ~missed.found).sum())
    recalls = [missed.recall(found) for found in (missed.found | there, missed.found, there)]
    return Note("union", more, len(missed.items), details={"k": missed.k, "recalls": recalls})


def _gold_keys(run: Run) -> Iterator[tuple[str, str]]:
    rows = run.all_hits.gold_query.tolist()
    return ((run.ids[row], label) for row, label in zip(rows, run.all_hits.gold_items.label, strict=True))
