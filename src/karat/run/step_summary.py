"""The steps of a run: what each found, what a cutoff of the merged ranking hides, and the hops that were lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, is_relevant, mean_defined
from karat.errors import BadArgument
from karat.hits import Hits
from karat.hits.trajectory import Trajectory, found_at, of_step
from karat.metrics import METRICS

if TYPE_CHECKING:
    from karat.run.run import Run


_ALONE = 10
"""The number of steps that are scored alone: as many as are shown."""


class StepRow(NamedTuple):
    """One step of all queries that have it."""

    step: int
    """From 1."""
    name: str | None
    """The name, if it is the same in all queries."""
    queries: int
    alone: dict[str, float]
    """The means of the metrics over this step as a ranking of its own; empty if chunks are judged together."""
    recall_after: float
    """The mean recall of everything returned up to this step, over all queries."""
    new_gold: float
    """The mean number of gold items that this step was the first to return."""
    repeated: float
    """The share of its items that an earlier step returned."""
    latency: float
    """The mean latency; NaN if no step has one."""


class HopRow(NamedTuple):
    """The gold items of one hop."""

    hop: int
    found: int
    """In the top k."""
    below: int
    """Returned, but below the top k."""
    missed: int
    """Not returned."""
    missed_after: int
    """Not returned although the whole hop before it was; of the first hop, 0."""

    @property
    def gold(self) -> int:
        """The number of gold items."""
        return self.found + self.below + self.missed


class StepSummary(NamedTuple):
    """The steps of a run."""

    merge: str
    k: int | None
    """The cutoff of the recall that the run shows; None if it has none."""
    rows: list[StepRow]
    hidden: int
    """The gold items in the top k of some step, but below the top k of the merged ranking."""
    of: int
    """The number of relevant gold items."""


def steps_of_run(run: Run) -> StepSummary | None:
    """The steps of a run; None if its rankings were not merged from steps."""
    hits = run.all_hits
    if hits.steps is None:
        return None
    judged = np.ones(hits.queries, bool)
    judged[list(hits.failed)] = False
    k = shown_cutoff(run)
    found, steps = found_at(hits, hits.steps), range(int(hits.steps.count.max(initial=0)))
    rows = [_row(run, hits, hits.steps, number, judged, found) for number in steps]
    relevant = is_relevant(hits.gold_items.grade) & judged[hits.gold_query]
    hidden = 0 if k is None else int((_in_some_step(hits, hits.steps, k) & ~_within(hits, k) & relevant).sum())
    return StepSummary(hits.steps.merge, k, rows, hidden, int(relevant.sum()))


def hops_of_run(run: Run, k: int | None) -> list[HopRow]:
    """The hops of the gold, found in the top k or at any rank; empty if it has none."""
    hits = run.all_hits
    hop = hits.gold_items.hop
    if hop is None:
        return []
    judged = ~np.isin(hits.gold_query, list(hits.failed))
    relevant = is_relevant(hits.gold_items.grade) & judged & (hop > 0)
    within = _within(hits, np.inf if k is None else k)
    returned, rows = _within(hits, np.inf), []
    for number in np.unique(hop[relevant]).tolist():
        own = relevant & (hop == number)
        missed = own & ~returned
        rows.append(
            HopRow(
                number,
                int((own & within).sum()),
                int((own & returned & ~within).sum()),
                int(missed.sum()),
                int((missed & _found_before(hits, relevant, returned, number)).sum()),
            )
        )
    return rows


def shown_cutoff(run: Run) -> int | None:
    """The cutoff of recall that is shown if there is room for one."""
    ks = [metric.headline[1] for metric in run.metrics if metric.name == "recall"]
    return next((k for k in ks if isinstance(k, int)), None)


def _row(run: Run, hits: Hits, steps: Trajectory, number: int, judged: Bools, found: Floats) -> StepRow:
    has = (steps.count > number) & judged
    at = (steps.start[:-1] + number)[has]
    names = {steps.name[i] for i in at.tolist()}
    relevant = is_relevant(hits.gold_items.grade) & judged[hits.gold_query]
    gold = hits.gold_count()
    so_far = _counts(hits, relevant & (found <= number)) / np.where(gold > 0, gold, np.nan)
    new = _counts(hits, relevant & (found == number))
    returned = steps.depth[at].sum()
    latency = steps.latency[at]
    return StepRow(
        number + 1,
        names.pop() if len(names) == 1 else None,
        int(has.sum()),
        _alone(run, hits, number) if number < _ALONE else {},
        mean_defined(np.where(judged, so_far, np.nan)),
        mean_defined(np.where(has, new, np.nan)),
        float(steps.repeated[at].sum() / returned) if returned else 0.0,
        mean_defined(latency) if len(latency) else np.nan,
    )


def _alone(run: Run, hits: Hits, number: int) -> dict[str, float]:
    """The means of the metrics over one step; without those that need more than its hits, such as tokens or texts."""
    own = of_step(hits, number)
    if own is None:
        return {}
    failed = np.isin(np.arange(own[0].queries), list(own[0].failed))
    means: dict[str, float] = {}
    for metric in run.metrics:
        if metric.name not in METRICS or metric.definition.of_steps:
            continue
        try:
            scores = metric.scores(own[0], run.convention)
        except BadArgument:
            continue
        means |= {name: mean_defined(np.where(failed, np.nan, values)) for name, values in scores.items()}
    return means


def _counts(hits: Hits, items: Bools) -> Floats:
    return np.bincount(hits.gold_query[items], minlength=hits.queries).astype(float)


def _within(hits: Hits, k: float) -> Bools:
    """The gold items in the top k of the merged ranking."""
    whole = hits.rank <= k if hits.part is None else (hits.rank <= k) & ~hits.part
    found = np.zeros(len(hits.gold_items.grade), bool)
    found[hits.gold[whole]] = True
    return found


def _in_some_step(hits: Hits, steps: Trajectory, k: int) -> Bools:
    """The gold items in the top k of some step."""
    size = int(max(hits.rank.max(initial=0), steps.merged.max(initial=0))) + 1
    near = np.unique((steps.query * size + steps.merged)[steps.rank <= k])
    whole = np.isin(hits.query * size + hits.rank, near)
    found = np.zeros(len(hits.gold_items.grade), bool)
    found[hits.gold[whole if hits.part is None else whole & ~hits.part]] = True
    return found


def _found_before(hits: Hits, relevant: Bools, returned: Bools, number: int) -> Bools:
    """The gold items of queries that have the hop before this one, and of which all of that hop was returned."""
    assert hits.gold_items.hop is not None
    before = relevant & (hits.gold_items.hop == number - 1)
    had, lost = _counts(hits, before) > 0, _counts(hits, before & ~returned) > 0
    complete: Bools = (had & ~lost)[hits.gold_query]
    return complete
