"""Stages of a pipeline: samples with several named rankings per query, split into one table of samples per stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from karat.errors import BadArgument, InputError, unknown
from karat.samples.columns import Samples
from karat.samples.field_map import Fields
from karat.samples.frames import is_frame
from karat.samples.loading import Selection, load
from karat.samples.read import samples_of_table
from karat.samples.rows import QueryTable, query_table

_EXAMPLE = '"stages": {"bm25": […], "reranked": […]} in each sample'


def read_stages(
    samples: Any, names: Sequence[str] | None = None, *, need_gold: bool = True, fields: Fields = None
) -> dict[str, Samples]:
    """The samples of each stage, in the order of the pipeline; a query without a stage is not in its samples.

    `names` chooses the stages and their order.
    """
    selection = Selection(fields)
    loaded, source = load(samples, "samples", selection=selection, stages=True)
    selection.check(source)
    table = query_table(loaded, source)
    if not table.staged:
        raise InputError(f'{source}: no column "stages"', got=table.given[:9], hint=f"{_EXAMPLE}, or several run files")
    failed = table.failed()
    given = enumerate(table.columns["stages"])
    rows = [{} if row in failed else _stages_of(value, row, table) for row, value in given]
    if is_frame(loaded):
        rows = [{name: _without_nulls(ranking) for name, ranking in stages.items()} for stages in rows]
    chosen = _order(rows, table) if names is None else _chosen(rows, names)
    if len(chosen) < 2:
        raise InputError(f"{source}: one stage is nothing to compare with", got=list(chosen), hint=_EXAMPLE)
    if "id" in table.columns:
        return {name: _samples_of_stage(table, rows, name, need_gold=need_gold) for name in chosen}
    with_ids = table._replace(columns=table.columns | {"id": table.ids()})
    found = {name: _samples_of_stage(with_ids, rows, name, need_gold=need_gold) for name in chosen}
    return {name: replace(own, numbered=True) for name, own in found.items()}


def _stages_of(value: Any, row: int, table: QueryTable) -> dict[str, Any]:
    """The rankings of one query by the names of their stages."""
    if value is None or value == {}:
        raise InputError(f"{table.where(row)}: the query has no stage", hint=_EXAMPLE)
    if not isinstance(value, Mapping):
        expected = "expected a ranking by the name of each stage"
        raise InputError(f'{table.where(row)}: field "stages": {expected}', got=value, hint=_EXAMPLE)
    for name in value:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{table.where(row)}: the name of a stage is a text", got=name, hint=_EXAMPLE)
    return dict(value)


def _without_nulls(ranking: Any) -> Any:
    """A ranking without null fields and scores: in a frame every record has all fields."""
    if isinstance(ranking, Mapping):
        return {name: value for name, value in ranking.items() if value is not None}
    if isinstance(ranking, list):
        return [_without_nulls(item) if isinstance(item, Mapping) else item for item in ranking]
    return ranking


def _order(rows: Sequence[Mapping[str, Any]], table: QueryTable) -> list[str]:
    """The stages of all queries in the order in which the queries have them, which must not contradict each other."""
    before: dict[str, set[str]] = {}
    example: dict[tuple[str, str], int] = {}
    for row, stages in enumerate(rows):
        names = list(stages)
        for place, name in enumerate(names):
            before.setdefault(name, set()).update(names[:place])
            for earlier in names[:place]:
                example.setdefault((earlier, name), row)
    order: list[str] = []
    while len(order) < len(before):
        free = [name for name, own in before.items() if name not in order and not own - {*order}]
        if not free:
            one, two = next(pair for pair in example if (pair[1], pair[0]) in example)
            places = table.where(example[one, two]), table.where(example[two, one])
            problem = f'"{one}" is before "{two}" in {places[0]}, and after it in {places[1]}'
            raise InputError(f"{problem}: the order of the stages is not known", hint=f'names=["{one}", "{two}"]')
        order.append(free[0])
    return order


def _chosen(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """The given names, which must be those of stages."""
    known = list(dict.fromkeys(name for stages in rows for name in stages))
    chosen = [str(name) for name in ([names] if isinstance(names, str) else names)]
    for name in chosen:
        if name not in known:
            raise unknown("stage", name, known, "one of: " + ", ".join(known))
    if len(set(chosen)) < len(chosen):
        raise BadArgument("a stage is named twice", got=chosen)
    return chosen


def _samples_of_stage(table: QueryTable, rows: Sequence[Mapping[str, Any]], name: str, *, need_gold: bool) -> Samples:
    """The samples of one stage, over the queries that have it."""
    failed = table.failed()
    given = [row for row, stages in enumerate(rows) if stages.get(name) is not None or row in failed]
    if len(given) == len(failed):
        raise InputError(f'{table.source}: no query has a ranking of stage "{name}"', hint=f'"{name}": […]')
    columns = {column: values for column, values in table.columns.items() if column != "stages"}
    columns["retrieved"] = [stages.get(name) for stages in rows]
    try:
        return samples_of_table(table._replace(columns=columns).take(given), need_gold=need_gold)
    except InputError as error:
        refused = InputError(f'stage "{name}": {error.problem}', hint=error.hint)
        refused.got = error.got
        raise refused from error
