"""Runs on the terminal: what a user wants to know first, how sure it is, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from karat._internal.display import folded, number, plural, sanitize, span, text_table
from karat._internal.grammar import write
from karat.judges import all_judges
from karat.metrics import METRICS, Metric
from karat.run import Run

_RATHER_LOW = 0.95


def evaluation(run: Run) -> str:
    """One run: where it came from, the means with their intervals, and what stands behind them."""
    lines = [_heading(run), "", _means({"": run}), *_footnotes(run)]
    return "\n".join(lines)


def side_by_side(runs: Mapping[str, Run]) -> str:
    """Several runs over the same queries, one column each."""
    first = next(iter(runs.values()))
    return "\n".join([_means(runs), *_footnotes(first)])


def metric_list() -> str:
    """Every metric: its name, what it says, what may be set."""
    rows = []
    for name, d in METRICS.items():
        settings = ", ".join(f"{s}={'' if v is None else v}" for s, v in d.settings.items())
        call = f"{name}({settings})" if settings else name
        also = f" Also: {', '.join(d.aliases)}." if d.aliases else ""
        rows.append([call + ("@k" if d.cutoff else ""), d.help + also])
    about = (
        "@k: any cutoff, such as recall@1,5,10, or a budget of tokens, recall@500t. rel: the least grade that counts."
    )
    return f"{folded(rows)}\n\n  {about}"


def judge_list() -> str:
    """Every judge: its name, what may be set, what it takes for a match."""
    from inspect import Parameter, signature

    rows = []
    for name, maker in all_judges().items():
        given = signature(maker).parameters.values()
        settings = ", ".join(p.name if p.default is Parameter.empty else f"{p.name}={write(p.default)}" for p in given)
        rows.append([f"{name}({settings})" if settings else name, (maker.__doc__ or "").partition("\n")[0]])
    return folded(rows)


def _heading(run: Run) -> str:
    p = run.provenance
    why = f" (chosen: {p.judge_reason})" if p.judge_reason else ""
    return (
        f"{sanitize(p.source)} · {plural(len(run), 'query', 'queries')} · "
        f"judge: {p.judge}{why} · convention: {run.convention.name}{f' · tokens: {p.tokens}' if p.tokens else ''}"
    )


def _means(runs: Mapping[str, Run]) -> str:
    """A row for each metric, with mean and interval of each run."""
    all_ends = [run.interval() for run in runs.values()]
    first = next(iter(runs.values()))
    beside = _beside(first)
    rows = []
    if list(runs) != [""]:
        rows.append(["", *(sanitize(name, 20) for name in runs), ""])
    for name in first.mean:
        means = [
            f"{number(run.mean[name])}  {span(*ends[name])}" for run, ends in zip(runs.values(), all_ends, strict=True)
        ]
        rows.append([name, *means, beside.get(name, "")])
    return text_table(rows, gap="   ")


def _beside(run: Run) -> dict[str, str]:
    """What to know beside a mean: the size of the gold, and what precision could be at best."""
    said: dict[str, str] = {}
    size, size_said = run.gold_size, None
    for metric in run.metrics:
        name, _ = metric.columns[0]
        if metric.name == "recall" and size == size and size_said is None:
            said[name] = size_said = f"{size:.1f} gold items per query"
        if metric.name == "precision":
            said |= _ceilings(run, metric)
    return said


def _ceilings(run: Run, metric: Metric) -> dict[str, str]:
    """What precision could be at best, where queries have fewer gold items than k."""
    if run.convention.precision_over != "k" or not run.all_hits.one_to_one:
        return {}
    gold = run.all_hits.gold_count(metric.settings.get("rel"))
    gold = gold[gold > 0]
    ranks = [(name, k) for name, k in metric.columns if isinstance(k, int) and len(gold)]
    best = {name: float(np.minimum(gold / k, 1).mean()) for name, k in ranks}
    return {name: f"at best {value:.3f}" for name, value in best.items() if value < _RATHER_LOW}


def _footnotes(run: Run) -> list[str]:
    """How sure the means are, and what is not in them."""
    defined = {len(run) - count for count in run.undefined.values()}
    over = plural(max(defined), "query", "queries") if len(defined) == 1 else "the queries that are defined"
    first = "95 % intervals: bootstrap over " + over if max(defined) > 1 else "no intervals: too few queries"
    return [f"  {line}" for line in (f"{first}.", *run.remarks())]
