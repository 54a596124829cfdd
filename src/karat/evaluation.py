"""The first verb: from samples to a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from karat._version import __version__
from karat.arrays import Floats
from karat.budgets import costs
from karat.conventions import Convention, find_convention
from karat.errors import BadArgument, UnknownName
from karat.hits import Hits
from karat.judges import Auto, Exact, Ids, Judge, choose, find_judge
from karat.judges.hints import nothing_matched
from karat.metrics import DEFAULT, Metric, parse_all
from karat.provenance import Provenance
from karat.run import Run
from karat.samples import Samples, read_samples
from karat.tokens import Counter, words


def evaluate(
    samples: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT,
    *,
    retrieved: Any = None,
    gold: Any = None,
    judge: str | Judge = "auto",
    at: Literal["item", "doc"] = "item",
    tokens: Counter = words,
    convention: str | Convention = "standard",
    skip_bad_rows: bool = False,
) -> Run:
    """Measure what was retrieved against what should have been.

    Give `samples` (a list of dicts, a frame, or the path of a file), or `retrieved=` and `gold=`
    (lists, dicts by query id, frames or paths). `metrics` are names such as "recall@1,5 ndcg@10 rr".
    With at="doc" a chunk counts as the document it is from. `tokens` counts the tokens of a text for
    budgets such as "recall@500t"; by default these are words.
    """
    wanted = _wanted(metrics)
    c = find_convention(convention)
    judging = _at(find_judge(judge), at)
    data = read_samples(samples, retrieved=retrieved, gold=gold, skip_bad_rows=skip_bad_rows)
    reason = ""
    if isinstance(judging, Auto):
        judging, reason = choose(data)
    hits = judging(data, c)
    if not isinstance(judging, Ids | Exact):
        _check(hits, judging, data)
    if len(hits) == 0 and hits.gold_count().any():
        hits.notes += nothing_matched(data, judging, c)
    counted_by = ""
    if any(metric.has_budget for metric in wanted):
        hits.along = hits.along.also("tokens", costs(data, hits, judging, tokens, c))
        counted_by = getattr(tokens, "__qualname__", type(tokens).__name__)
    return Run(
        ids=data.ids,
        hits=hits,
        metrics=wanted,
        convention=c,
        scores=measure(hits, wanted, c, data),
        provenance=_provenance(data, hits, wanted, judging, reason, c)._replace(tokens=counted_by),
        query=data.query,
        meta=data.meta,
        samples=data,
    )


def _at(judge: Judge, at: str) -> Judge:
    """The judge that compares documents, if that is asked for; only ids can be put in the place of chunks."""
    if at == "item":
        return judge
    if not isinstance(judge, Auto | Ids):
        raise BadArgument('at="doc" compares documents by their ids, not by texts', got=judge.name, hint='judge="ids"')
    return Ids(at=at)  # type: ignore[arg-type]


def _check(hits: object, judge: Judge, data: Samples) -> None:
    """Refuse what a judge that is not karat's own must not return."""
    if not isinstance(hits, Hits):
        raise BadArgument(f'the judge "{judge.name}" gave {type(hits).__name__}; wanted karat.Hits')
    if hits.queries != len(data):
        raise BadArgument(f'the judge "{judge.name}" gave hits of {hits.queries} queries for {len(data)} samples')
    hits.check()


def _wanted(metrics: Any) -> tuple[Metric, ...]:
    """The metrics; who gives the gold in their place is told."""
    try:
        return parse_all(metrics)
    except (UnknownName, BadArgument) as error:
        if isinstance(metrics, str) and len(metrics) < 4096 and Path(metrics).is_file():
            raise BadArgument(
                f"{metrics} is a file, not a metric", hint=f'gold="{metrics}", or --gold {metrics}'
            ) from None
        if isinstance(metrics, str | list | tuple):
            raise
        raise BadArgument(error.problem, got=metrics, hint="gold=… if this is the gold") from None


def score(
    metric: str | Metric,
    retrieved: Any,
    gold: Any,
    *,
    judge: str | Judge = "auto",
    at: Literal["item", "doc"] = "item",
    tokens: Counter = words,
    convention: str | Convention = "standard",
) -> float:
    """One query, one metric, one number."""
    columns = [column for one in parse_all(metric) for column in one.columns]
    if len(columns) != 1:
        raise BadArgument(
            "score gives one number; wanted one metric with one cutoff", got=str(metric), hint='"recall@5"'
        )
    run = evaluate(
        metrics=metric, retrieved=[retrieved], gold=[gold], judge=judge, at=at, tokens=tokens, convention=convention
    )
    return float(run.scores[columns[0][0]][0])


def measure(hits: Hits, metrics: Iterable[Metric], c: Convention, samples: Samples) -> dict[str, Floats]:
    """Every metric at every cutoff, one number per query."""
    dropped = samples.missing if c.missing == "drop" else None
    scores: dict[str, Floats] = {}
    for metric in metrics:
        scores |= metric.scores(hits, c)
    if dropped is None:
        return scores
    return {name: np.where(dropped, np.nan, values) for name, values in scores.items()}


def _provenance(
    data: Samples, hits: Hits, metrics: tuple[Metric, ...], judge: Judge, reason: str, c: Convention
) -> Provenance:
    reading = data.reading
    return Provenance(
        karat=__version__,
        metrics=tuple(str(metric) for metric in metrics),
        judge=judge.name,
        judge_reason=reason,
        convention=c.name,
        source=reading.source,
        notes=(*reading.notes, *hits.notes),
        missing=reading.missing,
        extra=reading.extra,
        skipped=reading.skipped,
    )
