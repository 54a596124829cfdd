"""Evaluate retrieval results: `evaluate()` and `score()`. Samples → judge → hits → metrics → run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from os import PathLike
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np  # noqa: F401  # before karat's own modules: after them it takes 15 ms longer to import

from karat.conventions import Convention
from karat.errors import BadArgument, KaratError
from karat.judges import JudgeLike
from karat.judges.tokens import Counter, words
from karat.metrics import DEFAULT, Metric, parse_all
from karat.plan import Plan
from karat.run import Run
from karat.run.numbers import check_fields, read_fields
from karat.samples import read_samples
from karat.samples.field_map import Fields
from karat.samples.loading import Selection
from karat.samples.step_rows import each_step

P = ParamSpec("P")
R = TypeVar("R")


def sides_have_names(verb: Callable[P, R]) -> Callable[P, R]:
    """The function `verb(samples, metrics, …)`, which explains a call as (retrieved, gold, metrics) or with options."""

    @wraps(verb)
    def call(*given: P.args, **named: P.kwargs) -> R:
        if len(given) > 2 and _are_metrics(given[1]):
            hint = f'karat.{verb.__name__}(samples, "recall@5", judge="ids")'
            raise BadArgument("options have names: they are not passed by position", hint=hint)
        if len(given) > 2 or (len(given) == 2 and "metrics" in named):
            hint = f'karat.{verb.__name__}(retrieved=…, gold=…, metrics="recall@5")'
            raise BadArgument("results and gold have names: they are not passed by position", hint=hint)
        return verb(*given, **named)

    return call


def _are_metrics(given: Any) -> bool:
    try:
        return bool(parse_all(given))
    except KaratError:
        return False


@sides_have_names
def evaluate(
    samples: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT,
    *,
    retrieved: Any = None,
    gold: Any = None,
    judge: JudgeLike = "auto",
    at: Literal["item", "doc", "step"] = "item",
    tokens: Counter = words,
    convention: str | Convention = "standard",
    order: Literal["listed", "score"] | None = None,
    merge: str = "concat",
    also: str | Sequence[str] = (),
    skip_bad_rows: bool = False,
    memory: str | int = "1GiB",
    jobs: int = 1,
    fields: Fields = None,
    split: str | None = None,
) -> Run:
    """Evaluate what a retriever returned against what it should have returned.

    Args:
        samples: results and gold together: a list of dicts with "query", "retrieved" and "gold", a Polars, pandas
            or PyArrow frame, or the path of a JSONL, JSON, CSV, Parquet or TREC file. Or pass `retrieved` and `gold`.
        metrics: metric names, such as "recall@1,5 ndcg@10 rr". `karat metrics` lists them.
        retrieved: the results alone: a list of rankings, a dict by query id, a frame, or a path.
        gold: the relevant items alone, in the same forms; a dict of grades per query is allowed.
        judge: how items are matched: "auto" (chosen from the data), "ids", "text", "contains", "fuzzy(0.8)",
            "spans", "claims(gpt-4o-mini)", …, a judge object, or a function of a gold item and a retrieved item that
            returns True, False or a similarity from 0 to 1. The function gets strings if the items are strings, and
            dicts such as `item["text"]` if they are records. `karat judges` lists the judges.
        at: "item" compares items; "doc" counts each chunk as the document it is from; "step" evaluates each step of a
            sample with `steps` as a query of its own.
        tokens: counts the tokens of a text, for budgets such as "recall@500t"; the default counts words.
        convention: the definition of the metrics: "standard" (trec_eval's), or that of another library, such as
            "llamaindex", with settings if needed: "standard(ties=given)". `karat conventions` lists them.
        order: "listed" keeps the order of items given as a list, "score" sorts them by score. The default is that of
            the convention: the standard one keeps it, those of libraries that always sort do not.
        merge: how the steps of a sample become one ranking: "concat" (one after the other), "interleave" (rank 1 of
            each, then rank 2), "rrf(60)", "max" (the best score of an item) or "union" (a set, for metrics without k).
        also: numeric fields of the samples to summarise beside the scores, such as "cost,tokens"; less is better,
            unless "(more)" follows: "clicks(more)". "latency", in milliseconds, is summarised without being named.
        skip_bad_rows: skip rows that cannot be read instead of failing; the run reports their number.
        memory: files that need more memory than this are evaluated in batches, with the same result. Judges that
            call a language model need all queries at once: for them such files are refused.
        jobs: the number of worker processes for slow judges; the result does not depend on it.
        fields: your column names, by karat's: `{"retrieved": "docs", "gold": "relevant"}`. A dot reaches into records
            ("output.docs"); "retrieved.id" and "gold.id" are fields of the items. docs/fields.md lists them.
        split: the split of a data set, such as "dev" of a BEIR folder.

    Returns:
        A `Run`: `run.mean["recall@5"]`, `run.interval()`, `run.table` (one row per query), `run.by("topic")`,
        `run.gold("q1")`, `run.save("run.parquet")`.

    Example:
        >>> run = karat.evaluate(retrieved=[["a", "b"], ["c"]], gold=[["b"], ["d"]], metrics="recall@2 rr")
        >>> run.mean["recall@2"]
        0.5
    """
    plan = Plan.of(metrics, judge, convention, at=at, tokens=tokens, order=order, merge=merge, samples=samples)
    plan.check_scores()
    numbers = read_fields(also) if also else ()
    source = samples if retrieved is None else retrieved
    if isinstance(source, str | PathLike) and (samples is None) != (retrieved is None):
        from karat.scale.large_files import evaluate_large

        selection = Selection(fields, split)
        large = evaluate_large(
            source, gold, plan, memory=memory, jobs=jobs, skip_bad_rows=skip_bad_rows, selection=selection
        )
        if large is not None:
            return large.also(also) if numbers else large
    need_gold = plan.judge.needs_gold
    data = read_samples(
        samples, retrieved=retrieved, gold=gold, skip_bad_rows=skip_bad_rows, need_gold=need_gold, fields=fields,
        split=split,
    )  # fmt: skip
    data = each_step(plan.seen(data)) if at == "step" else data
    plan = plan.with_judge_for(data)
    plan.check_samples(data)
    if numbers:
        check_fields(numbers, data.ids, data.meta, {name for metric in plan.metrics for name in metric.names})
    if jobs == 1:
        run = plan.evaluate_all(data)
    else:
        from karat.scale.processes import evaluate_in_processes

        run = evaluate_in_processes(plan, data, jobs)
    return run.also(also) if numbers else run


def score(
    metric: str | Metric,
    retrieved: Any,
    gold: Any,
    *,
    judge: JudgeLike = "auto",
    at: Literal["item", "doc"] = "item",
    tokens: Counter = words,
    convention: str | Convention = "standard",
    order: Literal["listed", "score"] | None = None,
) -> float:
    """Evaluate one query with one metric.

    Args:
        metric: one metric with one cutoff, such as "recall@5".
        retrieved: what was retrieved: a list, best first, or a dict of scores.
        gold: the relevant items.
        judge: how items are matched, as in `karat.evaluate`.
        at: "item", or "doc" to compare documents.
        tokens: counts the tokens of a text, for budgets such as "recall@500t".
        convention: the definition of the metric.
        order: "score" sorts a list by its scores, as in `karat.evaluate`.

    Returns:
        The score; NaN if it is undefined, such as recall without gold.

    Example:
        >>> karat.score("recall@5", ["a", "b"], ["a", "c"])
        0.5
    """
    if at not in ("item", "doc"):
        raise BadArgument('score takes one ranking: at is "item" or "doc"', got=at)
    if not isinstance(metric, str | Metric):
        raise BadArgument("the metric comes first", got=metric, hint='karat.score("recall@5", retrieved, gold)')
    columns = [column for one in parse_all(metric) for column in one.columns]
    if len(columns) != 1:
        raise BadArgument("score takes one metric with one cutoff", got=str(metric), hint='"recall@5"')
    plan = Plan.of(metric, judge, convention, at=at, tokens=tokens, order=order)
    data = read_samples(retrieved=[retrieved], gold=[gold])
    plan.check_samples(data)
    return float(plan.with_judge_for(data).measure(data)[columns[0][0]][0])
