"""Steps of samples: a list of searches per query, each with what it returned, as rankings that are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np

from karat._internal.arrays import row_number, starts
from karat.errors import InputError, nearest
from karat.samples.columns import Samples, check_ids
from karat.samples.items import rankings_of
from karat.samples.keys import Where, as_number
from karat.samples.notes import Note
from karat.samples.rankings.steps import About, Steps
from karat.samples.repeat_rows import REPEAT, query_ids_of, row_ids

_FACTS = ("name", "query", "latency", "tokens", "span_id")
_TEXTS = ("name", "query", "span_id")
_HINT = '"steps": [{"query": …, "retrieved": […]}, …]'


def one_shape(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The samples; if some have steps, a sample with one ranking has one step."""
    if not any("steps" in row for row in rows):
        return rows
    return [_as_step(row) if "retrieved" in row else row for row in rows]


def _as_step(row: dict[str, Any]) -> dict[str, Any]:
    step = {name: row[name] for name in ("retrieved", *_FACTS) if name in row}
    return {**{name: value for name, value in row.items() if name != "retrieved"}, "steps": [step]}


def steps_of(columns: Mapping[str, list[Any]], ids: Sequence[str], where: Where) -> Steps:
    """The steps of each query, from the columns of a table with one row per query."""
    for other in ("retrieved", "retrieved_ids"):
        for row, (given, steps) in enumerate(zip(columns.get(other, ()), columns["steps"], strict=False)):
            if given is not None:
                both = f'has "{other}" and "steps"' if steps is not None else f'has "{other}", others have "steps"'
                raise InputError(f"{where(row)}: the sample {both}; expected one of them", hint=_HINT)
    each = [_searches(value, where, row) for row, value in enumerate(columns["steps"])]
    size = np.fromiter(map(len, each), np.int64, len(each))
    flat = [step for steps in each for step in steps]
    own = np.repeat(np.arange(len(each)), size).tolist()
    number = [n for steps in each for n in range(1, len(steps) + 1)]

    def place(step: int) -> str:
        return f"{where(own[step])}, step {number[step]}"

    facts = _facts(flat, place)
    names = [f"{ids[row]}, step {n}" for row, n in zip(own, number, strict=True)]
    rankings = rankings_of([step["retrieved"] for step in flat], names, place)
    return Steps(rankings, starts(size), ids, About(*facts))


def _searches(value: Any, where: Where, row: int) -> list[Mapping[str, Any]]:
    """The steps of one sample as dicts; a list of items is a step that says nothing else."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        import msgspec

        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(f'{where(row)}: field "steps" is not valid JSON', got=value, hint=_HINT) from error
    if not isinstance(value, list | tuple):
        kind = "missing or null" if value is None else f"a {type(value).__name__}"
        raise InputError(f'{where(row)}: field "steps" is {kind}; expected a list of steps', got=value, hint=_HINT)
    return [{"retrieved": step} if isinstance(step, list | tuple) else step for step in value]


def _facts(steps: Sequence[Any], place: Where) -> list[list[Any]]:
    """The columns of facts; refuses a step without results, and facts of the wrong type."""
    for row, step in enumerate(steps):
        if type(step) is not dict and not isinstance(step, Mapping):
            raise InputError(f"{place(row)}: a step is a dict, not a {type(step).__name__}", got=step, hint=_HINT)
        if step.get("retrieved") is None:
            close = next((f'; "{name}" looks like it' for name in step if nearest(str(name), ["retrieved"])), "")
            raise InputError(f'{place(row)}: no "retrieved"{close}', got=list(step), hint=_HINT)
    used, nothing = set(chain.from_iterable(steps)), [None] * len(steps)
    columns = [[step.get(name) for step in steps] if name in used else nothing for name in _FACTS]
    for name, column in zip(_FACTS, columns, strict=True):
        for row, value in enumerate(column if name in used else ()):
            if value is not None:
                _check_fact(name, value, place, row)
    return columns


def _check_fact(name: str, value: Any, place: Where, row: int) -> None:
    if name in _TEXTS:
        if not isinstance(value, str):
            raise InputError(f'{place(row)}: "{name}" is not a text', got=value)
    elif not (isfinite(number := as_number(value)) and number >= 0):
        raise InputError(f'{place(row)}: "{name}" is not a number from 0 on', got=value)


def each_step(samples: Samples) -> Samples:
    """One row for each step, with the gold of its query; fields tell the sample and the number of the step.

    A sample whose retrieval failed has one row, at the end.
    """
    given = samples.retrieved
    if not isinstance(given, Steps):
        raise InputError('at="step" needs samples with steps', hint=_HINT)
    failed = sorted(samples.failed)
    rows = [*np.repeat(np.arange(len(samples)), np.diff(given.start)).tolist(), *failed]
    number = [*(row_number(given.start) + 1).tolist(), *(1 for _ in failed)]
    if not rows:
        raise InputError("no sample has a step")
    nothing = [None] * len(failed)
    texts, names = [*given.about.query, *nothing], [*given.about.name, *nothing]
    ids = _step_ids(samples, rows, number)
    check_ids(ids, samples.reading.source)

    def repeated(column: Sequence[Any] | None) -> list[Any] | None:
        return None if column is None else [column[i] for i in rows]

    asked = repeated(samples.query) or [None] * len(rows)
    own = [step if step is not None else query for step, query in zip(texts, asked, strict=True)]
    meta = {name: [column[i] for i in rows] for name, column in samples.meta.items()}
    meta |= {"sample": [samples.ids[i] for i in rows], "step": list(map(str, number))}
    if any(names):
        meta["step_name"] = names
    if any(given.about.span_id):
        sample_spans = meta.get("span_id", [None] * len(rows))
        meta["span_id"] = [*given.about.span_id, *sample_spans[len(given.about.span_id) :]]
        meta.pop("span_ids", None)
    without = len(samples) - len(set(rows))
    notes = (Note("no_steps", without, len(samples)),) if without else ()
    return Samples(
        ids=ids,
        retrieved=given.own.take([*range(len(given.own)), *nothing]) if failed else given.own,
        gold=samples.gold.take(np.array(rows, np.int64)),
        query=own if any(text is not None for text in own) else None,
        answer=repeated(samples.answer),
        response=repeated(samples.response),
        cited=repeated(samples.cited),
        meta=meta,
        failed={len(rows) - len(failed) + place: samples.failed[row] for place, row in enumerate(failed)},
        reading=replace(samples.reading, notes=(*samples.reading.notes, *notes)),
    )


def _step_ids(samples: Samples, rows: Sequence[int], number: Sequence[int]) -> list[str]:
    """The ids of steps: `q1#2`; of a query with repeats, a step is repeated with it: `q1#2 #1`."""
    repeats = samples.meta.get(REPEAT, [None] * len(samples))
    queries = query_ids_of(samples.ids, repeats)
    return row_ids([f"{queries[i]}#{n}" for i, n in zip(rows, number, strict=True)], [repeats[i] for i in rows])
