"""The first verb: from samples to a run."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from karat import __version__
from karat.conventions import Convention, find_convention
from karat.errors import BadArgument, UnknownName
from karat.hits import Hits
from karat.judges import Auto, Ids, Judge, choose, find_judge
from karat.judges.auto import nothing_matched
from karat.judges.protocol import check_measurable, with_gold_of
from karat.judges.tokens import Counter, words
from karat.metrics import DEFAULT, Metric, parse_all
from karat.plan import Verdicts
from karat.run import Run
from karat.run.provenance import Provenance
from karat.samples import Reading, Samples, read_samples


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
    memory: str | int = "1GiB",
    jobs: int = 1,
) -> Run:
    """Measure what was retrieved against what should have been.

    Give `samples` (a list of dicts, a frame, or the path of a file), or `retrieved=` and `gold=`
    (lists, dicts by query id, frames or paths). `metrics` are names such as "recall@1,5 ndcg@10 rr".
    With at="doc" a chunk counts as the document it is from. `tokens` counts the tokens of a text for
    budgets such as "recall@500t"; by default these are words. Files that would take more than `memory`
    are evaluated a batch of queries at a time, with the same result. `jobs` is the number of processes that
    long work, such as judging texts, is split over; the result is the same for any.
    """
    wanted = wanted_metrics(metrics, samples)
    c = find_convention(convention)
    judging = find_judge(judge)
    check_measurable(judging, [metric.name for metric in wanted])
    needed = getattr(judging, "needs_gold", True)
    counted = any(metric.has_budget for metric in wanted)
    counted_by = getattr(tokens, "__qualname__", type(tokens).__name__) if counted else ""
    run = samples if retrieved is None else retrieved
    if isinstance(run, str | PathLike) and (samples is None) != (retrieved is None):
        from karat.scale.large_files import Question, evaluate_large

        question = Question(wanted, judging, c, at, tokens if counted else None, counted_by, jobs)
        large = evaluate_large(run, gold, question, memory, skip_bad_rows=skip_bad_rows, need_gold=needed)
        if large is not None:
            return large
    data = read_samples(samples, retrieved=retrieved, gold=gold, skip_bad_rows=skip_bad_rows, need_gold=needed)
    judging, reason = choose_judge(judging, at, data)
    verdicts = _verdicts(data, judging, wanted, tokens if counted else None, jobs)
    hits = verdicts.hits(c)
    if len(hits) == 0 and hits.gold_count().any():
        hits.notes += nothing_matched(data, judging, c)
    return Run(
        ids=data.ids,
        hits=hits,
        metrics=wanted,
        convention=c,
        scores=verdicts.all_scores(wanted, c),
        provenance=provenance_of(data.reading, hits, wanted, judging, reason, c)._replace(tokens=counted_by),
        query=data.query,
        meta=data.meta,
        samples=with_gold_of(hits, verdicts.samples_of(c), judging),
    )


def _verdicts(data: Samples, judge: Judge, metrics: tuple[Metric, ...], tokens: Counter | None, jobs: int) -> Verdicts:
    """Verdicts of this process, or of several."""
    if jobs == 1:
        return Verdicts(data, judge, tokens=tokens)
    from karat.scale.processes import split_verdicts

    return split_verdicts(data, judge, metrics, jobs, tokens=tokens)


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


def wanted_metrics(metrics: Any, samples: Any = None) -> tuple[Metric, ...]:
    """The metrics; who gives the gold or the samples in their place is told."""
    try:
        return parse_all(metrics)
    except (UnknownName, BadArgument) as error:
        if isinstance(metrics, str) and len(metrics) < 4096 and Path(metrics).is_file():
            if isinstance(samples, str) and not Path(samples).exists():
                swapped = f'karat eval {metrics} "{samples}"'
                raise BadArgument("the file comes first, then the metrics", hint=swapped) from None
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
