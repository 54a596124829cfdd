"""Files larger than memory: evaluated in batches of queries, with the same result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from karat._internal.output import clean_exit
from karat.errors import InputError
from karat.hits.combine import take
from karat.hits.totals import RAW_SCORE
from karat.judges import choose, has_fields
from karat.plan import Plan
from karat.run import Run
from karat.run.merge import concat_items, merge_parts
from karat.run.stored_items import StoredItems, stored_ranks
from karat.samples import Samples
from karat.samples.datasets import is_dataset
from karat.samples.loading import Selection
from karat.samples.read import read_side
from karat.samples.sources import find_source
from karat.samples.traces import holds_traces
from karat.scale.batches import Batches, Data, Joined, Whole
from karat.scale.memory import MemoryLimits, check_gold, estimate_memory, larger_than, too_large
from karat.scale.pieces import Scattered


def evaluate_large(
    source: str | PathLike[str],
    gold: Any,
    plan: Plan,
    *,
    memory: str | int | MemoryLimits,
    jobs: int,
    skip_bad_rows: bool,
    selection: Selection | None = None,
) -> Run | None:
    """The run of files that need more memory than allowed; None if they fit, or cannot be read in pieces.

    A judge that calls a model needs all queries at once: its estimate, its budget and its random order are for all.
    """
    limits, calls = MemoryLimits.of(memory), plan.judge.model is not None
    selection = selection or Selection()
    if is_dataset(source):
        return None
    large = larger_than(selection.source(source), limits.refused if calls else limits.total)
    if large is None or (skip_bad_rows and gold is not None):
        return None
    if holds_traces(large):
        return None  # only the spans of retrievers are kept in memory
    if plan.at == "step":
        raise too_large(f'{large.name}: at="step" needs all samples at once', estimate_memory(large), limits)
    if calls:
        what = f'{large.name}: judge "{plan.judge.name}" calls a model for all queries in one random order'
        raise too_large(what, estimate_memory(large), limits)
    if isinstance(gold, str | PathLike) and not is_dataset(gold):
        check_gold(find_source(gold), limits.total)
    side = None if gold is None else read_side(gold, "gold", selection)
    run = evaluate_files(Data(large, side, limits, skip_bad_rows, plan.judge.needs_gold), plan, jobs)
    selection.check(large.name)
    notes = (*selection.notes(), *run.provenance.notes)
    return run.replace(provenance=replace(run.provenance, notes=notes))


@clean_exit()
def evaluate_files(data: Data, plan: Plan, jobs: int = 1) -> Run:
    """The run of files that do not fit into memory."""
    batches: Batches = Whole(data) if data.gold is None else Joined(data, data.gold)
    try:
        run, plan = _evaluate(batches, plan, data.limits.total, jobs)
    except Scattered:
        assert data.gold is not None
        batches = Joined(data, data.gold, scattered=True)
        run, plan = _evaluate(batches, plan, data.limits.total, jobs)
    if batches.order is not None and list(batches.order) != list(run.ids):
        run = run.take([run.row(query) for query in batches.order])
    run = run.replace(provenance=run.provenance.with_reading(batches.reading()), items=None)
    return run.replace(items=partial(_items, batches, run, plan, data, data.state()))


def _evaluate(batches: Batches, plan: Plan, memory: int, jobs: int) -> tuple[Run, Plan]:
    """The merged run of every batch, by the judge that fits the first batch."""
    from karat.scale.processes import evaluate_batches

    coming = iter(batches)
    first = next(coming, None)
    if first is None:
        raise InputError("the data set is empty")
    chosen = plan.with_judge_for(batches.for_choice(first))

    def checked() -> Iterator[Samples]:
        yield first
        for samples in coming:
            if chosen.judge_reason:
                _check_choice(chosen, batches.for_choice(samples))
            yield samples

    parts, used = [], 0
    for part in evaluate_batches(chosen, checked(), jobs):
        parts.append(part)
        used += sum(total.nbytes for total in part.all_hits.totals.at_rank.values())
        if used > memory:
            raise InputError(
                "token budgets, the judge spans, thresholds of scores (samples with answerable), and conventions that "
                "average over ties or count distinct items need a number per retrieved item, and these do not fit into "
                "the memory allowed",
                got=f"judge {chosen.judge.name}, convention {chosen.convention.name}",
                hint="more memory, other metrics, or parts of the data and karat merge",
            )
    if not chosen.raw_scores and any(RAW_SCORE in part.all_hits.totals.at_rank for part in parts):
        # A later batch was the first with a query that is marked as answerable or not.
        return _evaluate(batches, replace(plan, raw_scores=True), memory, jobs)
    return chosen.with_hint(chosen.check_run(merge_parts(parts)), first), chosen


def _check_choice(plan: Plan, samples: Samples) -> None:
    """Refuse the judge that fitted the first batch if a later one lacks the fields it compares."""
    other = choose(samples).judge
    if other.name != plan.judge.name and not has_fields(samples, plan.judge):
        raise InputError(
            f'judge "{plan.judge.name}" was chosen for the first samples, but later ones have other fields',
            hint=f'judge="{other.name}"',
        )


def _items(batches: Batches, run: Run, plan: Plan, data: Data, state: object) -> StoredItems | None:
    """The items that the run stores, for which the files are read again; None if they would not fit into memory."""
    if data.state() != state:
        raise InputError(f"{data.source.name} has changed since it was evaluated")
    ranks = stored_ranks(run.requested, len(run))
    if ranks * len(run) * data.limits.item_bytes > data.limits.total:
        return None
    parts: list[StoredItems] = []
    rows: list[int] = []
    for samples in batches:
        own = [run.row(query) for query in samples.ids]
        parts.append(plan.items(samples, take(run.all_hits, np.array(own)), ranks))
        rows += own
    return concat_items(parts).take(np.argsort(rows))
