"""Steps in run files: a list of the steps of each query, and a list of the places of its hits in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from karat._internal.arrays import Floats, Ints, group_number, starts
from karat._internal.parquet import Damaged
from karat.hits import Hits
from karat.hits.trajectory import Trajectory
from karat.run.check import Texts, flat_lists, ranks

if TYPE_CHECKING:
    import polars as pl

STEPS, PLACES = "trajectory", "places"
_STEP = {"name": "String", "query": "String", "depth": "Int64", "repeated": "Int64"}
_NUMBERS = ("latency", "tokens")
_PLACE = ("rank", "step", "at")


def step_columns(steps: Trajectory) -> dict[str, tuple[pl.DataFrame, Ints]]:
    """The two columns, each as flat rows and the offset of each query."""
    import polars as pl

    own: dict[str, Any] = {
        "name": pl.Series(list(steps.name), dtype=pl.String),
        "query": pl.Series(list(steps.asked), dtype=pl.String),
        "depth": steps.depth,
        "repeated": steps.repeated,
        **{name: pl.Series(getattr(steps, name), nan_to_null=True) for name in _NUMBERS},
    }
    order = np.argsort(steps.query, kind="stable")
    places = pl.DataFrame({"rank": steps.merged[order], "step": steps.step[order], "at": steps.rank[order]})
    size = np.bincount(steps.query, minlength=len(steps.start) - 1)
    return {STEPS: (pl.DataFrame(own), steps.start), PLACES: (places, starts(size))}


def read_steps(frame: pl.DataFrame, texts: Texts, hits: Hits, merge: str) -> Trajectory | None:
    """The steps of a run file, if it has any; raises Damaged if they contradict the hits."""
    import polars as pl

    if STEPS not in frame.columns:
        return None
    if PLACES not in frame.columns:
        raise Damaged(f'it has no column "{PLACES}"')
    _check_types(frame.schema[STEPS], {**_STEP, **dict.fromkeys(_NUMBERS, "Float64")}, STEPS)
    _check_types(frame.schema[PLACES], dict.fromkeys(_PLACE, "Int64"), PLACES)
    given, start = flat_lists(frame, STEPS, nulls=True)
    places, begin = flat_lists(frame, PLACES)
    if given["depth"].null_count() or given["repeated"].null_count():
        raise Damaged("a step has no depth")
    depth, repeated = ranks(given["depth"]), ranks(given["repeated"])
    merged, step, rank = (ranks(places[name]) for name in _PLACE)
    latency, tokens = (_numbers(given[name].cast(pl.Float64), name) for name in _NUMBERS)
    query = group_number(begin)
    _check_places(hits, start, depth, query, merged, step, rank)
    if (repeated > depth).any():
        raise Damaged("a step repeats more items than it returned")
    name, asked = texts.read(given["name"]), texts.read(given["query"])
    return Trajectory(merge, start, depth, repeated, name, asked, latency, tokens, query, merged, step, rank)


def _check_types(dtype: Any, expected: dict[str, str], name: str) -> None:
    inner = getattr(dtype, "inner", None)
    types = {field.name: str(field.dtype.base_type()) for field in getattr(inner, "fields", ())}
    for field, wanted in expected.items():
        if types.get(field) not in (wanted, "Null"):
            raise Damaged(f'column "{name}" has no field "{field}" of type {wanted}')


def _numbers(column: pl.Series, name: str) -> Floats:
    values: Floats = column.to_numpy()
    if (np.isinf(values) | (values < 0)).any():
        raise Damaged(f"the {name} of a step is not a number from 0")
    return values


def _check_places(hits: Hits, start: Ints, depth: Ints, query: Ints, merged: Ints, step: Ints, rank: Ints) -> None:
    """Refuse a place outside of the steps, and a hit without one."""
    if (step >= np.diff(start)[query]).any():
        raise Damaged("a hit was found in a step that does not exist")
    if ((rank < 1) | (rank > depth[start[query] + step]) | (merged < 1) | (merged > hits.depth[query])).any():
        raise Damaged("a hit has a rank that its step does not have")
    size = int(hits.depth.max(initial=0)) + 1
    if not np.isin(hits.query * size + hits.rank, query * size + merged).all():
        raise Damaged("a hit was found in no step")
