"""The first verb: from samples to a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from karat._version import __version__
from karat.conventions import Convention, find_convention
from karat.errors import BadArgument, UnknownName
from karat.hits import Hits
from karat.judges import Auto, Ids, Judge, choose, find_judge
from karat.judges.hints import nothing_matched
from karat.metrics import DEFAULT, Metric, parse_all
from karat.provenance import Provenance
from karat.run import Run
from karat.samples import Reading, Samples, read_samples
from karat.tokens import Counter, words
from karat.verdicts import Verdicts


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
    wanted = wanted_metrics(metrics)
    c = find_convention(convention)
    judging = find_judge(judge)
    data = read_samples(samples, retrieved=retrieved, gold=gold, skip_bad_rows=skip_bad_rows)
    judging, reason = choose_judge(judging, at, data)
    counted = any(metric.has_budget for metric in wanted)
    verdicts = Verdicts(data, judging, tokens=tokens if counted else None)
    hits = verdicts.hits(c)
    if len(hits) == 0 and hits.gold_count().any():
        hits.notes += nothing_matched(data, judging, c)
    counted_by = getattr(tokens, "__qualname__", type(tokens).__name__) if counted else ""
    return Run(
        ids=data.ids,
        hits=hits,
        metrics=wanted,
        convention=c,
        scores=verdicts.all_scores(wanted, c),
        provenance=provenance_of(data.reading, hits, wanted, judging, reason, c)._replace(tokens=counted_by),
        query=data.query,
        meta=data.meta,
        samples=verdicts.samples_of(c),
    )


def choose_judge(judge: str | Judge, at: str, data: Samples) -> tuple[Judge, str]:
    """The judge, and why it was chosen if the caller left that open.

    To compare documents only ids can be put in the place of chunks.
    """
    judging = find_judge(judge)
    if at != "item":
        if not isinstance(judging, Auto | Ids):
            problem = 'at="doc" compares documents by their ids, not by texts'
            raise BadArgument(problem, got=judging.name, hint='judge="ids"')
        judging = Ids(at=at)  # type: ignore[arg-type]
    return choose(data) if isinstance(judging, Auto) else (judging, "")


def wanted_metrics(metrics: Any) -> tuple[Metric, ...]:
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


def _beyond(metrics: tuple[Metric, ...], c: Convention) -> tuple[str, ...]:
    """Metrics that the library of a convention does not have, though its choices can be applied to them."""
    beyond = [name for metric in metrics for name, k in metric.columns if not c.has(metric.name, k)]
    if not beyond:
        return ()
    return (f"{c.name} itself has no {', '.join(beyond)}: its choices, applied to karat's definition",)


def provenance_of(
    reading: Reading, hits: Hits, metrics: tuple[Metric, ...], judge: Judge, reason: str, c: Convention
) -> Provenance:
    """Where a run came from: how the data were read, and what was asked of them."""
    return Provenance(
        karat=__version__,
        metrics=tuple(str(metric) for metric in metrics),
        judge=judge.name,
        judge_reason=reason,
        convention=c.name,
        source=reading.source,
        notes=(*reading.notes, *hits.notes, *_beyond(metrics, c)),
        missing=reading.missing,
        extra=reading.extra,
        skipped=reading.skipped,
    )
