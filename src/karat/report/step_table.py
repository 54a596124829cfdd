"""The steps of a run as a table: each step alone, what is known after it, and what the merged ranking hides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karat._internal.display import number, percent, plural, quantity
from karat.metrics import METRICS
from karat.run import Run
from karat.run.step_summary import StepSummary, hops_of_run, shown_cutoff
from karat.samples.notes import Note

_SHOWN = 10


def header(found: StepSummary, run: Run) -> list[str]:
    """The names of the columns."""
    return ["step", "queries", *_metrics(run), "recall after", "new gold", "repeated", *_latency(found)]


def _metrics(run: Run) -> list[str]:
    """The headline metrics that are shown for each step alone, at most two."""
    usual = [m for m in run.metrics if m.name in METRICS and not m.definition.of_steps]
    return [metric.headline[0] for metric in usual][:2]


def _latency(found: StepSummary) -> list[str]:
    return ["latency"] if any(row.latency == row.latency for row in found.rows) else []


def rows(found: StepSummary, run: Run) -> list[list[str]]:
    """One row per step, the first ten; then the merged ranking."""
    shown = []
    for row in found.rows[:_SHOWN]:
        name = f"{row.step}: {row.name}" if row.name else str(row.step)
        alone = [number(row.alone.get(metric, float("nan"))) for metric in _metrics(run)]
        facts = [number(row.recall_after), f"{row.new_gold:.2f}", percent(row.repeated)]
        timed = [quantity(row.latency, "ms") for _ in _latency(found)]
        shown.append([name, f"{row.queries:,}", *alone, *facts, *timed])
    means = [number(run.mean[metric]) for metric in _metrics(run)]
    return [*shown, [f"merged: {found.merge}", f"{len(run):,}", *means, *[""] * (3 + len(_latency(found)))]]


def remarks(run: Run) -> list[str]:
    """Sentences on what the cutoff of the merged ranking hides, and on the hops that were lost."""
    return [*hidden(run), *lost_hops(run, shown_cutoff(run))]


def hidden(run: Run) -> list[str]:
    """A sentence on the gold that the cutoff of the merged ranking hides."""
    found = run.steps
    if found is None:
        return []
    lines = [f"The first {_SHOWN} of {len(found.rows)} steps are shown."] if len(found.rows) > _SHOWN else []
    if found.hidden:
        items = plural(found.hidden, "gold item is", "gold items are")
        room = ", and --merge interleave gives each step room" if found.merge == "concat" else ""
        lines.append(
            f"{items} in the top {found.k} of a step, but below the top {found.k} of the merged ranking, which has no "
            f"room for the top {found.k} of every step. Recall without k counts all of them{room}."
        )
    return lines


def lost_hops(run: Run, k: int | None) -> list[str]:
    """A sentence on each hop of the gold: found in the top k, below it, or not returned."""
    lines = []
    for row in hops_of_run(run, k):
        within = "found" if k is None else f"in the top {k}, {row.below:,} below it"
        after = f" ({row.missed_after:,} although hop {row.hop - 1} was found)" if row.hop > 1 and row.missed else ""
        gold = plural(row.gold, "gold item", "gold items")
        lines.append(f"Hop {row.hop}: of {gold} {row.found:,} {within}, {row.missed:,} not returned{after}.")
    return lines


def data(run: Run) -> dict[str, Any]:
    """The steps and the hops as plain values."""
    values: dict[str, Any] = {}
    if (found := run.steps) is not None:
        values["steps"] = found._asdict() | {"rows": [row._asdict() for row in found.rows]}
    if run.hops:
        values["hops"] = [row._asdict() for row in run.hops]
    return values


def _few(note: Note) -> str:
    """The first queries of a note in brackets, if it has any."""
    return f" ({', '.join(note.examples)})" if note.examples else ""


def _empty_steps(note: Note, run: Run) -> str:
    return f"{note.count:,} of {plural(note.of, 'step', 'steps')} returned nothing."


def _no_steps(note: Note, run: Run) -> str:
    return f"{plural(note.count, 'query has', 'queries have')} no step{_few(note)}: nothing was retrieved."


def _no_hop(note: Note, run: Run) -> str:
    return f"{note.count:,} of {plural(note.of, 'gold item has', 'gold items have')} no hop; the others have one."


def _hop_gap(note: Note, run: Run) -> str:
    queries = plural(note.count, "query has", "queries have")
    return f"{queries} gold of a hop without gold of the hop before it{_few(note)}."


STEP_SENTENCES: dict[str, Callable[[Note, Run], str]] = {
    "empty_steps": _empty_steps,
    "no_steps": _no_steps,
    "no_hop": _no_hop,
    "hop_gap": _hop_gap,
}
"""The sentences for the notes on steps and hops."""
