"""A second run over the same queries: a hybrid of both, or the stage before or after a reranker."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Literal

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.analysis.diagnose.miss import Gain, Missed, first_ranks
from karat.errors import KaratError
from karat.hits.reranking import ideal
from karat.run import Run
from karat.samples.notes import Note

Place = Literal["before", "after"]
"""The place of the second run in a pipeline, as seen from the run."""


def second_run_advice(run: Run, missed: Missed, other: Run) -> Iterator[Note]:
    """The gain of a reranker, if one run has only items of the other; otherwise that of a hybrid of both.

    If both have the same items, either may be meant.
    Queries that could not be judged in the other run are left out.
    """
    known = set(run.ids)
    unknown = [run.row(query) for query in other.failures if query in known]
    missed = Missed(run, missed.k, without=unknown) if unknown else missed
    if isnan(missed.recall(missed.found)):
        return
    numbers, places = _numbers(run, other), _places(run, other)
    if places:
        yield _stage(run, missed, other, numbers, places[0])
    if len(places) != 1:
        yield _hybrid(run, missed, other, numbers)


def _numbers(run: Run, other: Run) -> Ints:
    """For each gold item its number in the other run; -1 if it is not there."""
    number_of: dict[tuple[str, str], int] = {}
    for number, key in enumerate(_gold_keys(other)):
        number_of.setdefault(key, number)
    return np.array([number_of.get(key, -1) for key in _gold_keys(run)], np.int64)


def _gold_keys(run: Run) -> Iterator[tuple[str, str]]:
    rows = run.all_hits.gold_query.tolist()
    return ((run.ids[row], label) for row, label in zip(rows, run.all_hits.gold_items.label, strict=True))


def _found(first: Floats, numbers: Ints, k: int) -> Bools:
    """The gold items of the run that the other run has in the top k, as a mask."""
    if not len(first):
        return np.zeros(len(numbers), bool)
    found: Bools = (first[numbers] <= k) & (numbers >= 0)
    return found


def _places(run: Run, other: Run) -> list[Place]:
    """The places of the other run, if one run reranks the items of the other: none of its items is new.

    Both if the items are the same, none if that is not so, if a run has no items, or if it cannot be known.
    """
    from karat.analysis.stages.stage_runs import stored_identities

    sets = stored_identities({"run": run, "other": other})
    if sets is None or run.repeats is not None or other.repeats is not None:
        return []
    theirs = dict(zip(other.ids, sets["other"], strict=True))
    pairs = [(own, theirs[query]) for query, own in zip(run.ids, sets["run"], strict=True) if query in theirs]
    if not any(own for own, _ in pairs) or not any(their for _, their in pairs):
        return []
    places: dict[Place, bool] = {
        "before": all(own <= their for own, their in pairs),
        "after": all(own >= their for own, their in pairs),
    }
    return [place for place, possible in places.items() if possible]


def _stage(run: Run, missed: Missed, other: Run, numbers: Ints, place: Place) -> Note:
    """The gain of the reranker, and that of a perfect one of the same candidates."""
    k = missed.k
    there = _found(first_ranks(other.all_hits), numbers, k)
    candidates = run if place == "after" else other
    best = first_ranks(ideal(candidates.all_hits))
    reachable = best <= k if place == "after" else _found(best, numbers, k)
    before, after = (missed.found, there) if place == "after" else (there, missed.found)
    first, last, best_order = (missed.recalls(found) for found in (before, after, reachable))
    details = {
        "k": k, "place": place, "gain": Gain.of(first, last),
        "perfect": Gain.of(last, np.maximum(last, best_order), can_lose=False),
        "lifted": int((missed.relevant & after & ~before).sum()),
        "pushed_out": int((missed.relevant & before & ~after).sum()),
    }  # fmt: skip
    return Note("reranking", details=details)


def _hybrid(run: Run, missed: Missed, other: Run, numbers: Ints) -> Note:
    """The gold that two runs find together, an upper bound for a hybrid of both; and a hybrid, if it can be made."""
    there = _found(first_ranks(other.all_hits), numbers, missed.k)
    more = int((missed.relevant & there & ~missed.found).sum())
    recalls = [missed.recall(found) for found in (missed.found | there, missed.found, there)]
    details = {"k": missed.k, "recalls": recalls, "fused": _fused(run, missed, other)}
    return Note("hybrid", more, len(missed.items), details=details)


def _fused(run: Run, missed: Missed, other: Run) -> Gain | None:
    """The gain in recall of both runs, fused by reciprocal ranks; None if they cannot be fused and evaluated."""
    from karat.analysis.fuse import fuse

    try:
        fused = fuse(run, other, names=("the run", "the other")).run
    except KaratError:
        return None
    if fused is None:
        return None
    return missed.gain(_found(first_ranks(fused.all_hits), _numbers(run, fused), missed.k))
