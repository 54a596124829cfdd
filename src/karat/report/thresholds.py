"""Score thresholds: false alarms and recall as a table and as advice, and the remark on queries without an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karat._internal.display import bold, heading, number, paragraph, percent, plural, span, text_table
from karat._internal.writers import html_table, plain, to_csv
from karat.errors import BadArgument
from karat.metrics import METRICS
from karat.report.forms import escape, table
from karat.run import Run
from karat.run.thresholds import KEPT, ThresholdPoint, Thresholds
from karat.samples.notes import Note
from karat.stats import MIN_QUERIES

NUMBERS = range(1, 5)
"""The columns of numbers."""


def terminal(found: Thresholds) -> str:
    """The table of a few thresholds, and the AUROC."""
    rows = [[*map(bold, header(found))], *rows_of(found)]
    return "\n".join([heading(_heading(found)), "", text_table(rows, right=NUMBERS), *map(paragraph, remarks(found))])


def markdown(found: Thresholds) -> str:
    """The same as Markdown."""
    shown = table(header(found), rows_of(found), right=NUMBERS)
    return "\n\n".join([escape(_heading(found)), shown, *map(escape, remarks(found))])


def html(found: Thresholds) -> str:
    """The same as an HTML table, for notebooks."""
    return html_table(header(found), rows_of(found), " · ".join([_heading(found), *remarks(found)]))


def csv(found: Thresholds) -> str:
    """One row for each point of the curve."""
    import polars as pl

    return to_csv(pl.DataFrame(found.points, schema=ThresholdPoint._fields, orient="row"))


def data(found: Thresholds) -> dict[str, Any]:
    """Everything that is shown of the thresholds, as plain values."""
    choice = found.choice
    values = {
        "k": found.k,
        "answerable": found.answerable,
        "unanswerable": found.unanswerable,
        "unknown": found.unknown,
        "auroc": found.auroc,
        "auroc_interval": list(found.auroc_interval),
        "without": _values(found.at(float("-inf"))),
        "points": [_values(point) for point in found.points],
        "choice": None
        if choice is None
        else {
            "threshold": choice.threshold,
            "after": _values(choice.after),
            "held_out": {
                "false_alarm": choice.false_alarm,
                "false_alarm_interval": list(choice.false_alarm_interval),
                "loss": choice.loss,
                "loss_interval": list(choice.loss_interval),
            },
        },
    }
    return dict(plain(values))


def _values(point: ThresholdPoint) -> dict[str, float | None]:
    return {**point._asdict(), "threshold": point.threshold if abs(point.threshold) < float("inf") else None}


def of_run(run: Run) -> Thresholds | None:
    """The thresholds of a run; None if it has no queries without an answer, or no scores."""
    if not run.unanswerable.any():
        return None
    try:
        return run.thresholds()
    except BadArgument:
        return None


def of_metrics(run: Run) -> Thresholds | None:
    """The thresholds of a run that has a metric of queries without an answer; None for others, as in `of_run`."""
    own = [metric.name for metric in run.metrics if metric.name in METRICS and METRICS[metric.name].of_unanswerable]
    return of_run(run) if own else None


def header(found: Thresholds) -> list[str]:
    """The header of the table."""
    return ["score threshold", "score", "false alarms", f"recall@{found.k}", "recall kept"]


def rows_of(found: Thresholds) -> list[list[str]]:
    """No threshold, those that keep some share of the recall and lower the false alarms, and the recommended one."""
    points = {"none": (last := found.at(float("-inf")))}
    for share in KEPT:
        if (point := found.keeping(share)).false_alarm < last.false_alarm:
            points[f"keeps {percent(share)} of the recall"] = last = point
    choice = found.choice
    if choice is not None and min(found.answerable, found.unanswerable) < MIN_QUERIES:
        points["best, of few queries"] = choice.after
    elif choice is not None:
        points["recommended"] = choice.after
        recall = choice.before.recall - choice.loss
        points["… on held-out queries"] = ThresholdPoint(
            choice.threshold, choice.false_alarm, recall, recall / choice.before.recall
        )
    return [
        [name, score_text(point.threshold), number(point.false_alarm), number(point.recall), percent(point.kept)]
        for name, point in points.items()
    ]


def score_text(threshold: float) -> str:
    """A threshold in a table; a dash if there is none."""
    return f"{threshold:.10g}" if abs(threshold) < float("inf") else "–"


def remarks(found: Thresholds) -> list[str]:
    """The AUROC, and the queries that are not in the table."""
    ends = span(*found.auroc_interval)
    few = "" if ends else f"; fewer than {MIN_QUERIES} queries of a kind are too few for an interval"
    lines = [f"AUROC of the top score: {found.auroc:.3f} {ends}".rstrip() + f" ({_queries(found)}{few})."]
    if found.unknown:
        lines.append(
            f"The scores of {plural(found.unknown, 'query', 'queries')} are not known: left out of thresholds."
        )
    return lines


def _heading(found: Thresholds) -> str:
    return f"score thresholds · top {found.k} · {_queries(found)}"


def _queries(found: Thresholds) -> str:
    return f"{plural(found.answerable, 'query', 'queries')} with an answer, {found.unanswerable:,} without"


def no_answer(run: Run) -> list[str]:
    """The queries without an answer, and the metrics that they are in."""
    without = run.unanswerable
    count = int(without.sum())
    if not count:
        about = [name for name in run.scores if not run.about(name).any()]
        none = f'No query is marked "answerable": false, and {", ".join(about)} is about such queries: undefined.'
        return [none] if about else []
    have = f"{count:,} of {len(run):,} queries {'has' if count == 1 else 'have'} no answer"
    have = "The only query has no answer" if len(run) == 1 else have
    it = "it is" if count == 1 else "they are"
    names = [name for name in run.scores if run.about(name)[without].all()]
    if not names:
        return [f"{have}: {it} in no mean. false_alarm@5 is about such queries."]
    only = "" if len(names) == len(run.scores) else " only"
    alone = ["No query has an answer: metrics that need gold are undefined."] if only and count == len(run) else []
    return [f"{have}: {it} in {', '.join(names)}{only}.", *alone]


def _recommended(note: Note) -> str:
    d = note.details
    after, before, k = d["after"], d["before"], d["k"]
    text = (
        f"A score threshold of {score_text(d['threshold'])} would lower the false alarms on {_those(note.count)} "
        f"without an answer from {number(before[0])} to "
    )
    cost = before[1] - after[1]
    if d["held_out"] is None:
        text += f"{number(after[0])} and cost {number(cost)} of the recall@{k} ({number(before[1])}) of "
        return (
            f"{text}{_those(note.of)} with one. It cannot be tested on others than it was chosen on: they are too few."
        )
    (alarm, *alarm_ends), (loss, *loss_ends) = d["held_out"]
    text += (
        f"{_with_ends(after[0], alarm_ends)} and cost {_with_ends(cost, loss_ends)} of the recall@{k} "
        f"({number(before[1])}) of {_those(note.of)} with one. On held-out queries it leaves {number(alarm)} false "
        f"alarms and costs {number(loss)} of recall@{k}"
    )
    few = note.count < MIN_QUERIES or note.of < MIN_QUERIES
    return text + (f"; fewer than {MIN_QUERIES} queries of a kind have no interval." if few else ".")


def _those(count: int) -> str:
    return "the query" if count == 1 else f"the {count:,} queries"


def _with_ends(value: float, ends: list[float]) -> str:
    return f"{number(value)} {span(ends[0], ends[1])}".rstrip()


def _no_threshold(note: Note) -> str:
    d = note.details
    return (
        f"No score threshold helps: none lowers the false alarms on {_those(note.count)} without an answer by "
        f"more than it costs of the recall (AUROC of the top score {d['auroc']:.3f} {span(*d['interval'])}".rstrip()
        + ")."
    )


THRESHOLD_ADVICE: dict[str, Callable[[Note], str]] = {
    "answer_threshold": _recommended,
    "no_answer_threshold": _no_threshold,
    "no_answer_scores": lambda note: (
        f"{plural(note.count, 'query has', 'queries have')} no answer, but the run has no retrieval scores: "
        "no threshold was tried."
    ),
}
"""Sentences of the diagnosis on queries without an answer."""
