"""Advice from the misses of a run: what would raise recall or precision, each with the numbers that support it.

Every piece of advice is a note; `report/advice.py` has the sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import floor
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools
from karat._internal.grammar import write_call
from karat.analysis.diagnose.causes import Causes
from karat.analysis.diagnose.chunk_size import chunk_advice
from karat.analysis.diagnose.item_threshold import item_threshold
from karat.analysis.diagnose.miss import Cause, Finding, Gain, Missed
from karat.analysis.diagnose.other_cutoffs import cutoff_advice
from karat.analysis.diagnose.second_run import second_run_advice
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
from karat.run.thresholds import ThresholdPoint
from karat.samples.notes import Note

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


class Advice(NamedTuple):
    """Ways to raise recall or precision, measured with the run or not."""

    measured: tuple[Note, ...] = ()
    """Changes whose gain was measured with the items of the run."""
    unmeasured: tuple[Note, ...] = ()
    """Changes whose gain the run cannot show."""


def advise(run: Run, missed: Missed, findings: dict[int, Finding], causes: Causes, other: Run | None) -> Advice:
    """Advice for each cause, and what else the numbers support."""
    stored = run.stored_items
    notes = list(cutoff_advice(run, missed))
    ways = _merged(_other_ways(run, missed, findings, causes, Trials(run, missed)))
    if stored is not None:
        notes += _without_copies(run, missed, causes)
    notes += [note for note in ways if "gain" in note.details]
    if stored is not None:
        notes += item_threshold(stored, run, missed)
        notes += chunk_advice(stored, run, missed)
    if other is not None:
        notes += second_run_advice(run, missed, other)
    untried = [note for note in ways if "gain" not in note.details]
    return Advice((*notes, *threshold_advice(run, missed.k)), (*untried, *_next_checks(notes, missed, findings, other)))


def _next_checks(
    measured: Iterable[Note], missed: Missed, findings: dict[int, Finding], other: Run | None
) -> Iterator[Note]:
    """Checks outside the run: the index, the embedding model, another retriever."""
    counts = Counter(finding.cause for finding in findings.values())
    for cause in _REMEDIES:
        if counts[cause]:
            yield Note("remedy", counts[cause], details={"cause": cause, "hybrid": other is None})
    if counts["not retrieved"]:
        gold, found = (np.unique(missed.query[own]) for own in (missed.relevant, missed.relevant & missed.retrieved))
        if len(found) < len(gold):
            yield Note("same_model", len(gold) - len(found), len(gold))
    if counts["not retrieved"] or counts["below k"] or any(note.kind == "better_order" for note in measured):
        yield Note("another_model")


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
            if trial is None or trial.gain.helps:
                details |= {"way": way.kind, "judge": way.judge} | ({} if trial is None else trial._asdict())
                break
        if group[0] == "cut differently" and "way" not in details and (gain := _joined(missed, inside)).helps:
            details |= {"way": "larger chunks", "judge": "", "gain": gain, "sample": None}
        yield Note("another_way", len(inside or found), len(found), details=details)


def _joined(missed: Missed, pieces: Iterable[int]) -> Gain:
    """The gain in recall if gold items whose pieces are in the top k count as found."""
    found = missed.found.copy()
    found[list(pieces)] = True
    return missed.gain(found, can_lose=False)


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
    gain = missed.gain(first <= k)
    ranks = int(np.minimum(run.all_hits.depth, k)[judged].sum())
    if gain.helps:
        yield Note("copies", inside, ranks, details={"k": k, "gain": gain})


def _judged(run: Run) -> Bools:
    """The queries that were judged, as a mask."""
    return ~np.isin(np.arange(len(run)), list(run.all_hits.failed))


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
