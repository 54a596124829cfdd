"""Runs of stages: evaluated from samples with several rankings, or given, with the queries and items they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple

from karat.analysis.changes import rows_of
from karat.analysis.compare import chosen_metrics, run_names
from karat.errors import BadArgument, InputError, unknown
from karat.judges import Judge
from karat.judges.matches import as_texts
from karat.metrics.names import parse_stored
from karat.plan import Plan
from karat.run import Run
from karat.samples import Samples
from karat.samples.field_map import Fields
from karat.samples.keys import as_text
from karat.samples.stage_tables import read_stages

RunLike = Run | str | PathLike[str]
_RUN = (Run, str, PathLike)
Identities = Sequence[frozenset[Any]]
"""The different items of each ranking."""


def given_runs(samples: Any, names: Sequence[str] | None) -> dict[str, RunLike] | None:
    """The runs by name; None if samples are given."""
    if isinstance(samples, Run):
        raise BadArgument("one run is one stage", hint="[run, reranked_run], or samples with stages")
    if isinstance(samples, Mapping) and samples and all(isinstance(one, _RUN) for one in samples.values()):
        by_name = {str(name): run for name, run in samples.items()}
        if names is None:
            return by_name
        for name in (chosen := [names] if isinstance(names, str) else list(names)):
            if name not in by_name:
                raise unknown("stage", str(name), by_name, "one of: " + ", ".join(by_name))
        return {name: by_name[name] for name in chosen}
    if isinstance(samples, list | tuple) and samples and all(isinstance(one, _RUN) for one in samples):
        return dict(zip(run_names(samples, names), samples, strict=True))
    return None


class StageRuns(NamedTuple):
    """The runs of the stages, and the different items of every ranking."""

    runs: dict[str, Run]
    items: dict[str, Identities] | None


def evaluate_stages(samples: Any, plan: Plan, names: Sequence[str] | None, fields: Fields = None) -> StageRuns:
    """Evaluate each stage by the same plan."""
    if not plan.judge.complete_gold:
        problem = f'judge "{plan.judge.name}" grades only what a stage retrieved: the stages would have different gold'
        raise BadArgument(problem, hint="a judge that compares with gold, such as ids, contains or claims(…)")
    plan.check_scores()
    tables = read_stages(samples, names, need_gold=plan.judge.needs_gold, fields=fields)
    plans = {name: plan.with_judge_for(own) for name, own in tables.items()}
    chosen = {name: own.judge.name for name, own in plans.items()}
    if len(set(chosen.values())) > 1:
        got = ", ".join(f"{name}: {own}" for name, own in chosen.items())
        raise InputError("the stages have items of different kinds", got=got, hint='judge="ids", or another judge')
    runs = {name: plans[name].evaluate_all(own) for name, own in tables.items()}
    return StageRuns(runs, _identities(tables, next(iter(plans.values()))))


def _identities(tables: Mapping[str, Samples], plan: Plan) -> dict[str, Identities] | None:
    """The different items of every ranking, by the fields that the items of every stage have; None without any."""
    judge, c = plan.judge, plan.convention
    fields = [name for name in judge.fields if all(name in own.retrieved.any_fields for own in tables.values())]
    found: dict[str, Identities] = {}
    for name, samples in tables.items():
        columns = [samples.retrieved.each(field, c) for field in fields]
        if len(columns) == 1 and type(judge).same is Judge.same:  # much faster, and usual
            found[name] = [frozenset(as_texts(own)) for own in columns[0]]
        else:
            rows = zip(*columns, strict=True)
            found[name] = [frozenset(_identity(judge, item) for item in zip(*own, strict=True)) for own in rows]
    return found if fields else None


def _identity(judge: Judge, item: tuple[Any, ...]) -> tuple[str | None, ...]:
    return tuple(None if value is None else judge.same(as_text(value)) for value in item)


def with_metrics(runs: Mapping[str, Run], metrics: Any) -> tuple[dict[str, Run], list[str]]:
    """The runs with the metrics that are compared."""
    if len(runs) < 2:
        raise BadArgument("one run is one stage", got=list(runs), hint="karat stages bm25.parquet reranked.parquet")
    if odd := next((name for name, run in runs.items() if run.all_hits.gold_items.incomplete), None):
        problem = f"{odd}: its judge grades only what the stage retrieved, so that the stages have different gold"
        raise BadArgument(problem, got=runs[odd].provenance.judge)
    first, *others = runs.values()
    columns = [name for name in first.columns if all(name in run.columns for run in others)]
    if metrics is not None:
        columns = chosen_metrics(metrics, columns, "metric in every stage")
    if not any(name in first.scores for name in columns):
        have = "; ".join(f"{name}: {', '.join(run.columns)}" for name, run in runs.items())
        raise BadArgument("the stages have no metric to compare", got=have, hint="karat eval with the same metrics")
    if not all(list(run.columns) == columns for run in runs.values()):
        kept = tuple(map(parse_stored, columns))
        runs = {
            name: run.replace(scores={column: run.columns[column] for column in columns}, metrics=kept)
            for name, run in runs.items()
        }
    return dict(runs), [name for name in columns if name in first.scores]


def run_over(run: Run, ids: Sequence[str]) -> Run:
    """The run over these queries, in this order."""
    return run if list(run.ids) == list(ids) else run.take(rows_of(run, ids).tolist())


def shared_runs(runs: Mapping[str, Run]) -> dict[str, Run]:
    """The runs over the queries that every stage has, and that could be judged in every stage."""
    *_, last = runs.values()
    others = [set(run.ids) for run in runs.values()]
    failed = {query for run in runs.values() for query in run.failures}
    ids = [query for query in last.ids if query not in failed and all(query in own for own in others)]
    if not ids:
        raise BadArgument("no query has every stage", got={name: f"{len(run)} queries" for name, run in runs.items()})
    return {name: run_over(run, ids) for name, run in runs.items()}


def stored_identities(runs: Mapping[str, Run]) -> dict[str, Identities] | None:
    """The different items of every ranking, if the runs store all of them under a common field."""
    stored = {name: run.stored_items for name, run in runs.items()}
    for name, own in stored.items():
        if own is None or (runs[name].all_hits.depth > own.extent.places).any():
            return None
    columns = {name: own.retrieved for name, own in stored.items() if own is not None}
    documents = any(run.provenance.compares == "doc" for run in runs.values())
    for field in ("doc",) if documents else ("id", "text"):
        if all(field in own and None not in own[field] for own in columns.values()):
            if field == "text" and any("length" in own for own in columns.values()):
                return None  # texts are cut
            found: dict[str, Identities] = {}
            for name, own in stored.items():
                assert own is not None
                bounds = pairwise(own.start.tolist())
                found[name] = [frozenset(own.retrieved[field][a:b]) for a, b in bounds]
            return found
    return None
