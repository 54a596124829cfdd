"""A run: its means with their intervals, what is not in them, and its slices by a field."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from karat._internal.arrays import mean_defined
from karat._internal.commit import short
from karat._internal.display import bold, heading, number, paragraph, plural, sanitize, span, text_table
from karat._internal.writers import html_table, to_csv, to_json
from karat.metrics import Metric
from karat.report import aspect_table, measures, numbers, repeats, step_table, summaries, thresholds, unjudged_items
from karat.report import slices as by_slice
from karat.report.flat_metrics import nested_metrics
from karat.report.forms import code, escape, table
from karat.report.notes import remarks
from karat.run import Run
from karat.stats import MIN_QUERIES

_NOTABLE = 0.95
"""A highest possible precision below this is worth a remark."""


def terminal(run: Run, by: Sequence[str] = (), summary: Sequence[str] = (), *, bounds: bool = False) -> str:
    """The heading, the means with their intervals, other summaries and the footnotes; then the slices by each field."""
    ends, comments = run.interval(), metric_comments(run)
    rows = [[name, f"{number(mean)}  {span(*ends[name])}", comments.get(name, "")] for name, mean in run.mean.items()]
    shown = [*(_bounds(run) if bounds else ()), *summaries.terminal(run, summary)]
    more = [*shown, *numbers.terminal(run), *repeats.terminal(run), *_measures(run), *_steps(run), *_thresholds(run)]
    notes = [*footnotes(run), *map(paragraph, summaries.remarks(run, summary))]
    lines = [heading(_heading(run)), "", text_table(rows, gap="   "), *more, *[""] * bool(more), *notes]
    return "\n".join([*lines, *(f"\n{by_slice.terminal(run.by(fields))}" for fields in by)])


def _bounds(run: Run) -> list[str]:
    """The table of the bounds of each mean, and a note on their meaning."""
    header = [bold(name) for name in ("", *unjudged_items.HEADER[1:])]
    lines = text_table([header, *unjudged_items.rows(run)], right=(1, 2, 3))
    return ["", lines, "", paragraph(unjudged_items.bounds_note(run))]


def _measures(run: Run) -> list[str]:
    """The table of the measures, if there are any."""
    if not run.measures:
        return []
    header = [bold(name) for name in ("", *measures.HEADER[1:])]
    return ["", text_table([header, *measures.rows(run)], right=measures.NUMBERS)]


def _steps(run: Run) -> list[str]:
    """The table of the steps, if there are any."""
    if (found := run.steps) is None:
        return []
    header, rows = step_table.header(found, run), step_table.rows(found, run)
    return ["", text_table([[*map(bold, header)], *rows], right=range(1, len(header)))]


def _thresholds(run: Run) -> list[str]:
    """The table of score thresholds, if some queries have no answer."""
    if (found := thresholds.of_metrics(run)) is None:
        return []
    rows = [[*map(bold, thresholds.header(found))], *thresholds.rows_of(found)]
    return ["", text_table(rows, right=thresholds.NUMBERS)]


def markdown(run: Run, by: Sequence[str] = (), summary: Sequence[str] = (), *, bounds: bool = False) -> str:
    """The means with their intervals, other summaries, the remarks, and the slices by each field."""
    p, ends, found = run.provenance, run.interval(), thresholds.of_metrics(run)
    about = f"{repeats.count(run)} · judge: {p.judge} · convention: {run.convention.name}"
    about = " · ".join([about, *unjudged_items.judged_comment(run).values()])
    rows = [[code(name), number(value), span(*ends[name])] for name, value in run.mean.items()]
    parts = [
        f"{code(run.name, 80)} · {escape(about)}",
        table(("metric", "mean", "95 % interval"), rows, right=(1,)),
        *(_bounds_markdown(run) if bounds else ()),
        *summaries.markdown(run, summary),
        *numbers.markdown(run),
        *repeats.markdown(run),
        *([table(measures.HEADER, _as_code(measures.rows(run)), right=measures.NUMBERS)] if run.measures else []),
        *_steps_markdown(run),
        *([] if found is None else [table(thresholds.header(found), thresholds.rows_of(found), thresholds.NUMBERS)]),
        *map(escape, (*remarks(run), *_more_remarks(run), *summaries.remarks(run, summary))),
    ]
    return "\n\n".join([*parts, *(by_slice.markdown(run.by(fields)) for fields in by)])


def html(run: Run) -> str:
    """The means as an HTML table, for notebooks."""
    ends = run.interval()
    rows = [[name, number(value), span(*ends[name])] for name, value in run.mean.items()]
    shown = html_table(("metric", "mean", "95 % interval"), rows, _caption(run))
    if run.numbers:
        shown += html_table(numbers.header(), numbers.rows(run), " · ".join(["numbers", *numbers.remarks(run)]))
    if run.spread:
        shown += html_table(repeats.HEADER, repeats.rows(run), " · ".join(repeats.remarks(run)))
    if run.measures:
        shown += html_table(measures.HEADER, measures.rows(run), " · ".join(["measures", *measures.remarks(run)]))
    if (found := run.steps) is not None:
        about = " · ".join(["steps", *step_table.remarks(run)])
        shown += html_table(step_table.header(found, run), step_table.rows(found, run), about)
    if (scored := thresholds.of_metrics(run)) is not None:
        shown += thresholds.html(scored)
    return shown


def _caption(run: Run) -> str:
    return " · ".join([_heading(run), *unjudged_items.judged_comment(run).values(), *remarks(run)])


def _threshold_remarks(run: Run) -> list[str]:
    return [] if (found := thresholds.of_metrics(run)) is None else thresholds.remarks(found)


def _steps_markdown(run: Run) -> list[str]:
    if (found := run.steps) is None:
        return []
    header = step_table.header(found, run)
    return [table(header, step_table.rows(found, run), right=range(1, len(header)))]


def _bounds_markdown(run: Run) -> list[str]:
    rows = _as_code(unjudged_items.rows(run))
    return [table(unjudged_items.HEADER, rows, right=(1, 2, 3)), escape(unjudged_items.bounds_note(run))]


def _as_code(rows: list[list[str]]) -> list[list[str]]:
    return [[code(first), *others] for first, *others in rows]


def data(run: Run, by: Sequence[str] = (), summary: Sequence[str] = (), *, bounds: bool = False) -> dict[str, Any]:
    """Everything that is shown of a run, as plain values."""
    values = {
        "mean": run.mean,
        "interval": {name: list(ends) for name, ends in run.interval().items()},
        "undefined": run.undefined,
        "failures": run.failures,
        **unjudged_items.data(run, asked=bounds),
        "pooled": run.pooled,
        "queries": len(run.queries),
        "gold_size": run.gold_size,
        "provenance": run.provenance.to_dict(run.commit),
    }
    values |= summaries.data(run, summary) | numbers.data(run) | repeats.data(run)
    values |= ({"measures": measures.data(run)} if run.measures else {}) | step_table.data(run) | aspect_table.data(run)
    if (found := thresholds.of_run(run)) is not None:
        values |= {"thresholds": thresholds.data(found), "nauc": run.nauc()}
    return values | {"by": {fields: by_slice.data(run.by(fields)) for fields in by}} if by else values


def csv(run: Run, by: Sequence[str] = (), summary: Sequence[str] = (), *, bounds: bool = False) -> str:
    """One row per query, or per slice, or per metric and summary."""
    import polars as pl

    summaries.check_forms(by, summary, bounds=bounds)
    if summary:
        return to_csv(summaries.frame(run, summary))
    whole = unjudged_items.with_bounds(run) if bounds else run.table
    tables = pl.concat([run.by(fields).table for fields in by] or [whole], how="diagonal")
    return to_csv(tables.select(pl.col(pl.String), pl.exclude(pl.String)))


def metrics(run: Run, by: Sequence[str] = (), summary: Sequence[str] = (), *, bounds: bool = False) -> str:
    """The numbers of the run under flat names, as JSON, which DVC reads."""
    return to_json(nested_metrics(run, by, summary, bounds=bounds))


def report(run: Run, path: str | os.PathLike[str], **options: Any) -> None:
    """Write the run as one HTML page."""
    from karat.report.html import report

    report(run, path, **options)


def _heading(run: Run) -> str:
    p = run.provenance
    why = f" (chosen: {p.judge_reason})" if p.judge_reason else ""
    tokens = f" · tokens: {p.tokens}" if p.tokens else ""
    tokens += f" · steps merged: {p.merge}" if p.merge else ""
    commit = f" · commit {short(p.commit)}" if p.commit else ""
    return sanitize(
        f"{run.name} · {repeats.count(run)} · judge: {p.judge}{why} · convention: {run.convention.name}{tokens}{commit}"
    )


def metric_comments(run: Run) -> dict[str, str]:
    """A comment next to some means: the number of gold items, and the highest possible precision."""
    comments: dict[str, str] = {}
    recall = next((metric.columns[0][0] for metric in run.metrics if metric.name == "recall"), None)
    if recall is not None and run.gold_size == run.gold_size:
        comments[recall] = f"{run.gold_size:.1f} gold items per query"
    for metric in run.metrics:
        if metric.name == "precision":
            comments |= _highest_precision(run, metric)
    for name, text in unjudged_items.judged_comment(run).items():
        comments[name] = f"{comments[name]}, {text}" if name in comments else text
    return comments


def _highest_precision(run: Run, metric: Metric) -> dict[str, str]:
    """The highest possible precision, if queries have fewer gold items than k."""
    if run.convention.precision_over != "k" or not run.all_hits.one_to_one:
        return {}
    gold = run.all_hits.gold_count(metric.rel).astype(float)
    gold[[*np.flatnonzero(gold == 0), *run.all_hits.failed]] = np.nan
    ranks = [(name, k) for name, k in metric.columns if isinstance(k, int)]
    best = {name: mean_defined(run.per_query(np.minimum(gold / k, 1))) for name, k in ranks}
    return {name: f"highest possible {value:.3f}" for name, value in best.items() if value < _NOTABLE}


def footnotes(run: Run) -> list[str]:
    """The queries behind the intervals, then the remarks."""
    defined = {*run.defined.values()}
    over = plural(max(defined), "query", "queries") if len(defined) == 1 else "the queries that are defined"
    first = [f"95 % intervals over {over} (Gaffke's bound)."] if max(defined) >= MIN_QUERIES else []
    return [paragraph(line) for line in (*first, *remarks(run), *_more_remarks(run))]


def _more_remarks(run: Run) -> list[str]:
    """The remarks on numbers, repeats, measures, steps, aspects and thresholds."""
    first = [*numbers.remarks(run), *repeats.remarks(run)]
    return [
        *first,
        *measures.remarks(run),
        *step_table.remarks(run),
        *aspect_table.remarks(run),
        *_threshold_remarks(run),
    ]
