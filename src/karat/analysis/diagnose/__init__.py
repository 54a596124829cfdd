"""Diagnose a run: the cause of each missed gold item, and advice."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.result import Result
from karat.analysis.changes import check_comparable
from karat.analysis.diagnose.advice import Advice, advise, threshold_limits
from karat.analysis.diagnose.causes import Causes
from karat.analysis.diagnose.miss import CAUSES, Cause, Finding, Miss, Missed, default_cutoff
from karat.errors import BadArgument
from karat.run import Run
from karat.run.bounds import count_unjudged, knows_irrelevant
from karat.run.file import as_run
from karat.samples.notes import Note


@dataclass(repr=False, eq=False, kw_only=True)
class Diagnosis(Result):
    """The result of `karat.diagnose`: each miss with its cause, the causes counted, and advice."""

    run: Run
    k: int
    query_id: str | None
    """The query, if only one was diagnosed."""
    recall: float
    """The mean recall in the top k."""
    gold_items: int
    """The number of relevant gold items."""
    misses: list[Miss]
    advice_notes: tuple[Note, ...]
    """Changes that would help, with the gain that was measured."""
    check_notes: tuple[Note, ...]
    """Checks outside the run, whose gain was not measured."""
    limits: tuple[Note, ...]
    """Checks that were not possible."""

    @property
    def causes(self) -> dict[Cause, int]:
        """The number of misses per cause, the most frequent first."""
        counts = {cause: sum(miss.cause == cause for miss in self.misses) for cause in CAUSES}
        return {cause: n for cause, n in sorted(counts.items(), key=lambda pair: -pair[1]) if n}

    @property
    def advice(self) -> list[str]:
        """Ways to raise recall or precision, one sentence each, with the gain that was measured."""
        return list(self._render("advice"))

    @property
    def not_measured(self) -> list[str]:
        """Checks to do next, one sentence each: the run cannot show their gain."""
        return list(self._render("not_measured"))

    @property
    def notes(self) -> list[str]:
        """The checks that were not possible, one sentence each."""
        return list(self._render("notes"))


def diagnose(
    run: Run | str | PathLike[str],
    query: str | int | None = None,
    *,
    k: int | None = None,
    other: Run | str | PathLike[str] | None = None,
) -> Diagnosis:
    """Find the cause of every gold item that is missing from the top k, and what would help.

    Args:
        run: the run, or the path of its file.
        query: the id of a query, to diagnose it alone; default: all queries.
        k: the cutoff; default: the cutoff of the run's recall that is nearest to 5, as in the report, or 10.
        other: a second run over the same queries; the advice then includes the gain of a hybrid of both or, if one
            of them reranks the items of the other, that of the reranker.

    Returns:
        A `Diagnosis`: `misses` (one per missed gold item, with its cause), `causes` (counted), `advice` (with measured
        gains), `not_measured` (what to check next), `notes` (what could not be checked), `recall`, `to_dict()`,
        `to_markdown()`.

    Example:
        >>> diagnosis = karat.diagnose("run.parquet", k=5)
        >>> diagnosis.causes
        {'below k': 12, 'split over chunks': 3}
    """
    run = as_run(run)
    cutoff = default_cutoff(run, k)
    missed = Missed(run, cutoff)
    numbers, gold = missed.items, missed.relevant
    row = None if query is None else run.row(query)
    if row is not None:
        numbers, gold = numbers[missed.query[numbers] == row], gold & (missed.query == row)
    causes = Causes(run, missed)
    findings = causes.find(numbers)
    second = None if other is None else _comparable(run, as_run(other))
    advice = Advice() if row is not None else advise(run, missed, findings, causes, second)
    return Diagnosis(
        run=run,
        k=cutoff,
        misses=_misses(run, missed, numbers, findings),
        query_id=None if row is None else run.ids[row],
        recall=missed.recall(missed.found, row),
        gold_items=int(gold.sum()),
        advice_notes=advice.measured,
        check_notes=advice.unmeasured,
        limits=(
            *((*_unjudged(run), *threshold_limits(run, cutoff)) if row is None else ()),
            *_holes(run, cutoff, row),
            *((*_limits(run), *_beyond_depth(run, cutoff)) if len(numbers) else ()),
        ),
    )


def _comparable(run: Run, other: Run) -> Run:
    try:
        check_comparable(run, other, names=("the run", "the other"))
    except BadArgument as error:
        raise BadArgument(error.problem) from error
    return other


def _misses(run: Run, missed: Missed, numbers: Ints, findings: dict[int, Finding]) -> list[Miss]:
    gold = run.all_hits.gold_items
    misses = []
    for number in numbers.tolist():
        row, first = int(missed.query[number]), missed.first[number]
        misses.append(
            Miss(
                run.ids[row],
                None if run.query is None else run.query[row],
                gold.label[number],
                float(gold.grade[number]),
                None if first == float("inf") else int(first),
                *findings[number][:3],
                number - int(gold.start[row]),
            )
        )
    return misses


def _unjudged(run: Run) -> tuple[Note, ...]:
    return (Note("judged", run.judged, len(run.queries)),) if run.judged < len(run.queries) else ()


def _holes(run: Run, k: int, row: int | None) -> tuple[Note, ...]:
    """The retrieved items without a judgement, if the gold tells them from irrelevant ones."""
    hits = run.all_hits
    if run.provenance.compares == "claim" or not knows_irrelevant(hits):
        return ()
    within = np.full(len(run), float(k)) if row is None else np.where(np.arange(len(run)) == row, k, 0.0)
    count, of = count_unjudged(hits, within)
    return (Note("unjudged_items", count, of, details={"k": k}),) if count else ()


def _beyond_depth(run: Run, k: int) -> tuple[Note, ...]:
    deepest = int(run.all_hits.depth.max(initial=0))
    return (Note("beyond_depth", deepest, k),) if k > deepest > 0 else ()


def _limits(run: Run) -> tuple[Note, ...]:
    """The checks that were not possible, because the run does not store what they need."""
    stored = run.stored_items
    if stored is None:
        return (Note("no_items"),)
    limits = []
    if not any(stored.retrieved.get("text", ())):
        limits.append(Note("no_texts", details={"side": "retrieved"}))
    elif not any(stored.gold.get("text", ())) and "id" not in stored.retrieved:
        limits.append(Note("no_texts", details={"side": "gold"}))
    if not any(stored.retrieved.get("doc", ())) or not (any(stored.gold.get("doc", ())) or "id" in stored.gold):
        limits.append(Note("no_documents"))
    if (run.all_hits.depth > stored.extent.places).any():
        limits.append(Note("top_only", stored.extent.places))
    return tuple(limits)
