"""Summaries of a run beyond the mean, such as p10: a column for each, and sentences that say what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from karat._internal.display import bold, number, plural, quantity, quantity_span, sanitize, span, text_table
from karat.analysis.compare import Comparison
from karat.errors import BadArgument
from karat.metrics.names import sign_of
from karat.report.forms import Markdown, code, table
from karat.report.measures import amount, finite
from karat.report.notes import too_few
from karat.run import Run
from karat.run.summaries import read_statistics
from karat.stats import Statistic, Summary, read_statistic
from karat.stats.paired_summary import RESAMPLES
from karat.stats.summary import FLOOR, least_for_interval

if TYPE_CHECKING:
    import polars as pl

INTERVAL = "95 % interval"
Summaries = dict[Statistic, dict[str, Summary]]


def summaries(run: Run, wanted: Sequence[str]) -> Summaries:
    """The requested summaries of every metric and measure of a run."""
    return {statistic: run.summary(str(statistic)) for statistic in read_statistics(wanted)}


def terminal(run: Run, wanted: Sequence[str]) -> list[str]:
    """The table with a value and an interval for each summary; nothing if none is requested."""
    if not (found := summaries(run, wanted)):
        return []
    cells = [
        [name, *(" ".join(_cells(run, name, own[name])).rstrip() for own in found.values())] for name in run.all_columns
    ]
    return ["", text_table([["", *(bold(sanitize(str(s))) for s in found)], *cells], gap="   ")]


def header(found: Summaries) -> list[str]:
    """The columns of a table with an interval next to each value."""
    return ["metric", *(cell for statistic in found for cell in (sanitize(str(statistic)), INTERVAL))]


def rows(run: Run, found: Summaries) -> list[list[str]]:
    """One row per metric and measure, with the columns of `header`."""
    return [
        [name, *(cell for own in found.values() for cell in _cells(run, name, own[name]))] for name in run.all_columns
    ]


def _cells(run: Run, name: str, of: Summary) -> list[str]:
    if name in run.scores:
        return [number(of.value), span(of.low, of.high)]
    if name in run.numbers:
        unit = next(field.unit for field in run.number_fields if field.name == name)
        return [quantity(of.value, unit), quantity_span(of.low, of.high, of.value, unit)]
    between = f"[{amount(of.low)}, {amount(of.high)}]" if of.low == of.low or of.high == of.high else ""
    return [amount(of.value), between]


def markdown(run: Run, wanted: Sequence[str]) -> list[Markdown]:
    """The table in Markdown; nothing if none is requested."""
    if not (found := summaries(run, wanted)):
        return []
    lines = [[code(name), *cells] for name, *cells in rows(run, found)]
    return [table(header(found), lines, right=range(1, 2 * len(found), 2))]


def data(run: Run, wanted: Sequence[str]) -> dict[str, Any]:
    """The summaries as plain values; null where a measure is never reached, or an end is undefined."""
    found = summaries(run, wanted)
    plain = {
        str(statistic): {name: {key: finite(value) for key, value in of._asdict().items()} for name, of in own.items()}
        for statistic, own in found.items()
    }
    return {"summaries": plain} if plain else {}


def frame(run: Run, wanted: Sequence[str]) -> pl.DataFrame:
    """One row per metric and summary."""
    import polars as pl

    lines = [
        {"metric": name, "summary": str(statistic), **of._asdict()}
        for statistic, own in summaries(run, wanted).items()
        for name, of in own.items()
    ]
    return pl.DataFrame(lines).fill_nan(None)


def check_forms(by: Sequence[str], wanted: Sequence[str], *, bounds: bool) -> None:
    """Refuse two of slices, summaries and bounds in one CSV table."""
    given = {"--by": by, "--summary": wanted, "--bounds": bounds}
    if len(asked := [option for option, value in given.items() if value]) > 1:
        problem = "a CSV table has either slices, or summaries, or bounds"
        raise BadArgument(problem, got=" and ".join(asked), hint="--format json")


def remarks(run: Run, wanted: Sequence[str]) -> list[str]:
    """A sentence for each kind of summary, on metrics of which less is better, and on queries that are too few."""
    lines = []
    for statistic, own in summaries(run, wanted).items():
        quantile = statistic.name == "quantile"  # the other summaries of a measure have no interval
        counts = {name: of.n for name, of in own.items() if quantile or name in run.scores}
        most = max((of.n for of in own.values()), default=0)
        what = f"both ends of an interval of {statistic}"
        lines += [
            meaning(statistic, most),
            *_less_is_better(statistic, own, run.sign),
            *_too_few(statistic, counts, what),
        ]
    return list(dict.fromkeys(filter(None, lines)))


def meaning(statistic: Statistic, count: int) -> str:
    """The definition of a summary; empty for the mean."""
    if statistic.name == "worst":
        over = plural(count, "family", "families")
        return f"{statistic}: the mean of the worst score in each family, over {over}."
    if statistic.name == "gm":
        return f"gm: the geometric mean; a score below {FLOOR:.5f} counts as that."
    if statistic.name == "quantile":
        half = statistic.share == 0.5
        return f"{statistic}: {'half' if half else f'{100 * statistic.share:.0f} %'} of the queries are at or below it."
    return ""


def _too_few(statistic: Statistic, counts: Mapping[str, int], what: str) -> list[str]:
    """The metrics that lack an end of their interval."""
    return too_few(counts, what, least_for_interval(statistic), "family" if statistic.name == "worst" else "query")


def _less_is_better(statistic: Statistic, names: Iterable[str], sign: Callable[[str], float]) -> list[str]:
    """The quantile to look at in metrics of which less is better: a low one has their best queries."""
    less = [name for name in names if sign(name) < 0]
    if not less or statistic.name != "quantile" or statistic.share >= 0.5:
        return []
    percent = round(100 * statistic.share)
    part = {10: "tenth", 20: "fifth", 25: "quarter"}.get(percent, f"{percent} %")
    whose = "its" if len(less) == 1 else "their"
    return [f"Less is better in {' and '.join(less)}: p{100 - percent} is {whose} worst {part}."]


def test_name(comparison: Comparison) -> str:
    """The name of the test of the differences."""
    statistic = None if comparison.summary is None else read_statistic(comparison.summary)
    bootstrap = statistic is not None and statistic.name == "quantile"
    return "paired bootstrap" if bootstrap else f"{comparison.test} test"


def compared_remarks(comparison: Comparison) -> list[str]:
    """The meaning of the summary that is compared, and its test."""
    if comparison.summary is None:
        return []
    statistic, counts = read_statistic(comparison.summary), {row.metric: row.n for row in comparison.rows}
    lines = [meaning(statistic, max(counts.values()))]
    if statistic.name == "quantile":
        lines.append(
            f"Its differences: paired bootstrap over the queries, {RESAMPLES:,} resamples; p is not below that of "
            "random swaps of the two scores of a query."
        )
    elif statistic.name == "worst":
        lines.append("Its differences are tested over the families, which are won, tied or lost.")
    else:
        lines.append("Its differences are tested on the log scale.")
    lines += _less_is_better(statistic, counts, sign_of)
    return [*lines, *_too_few(statistic, counts, f"a comparison of {statistic}")]
