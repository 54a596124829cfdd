"""Advice from the misses of a run: what would raise recall or precision, each with the numbers that support it.

Every piece of advice is a note; `report/advice.py` has the sentences.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import floor
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, row_number
from karat._internal.grammar import write_call
from karat.analysis.diagnose.causes import Causes
from karat.analysis.diagnose.miss import Cause, Finding, Missed
from karat.analysis.diagnose.similar import is_fuzzy
from karat.analysis.diagnose.trials import (
    Change,
    Trials,
    folded,
    unchanged,
    with_copies,
    with_neighbours,
    without_ranges,
)
from karat.errors import BadArgument
from karat.judges import find_judge
from karat.run import Run
from karat.run.stored_items import StoredItems
from karat.run.thresholds import ThresholdPoint
from karat.samples.notes import Note

_MAX_LOSS, _MIN_GAIN = 0.01, 0.02
"""The recall that a score threshold may cost, and the precision that it must gain."""
_LOW_DENSITY = 0.3
"""The share of gold in relevant chunks below which chunks are called long."""
_HALF = 0.5
COULD_COUNT: tuple[tuple[Cause, ...], ...] = (
    ("same words elsewhere",),
    ("case or white space",),
    ("nearly equal",),
    ("cut differently", "split over chunks"),
    ("right document, wrong chunk",),
)
"""Causes for which another judge, other gold or other chunks would count the item as found."""
_REMEDIES: tuple[Cause, ...] = ("nowhere in the run", "not retrieved")
"""Causes with advice that needs no trial."""


class _Way(NamedTuple):
    """A way in which items would count as found: a kind, the judge, and a change of the items."""

    kind: str
    judge: str
    change: Change = unchanged


def advise(
    run: Run, missed: Missed, findings: dict[int, Finding], causes: Causes, other: Run | None
) -> tuple[Note, ...]:
    """Advice for each cause, and what else the numbers support."""
    by_cause: dict[Cause, list[int]] = {}
    for number, finding in findings.items():
        by_cause.setdefault(finding.cause, []).append(number)
    notes: list[Note] = []
    if "below k" in by_cause:
        notes.append(_deeper(missed, by_cause["below k"]))
    if run.stored_items is not None:
        notes += _without_copies(run, missed, causes)
    notes += _merged(_other_ways(run, missed, findings, causes, Trials(run, missed)))
    notes += [
        Note("remedy", len(by_cause[cause]), details={"cause": cause}) for cause in _REMEDIES if cause in by_cause
    ]
    notes += _lower(run, missed)
    if run.stored_items is not None:
        notes += _threshold(run.stored_items, run, missed)
        notes += _chunk_size(run.stored_items, run, missed)
    return tuple(notes if other is None else [*notes, _union(run, missed, other)])


def _deeper(missed: Missed, below: Sequence[int]) -> Note:
    """The gold that was found below k: where it is, and recall at 2k."""
    details = {
        "k": missed.k, "median": int(np.median(missed.first[below])),
        "recall": missed.recall(missed.found), "deeper": missed.recall(missed.first <= 2 * missed.k),
    }  # fmt: skip
    return Note("deeper", len(below), details=details)


def _lower(run: Run, missed: Missed) -> Iterator[Note]:
    """The lowest cutoff with nearly the same recall, if it is at most half of k."""
    recall = missed.recall(missed.found)
    ks = [1, *np.unique(missed.first[(missed.first > 1) & (missed.first <= missed.k // 2)]).astype(int).tolist()]
    at = bisect_left(ks, True, key=lambda k: missed.recall(missed.first <= k) >= recall - _MAX_LOSS)
    if recall > 0 and at < len(ks) and missed.k > 1:
        details = {"k": missed.k, "lower": ks[at], "recalls": (missed.recall(missed.first <= ks[at]), recall)}
        yield Note("lower_k", run.judged, len(run.queries), details=details)


def _other_ways(
    run: Run, missed: Missed, findings: dict[int, Finding], causes: Causes, trials: Trials
) -> Iterator[Note]:
    """For items that are in the top k in another form: what would count them as found, tried out."""
    for group in COULD_COUNT:
        found = {n: f for n, f in findings.items() if f.cause in group}
        worst = min if group[0] == "right document, wrong chunk" else max
        inside = {n: f for n, f in found.items() if worst(f.ranks) <= missed.k}
        if not found:
            continue
        present = {f.cause for f in found.values()}
        details: dict[str, Any] = {"k": missed.k, "inside": bool(inside), "causes": [c for c in group if c in present]}
        for way in _ways(group[0], run, missed, inside, causes) if inside else ():
            trial = trials.of(way.judge, way.change)
            if trial is None or trial.recall > trial.own:
                details |= {"way": way.kind, "judge": way.judge} | ({} if trial is None else trial._asdict())
                break
        yield Note("another_way", len(inside or found), len(found), details=details)


def _merged(notes: Iterable[Note]) -> list[Note]:
    """The notes with those that advise the same judge as one."""
    merged: dict[object, Note] = {}
    for number, note in enumerate(notes):
        d = note.details
        key = ("judge", d["judge"]) if d.get("way") == "judge" else number
        if (first := merged.get(key)) is not None:
            details = {**d, "causes": [*first.details["causes"], *d["causes"]]}
            merged[key] = Note(note.kind, first.count + note.count, first.of + note.of, details=details)
        else:
            merged[key] = note
    return list(merged.values())


def _ways(cause: Cause, run: Run, missed: Missed, findings: Mapping[int, Finding], causes: Causes) -> Iterator[_Way]:
    """The ways that suit the judge of the run, the likeliest first; never the judge that it has."""
    p, settings = run.provenance, run.provenance.judge_settings
    in_use = p.judge
    if cause == "same words elsewhere":
        if not settings.get("corpus"):
            yield _Way("without ranges", in_use, without_ranges)
    elif cause == "right document, wrong chunk":
        if p.compares == "span" and not settings.get("tokenizer"):
            yield _Way("neighbours", write_call("spans", coverage=settings.get("coverage", _HALF)), with_neighbours)
    elif p.compares in {"id", "doc"}:
        if cause == "case or white space":
            yield _Way("spelling of ids", in_use, folded(causes.fold))
        elif cause == "nearly equal":
            yield _Way("alternatives", in_use, with_copies(_copies(missed, findings)))
        else:
            yield _Way("quotes", "spans", lambda _, items: items._replace(gold=list(map(causes.filled, items.gold))))
    elif p.compares in {"text", "quote", "span"}:
        judges = _judges(cause, p.compares, settings, findings)
        yield from (_Way("judge", name) for name in judges if find_judge(name).name != in_use)
        if cause == "case or white space":
            yield _Way("spelling of texts", in_use, folded(causes.fold))


def _judges(cause: Cause, compares: str, settings: Mapping[str, Any], findings: Mapping[int, Finding]) -> Iterator[str]:
    """Judges of texts that may find an item with this cause."""
    if cause == "case or white space":
        if compares == "quote":
            yield write_call(
                "contains", direction=settings.get("direction", "either"), fold=("unicode", "case", "space")
            )
        elif compares == "text":
            yield "text"
    elif cause == "nearly equal" and {"scorer", "threshold"} <= settings.keys():
        if is_fuzzy(compares, settings):
            yield write_call("fuzzy", threshold=_lowest(findings), scorer=settings["scorer"])
    elif cause == "nearly equal":
        yield from {"text": ("fuzzy",), "quote": ("spans", "fuzzy")}.get(compares, ())
    elif compares != "span":
        yield "spans"
    elif settings.get("coverage", _HALF) > _HALF:
        yield f"spans(coverage={_HALF})"


def _lowest(findings: Mapping[int, Finding]) -> float:
    """The lowest similarity of the near copies, rounded down."""
    return floor(100 * min(finding.similarity for finding in findings.values())) / 100


def _copies(missed: Missed, findings: Mapping[int, Finding]) -> dict[int, list[tuple[int, int]]]:
    """By query: the gold item within the query, and the rank of its near copy."""
    copies: dict[int, list[tuple[int, int]]] = {}
    for number, finding in findings.items():
        row = int(missed.query[number])
        item = number - int(np.searchsorted(missed.query, row))
        copies.setdefault(row, []).append((item, finding.ranks[0]))
    return copies


def _without_copies(run: Run, missed: Missed, causes: Causes) -> Iterator[Note]:
    """Recall if copies were removed."""
    k = missed.k
    judged = _judged(run)
    copies = [causes.copies(row) if judged[row] else [] for row in range(len(run))]
    inside = sum(rank <= k for own in copies for rank in own)
    if not inside:
        return
    first = missed.first.copy()
    for number in np.flatnonzero(missed.relevant & np.isfinite(first)).tolist():
        own = copies[int(missed.query[number])]
        # Gold that is found on a copy is removed with it.
        first[number] = np.inf if first[number] in own else first[number] - sum(rank < first[number] for rank in own)
    without, recall = missed.recall(first <= k), missed.recall(missed.found)
    ranks = int(np.minimum(run.all_hits.depth, k)[judged].sum())
    if without > recall:
        yield Note("copies", inside, ranks, details={"k": k, "recall": recall, "without": without})


def _judged(run: Run) -> Bools:
    """The queries that were judged, as a mask."""
    return ~np.isin(np.arange(len(run)), list(run.all_hits.failed))


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
    """For each item in the top k of a judged query: its score, its relevance, and the gold items first found there."""
    start, k, hits = stored.start, missed.k, run.all_hits
    score = np.array(stored.retrieved["score"], float)
    size = np.diff(start)
    relevant, gold = np.zeros(len(score), bool), np.zeros(len(score), np.int64)
    good = (hits.grade > 0) & (hits.rank <= np.minimum(size[hits.query], k)) & ~hits.repeated
    relevant[start[hits.query[good]] + hits.rank[good] - 1] = True
    found = np.flatnonzero(missed.relevant & missed.found & (missed.first <= size[missed.query]))
    np.add.at(gold, start[missed.query[found]] + missed.first[found].astype(np.int64) - 1, 1)
    top = (row_number(start) < k) & np.repeat(_judged(run), size)
    return score[top], relevant[top], gold[top]


def _chunk_size(stored: StoredItems, run: Run, missed: Missed) -> Iterator[Note]:
    """The share of gold in the relevant texts, if gold items are passages of them."""
    if run.provenance.compares not in {"quote", "span"}:
        return
    hits, k = run.all_hits, missed.k
    gold = relevant = total = 0
    for row in np.unique(hits.query[(hits.rank <= k) & (hits.grade > 0)]).tolist():
        items = stored.items(row)
        own = items.by_item()
        texts = [item.text or "" for item in items.retrieved[:k]]
        first, last = np.searchsorted(hits.query, (row, row + 1)).tolist()
        gold_at: dict[int, int] = {}
        for i in range(first, last):
            rank, number = int(hits.rank[i]), int(hits.gold[i] - hits.gold_items.start[row])
            if rank <= len(texts) and hits.grade[i] > 0:
                sizes = [len(g.text) if g.text else (g.end or 0) - (g.start or 0) for g in own.get(number, ())]
                gold_at[rank] = gold_at.get(rank, 0) + max(sizes, default=0)
        gold += sum(min(size, len(texts[rank - 1])) for rank, size in gold_at.items())
        relevant += sum(len(texts[rank - 1]) for rank in gold_at)
        total += sum(map(len, texts))
    if gold and gold / relevant < _LOW_DENSITY:
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


def threshold_advice(run: Run, k: int) -> tuple[Note, ...]:
    """A score threshold if some queries have no answer, with its effect on held-out queries; or that none helps.

    A threshold fits the queries that it was chosen on better than others.
    """
    if not run.unanswerable.any():
        return ()
    try:
        found = run.thresholds(k)
    except BadArgument:
        return ()
    choice = found.choice
    if choice is None:
        details = {"auroc": found.auroc, "interval": list(found.auroc_interval), "k": k}
        return (Note("no_answer_threshold", found.unanswerable, found.answerable, details=details),)
    held_out = None
    if choice.false_alarm == choice.false_alarm:
        held_out = [[choice.false_alarm, *choice.false_alarm_interval], [choice.loss, *choice.loss_interval]]
    details = {
        "k": k, "threshold": choice.threshold, "held_out": held_out,
        "before": _alarm_and_recall(choice.before), "after": _alarm_and_recall(choice.after),
    }  # fmt: skip
    return (Note("answer_threshold", found.unanswerable, found.answerable, details=details),)


def threshold_limits(run: Run, k: int) -> tuple[Note, ...]:
    """A note if there are queries without an answer, but no scores to tell them by."""
    count = int(run.unanswerable.sum())
    if not count or count == len(run):
        return ()
    try:
        run.thresholds(k)
    except BadArgument:
        return (Note("no_answer_scores", count, len(run)),)
    return ()


def _alarm_and_recall(point: ThresholdPoint) -> list[float]:
    return [point.false_alarm, point.recall]
