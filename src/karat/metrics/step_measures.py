"""Metrics and measures of trajectories: what the steps of a query found, one after the other."""

from __future__ import annotations

import numpy as np

from karat._internal.arrays import Floats, is_relevant
from karat.conventions import Convention
from karat.errors import BadArgument, InputError
from karat.hits import Cutoffs, Hits
from karat.hits.trajectory import Trajectory, found_at, no_steps
from karat.metrics.registry import measure, metric
from karat.metrics.sets import share


def _steps(hits: Hits) -> Trajectory:
    if hits.steps is None and not hits.depth.any():
        return no_steps(hits.queries, "")
    if hits.steps is None:
        hint = '"steps": [{"query": …, "retrieved": […]}, …] in place of "retrieved"'
        raise InputError("this metric needs samples with steps", hint=hint)
    return hits.steps


def _found_within(hits: Hits, last: Floats | float) -> Floats:
    """The number of relevant gold items that the steps up to a number, from 0, found in each query."""
    relevant = is_relevant(hits.gold_items.grade)
    limit = np.broadcast_to(last, hits.queries)[hits.gold_query]
    found = found_at(hits, _steps(hits))
    within = relevant & np.isfinite(found) & (found <= limit)
    return np.bincount(hits.gold_query[within], minlength=hits.queries).astype(float)


def _number(step: float | None) -> float:
    if step is None or step != int(step) or step < 1:
        raise BadArgument("a step is a whole number from 1 on", got=step, hint="recall_after(step=1)")
    return step - 1


@metric(symbol="R-after", cutoff=False, needs_all_gold=True, of_sets=True, of_steps=True)
def recall_after(hits: Hits, k: Cutoffs, c: Convention, *, step: float = 1.0) -> Floats:
    """Share of the gold items that the first steps returned, up to this step, at any rank."""
    return share(_found_within(hits, _number(step)), hits.gold_count())


@metric(symbol="R/step", cutoff=False, needs_all_gold=True, of_sets=True, of_steps=True)
def recall_per_step(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the gold items that the steps returned, divided by the number of steps."""
    return share(share(_found_within(hits, np.inf), hits.gold_count()), _steps(hits).count.astype(float))


@measure("steps", symbol="steps", needs_gold=False, of_sets=True, of_steps=True)
def steps(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Number of steps."""
    return _steps(hits).count.astype(float)


@measure("steps", symbol="to-all", needs_all_gold=True, of_sets=True, of_steps=True)
def steps_to_all(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Number of steps until every gold item was returned."""
    last = np.zeros(hits.queries)
    relevant = is_relevant(hits.gold_items.grade)
    np.maximum.at(last, hits.gold_query[relevant], found_at(hits, _steps(hits))[relevant] + 1)
    return last


@measure("steps", symbol="wasted", of_sets=True, of_steps=True)
def wasted_steps(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Number of steps that returned no gold item that was not returned before."""
    found = found_at(hits, _steps(hits))
    brought = is_relevant(hits.gold_items.grade) & np.isfinite(found)
    pairs = np.unique(np.stack([hits.gold_query[brought], found[brought].astype(np.int64)]), axis=1)
    useful: Floats = np.bincount(pairs[0], minlength=hits.queries).astype(float)
    return _steps(hits).count - useful


@measure("gold items", symbol="new", more_is_better=True, of_sets=True, of_steps=True)
def new_gold(hits: Hits, k: Cutoffs, c: Convention, *, step: float | None = None) -> Floats:
    """Number of gold items that a step was the first to return; without a step, the mean over the steps."""
    if step is None:
        return share(_found_within(hits, np.inf), _steps(hits).count.astype(float))
    number = _number(step)
    brought = _found_within(hits, number) - _found_within(hits, number - 1)
    return np.where(_steps(hits).count > number, brought, np.nan)


@measure("share of items", symbol="again", needs_gold=False, of_sets=True, of_steps=True)
def repeated(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the items returned that an earlier step had returned."""
    of = _steps(hits)
    returned = of.of_query(of.depth)
    return np.where(returned > 0, share(of.of_query(of.repeated), returned), np.nan)


@measure(
    "recall per 1,000 tokens", symbol="R/1000t", more_is_better=True, reads_tokens=True, of_sets=True, of_steps=True
)
def recall_per_1000_tokens(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the gold items that the steps returned, divided by the tokens that they returned, in thousands."""
    of = _steps(hits)
    if np.isnan(of.tokens).any() and of.depth[np.isnan(of.tokens)].any():
        hint = '"tokens" in each step, or texts of the items'
        raise InputError("recall_per_1000_tokens needs the tokens that each step returned", hint=hint)
    tokens = of.of_query(np.nan_to_num(of.tokens))
    recall = share(_found_within(hits, np.inf), hits.gold_count())
    return np.where(tokens > 0, recall / np.maximum(tokens, 1e-9) * 1000, np.nan)
