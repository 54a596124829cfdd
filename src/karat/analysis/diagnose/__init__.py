"""The verb: from a run to the causes of its misses."""

from __future__ import annotations

from os import PathLike

from karat._internal.arrays import Ints
from karat._internal.result import Result
from karat.analysis.changes import check_comparable
from karat.analysis.diagnose.advice import advise
from karat.analysis.diagnose.causes import Causes
from karat.analysis.diagnose.miss import CAUSES, Cause, Finding, Miss, Missed, usual_cutoff
from karat.errors import BadArgument
from karat.run import Run
from karat.run.file import as_run


class Diagnosis(Result):
    """Why gold items were missed: each miss with its cause, the causes counted, and what follows."""

    def __init__(
        self,
        run: Run,
        k: int,
        misses: list[Miss],
        *,
        query_id: str | None = None,
        recall: float = float("nan"),
        gold: int = 0,
        advice: list[str],
        notes: list[str],
    ) -> None:
        self.run = run
        self.k = k
        self.query_id = query_id
        """The query that was asked about, if it was one."""
        self.recall = recall
        """The mean share of its gold that a query has in its top k."""
        self.gold = gold
        """How many relevant gold items there are."""
        self.misses = misses
        self.advice = advice
        self.notes = notes
        """What cannot be told, and why."""

    @property
    def causes(self) -> dict[Cause, int]:
        """How many misses have each cause, the most frequent first."""
        counts = {cause: sum(miss.cause == cause for miss in self.misses) for cause in CAUSES}
        return {cause: n for cause, n in sorted(counts.items(), key=lambda pair: -pair[1]) if n}


def diagnose(
    run: Run | str | PathLike[str],
    query: str | int | None = None,
    *,
    k: int | None = None,
    other: Run | str | PathLike[str] | None = None,
) -> Diagnosis:
    """Say for every gold item that the top k lack why it is not there, and what would help.

    `query` asks about one query. `k` is by default the largest cutoff of the run's recall. With `other`, a second run
    over the same queries, it says what the two find together.
    """
    run = as_run(run)
    cutoff = usual_cutoff(run, k)
    missed = Missed(run, cutoff)
    numbers = missed.items
    row = None if query is None else run.row(query)
    if row is not None:
        numbers = numbers[missed.query[numbers] == row]
    causes = Causes(run, missed)
    findings = causes.find(numbers)
    second = None if other is None else _comparable(run, as_run(other))
    return Diagnosis(
        run,
        cutoff,
        _misses(run, missed, numbers, findings),
        query_id=None if row is None else run.ids[row],
        recall=missed.recall(missed.found, row),
        gold=int((missed.relevant & (row is None or missed.query == row)).sum()),
        advice=[] if row is not None else advise(run, missed, findings, causes, second),
        notes=_untold(run, missed) if len(numbers) else [],
    )


def _comparable(run: Run, other: Run) -> Run:
    try:
        check_comparable(run, other, names=("the run", "the other"))
    except BadArgument as error:
        raise BadArgument(error.problem, hint="two runs over the same queries and gold, judged alike") from error
    return other


def _misses(run: Run, missed: Missed, numbers: Ints, findings: dict[int, Finding]) -> list[Miss]:
    of = run.all_hits.gold_items
    misses = []
    for number in numbers.tolist():
        row, first, finding = int(missed.query[number]), missed.first[number], findings[number]
        misses.append(
            Miss(
                run.ids[row],
                None if run.query is None else run.query[row],
                of.label[number],
                float(of.grade[number]),
                None if first == float("inf") else int(first),
                *finding,
                number - int(of.start[row]),
            )
        )
    return misses


def _untold(run: Run, missed: Missed) -> list[str]:
    """What cannot be told of the misses, and why."""
    kept = run.stored_items
    if kept is None:
        return [
            "The run file keeps no items, as older ones do: of what was not found it cannot be told why. Save it anew."
        ]
    told = []
    if not any(kept.retrieved.get("text", ())):
        told.append("The retrieved items have no texts: near copies and split passages cannot be seen.")
    elif not any(kept.gold.get("text", ())) and "id" not in kept.retrieved:
        told.append("The gold items have no texts: near copies and split passages cannot be seen.")
    if not any(kept.retrieved.get("doc", ())) or not (any(kept.gold.get("doc", ())) or "id" in kept.gold):
        told.append("The items do not name their documents: whether the right one was found cannot be seen.")
    if (run.all_hits.depth > kept.extent.places).any():
        told.append(f"Of each ranking the top {kept.extent.places} were looked at.")
    return told
