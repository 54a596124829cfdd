"""Notes on fused rankings as sentences: what a leg lacks, what a run does not store, and what was left out."""

from __future__ import annotations

from collections.abc import Callable

from karat._internal.display import plural
from karat.run import Run
from karat.samples.notes import Note


def _lacks_queries(note: Note, run: Run | None = None) -> str:
    d = note.details
    verb, them = ("is", "it") if note.count == 1 else ("are", "them")
    what = "left out" if d["dropped"] else f"ranked by the other legs, which have {them}"
    return f"{note.count:,} of {plural(note.of, 'query', 'queries')} {verb} not in {d['leg']}: {what}."


def _copies(note: Note, run: Run | None = None) -> str:
    copies = plural(note.count, "item is a copy of one", "items are copies of ones")
    return f"{note.details['leg']}: {copies} ranked higher for the same query, and left out."


def _mismatch(note: Note, run: Run | None = None) -> str:
    return f"{note.details['legs']} were fused in spite of differences: {note.details['what']}."


def _unstored(note: Note, run: Run | None = None) -> str:
    items = plural(note.count, "retrieved item is", "retrieved items are")
    lost = int(note.sums.get("lost", 0))
    among = f", {plural(lost, 'match', 'matches')} of gold among them" if lost else ", none of them a match of gold"
    return (
        f"{items} not in the run files, which store {note.details['places']} ranks of each query{among}: "
        "only stored items are fused."
    )


def _left_out(note: Note, run: Run | None = None) -> str:
    return f"{note.details['metrics']} cannot be computed from the matches of the legs: left out."


def _not_evaluated(note: Note, run: Run | None = None) -> str:
    return (
        f"The fused rankings are not evaluated: by the judge {note.details['judge']}, several items can find a gold "
        "item together, and which do is not known for another order."
    )


def _without_scores(note: Note, run: Run | None = None) -> str:
    return f"Only methods of ranks were tried: {note.details['legs']} has no finite scores."


FUSION_SENTENCES: dict[str, Callable[[Note, Run | None], str]] = {
    "leg_lacks_queries": _lacks_queries,
    "leg_copies": _copies,
    "leg_mismatch": _mismatch,
    "leg_items_unstored": _unstored,
    "fused_metrics_left_out": _left_out,
    "fused_not_evaluated": _not_evaluated,
    "sweep_without_scores": _without_scores,
}
"""The sentence for each kind of note on fused rankings."""
