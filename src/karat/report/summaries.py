"""Summaries of a run beyond the mean, such as p10: a column for each, and sentences that say what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from karat._internal.display import bold, number, plural, sanitize, span, text_table
from karat.analysis.compare import Comparison
from karat.errors import BadArgument
from karat.report.forms import Markdown, code, table
from karat.report.measures import amount, finite
from karat.run import Run
from karat.run.summaries import read_statistics
from karat.stats import Statistic, Summary, read_statistic
from karat.stats.interval import MIN_QUERIES
from karat.stats.paired_summary import RESAMPLES, least_for_difference
from karat.stats.summary import FLOOR, least_queries

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
        [name, *(" ".join(_cells(run, name, own[name])).rstrip() for own in found.values())] for name in run.columns
    ]
    return ["", text_table([["", *(bold(sanitize(str(s))) for s in found)], *cells], gap="   ")]


def header(found: Summaries) -> list[str]:
    """The columns of a table with an interval next to each value."""
    return ["metric", *(cell for statistic in found for cell in (sanitize(str(statistic)), INTERVAL))]


def rows(run: Run, found: Summaries) -> list[list[str]]:
    """One row per metric and measure, with the columns of `header`."""
    return [[name, *(cell for own in found.values() for cell in _cells(run, name, own[name]))] for name in run.columns]


def _cells(run: Run, name: str, of: Summary) -> list[str]:
    if name in run.scores:
        return [number(of.value), span(of.low, of.high)]
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


def check_forms(by: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse slices and summaries in one CSV table."""
    if by and wanted:
        raise BadArgument("a CSV table has either slices or summaries", got="--by and --summary", hint="--format json")


def remarks(run: Run, wanted: Sequence[str]) -> list[str]:
    """A sentence for each kind of summary, and one on queries that are too few for an interval."""
    lines = []
    for statistic, own in summaries(run, wanted).items():
        counts = [of.n for name, of in own.items() if name in run.scores] or [of.n for of in own.values()]
        few = min(counts, default=0)
        lines += [meaning(statistic, max(counts, default=0)), *_too_few(statistic, few)]
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


def _too_few(statistic: Statistic, count: int) -> list[str]:
    """A sentence if an interval lacks an end."""
    least = least_queries(statistic.share) if statistic.name == "quantile" else MIN_QUERIES
    if count >= least:
        return []
    of = ("family is", "families are") if statistic.name == "worst" else ("query is", "queries are")
    return [f"{plural(count, *of)} too few for both ends of an interval of {statistic}: it takes at least {least}."]


def test_name(comparison: Comparison) -> str:
    """The name of the test of the differences."""
    statistic = None if comparison.summary is None else read_statistic(comparison.summary)
    bootstrap = statistic is not None and statistic.name == "quantile"
    return "paired bootstrap" if bootstrap else f"{comparison.test} test"


def compared_remarks(comparison: Comparison) -> list[str]:
    """The meaning of the summary that is compared, and its test."""
    if comparison.summary is None:
        return []
    statistic, counts = read_statistic(comparison.summary), [row.n for row in comparison.rows]
    lines = [meaning(statistic, max(counts))]
    if statistic.name == "quantile":
        lines.append(f"Its differences: paired bootstrap over the queries, {RESAMPLES:,} resamples.")
    elif statistic.name == "worst":
        lines.append("Its differences are tested over the families, which are won, tied or lost.")
    else:
        lines.append("Its differences are tested on the log scale.")
    least = least_for_difference(statistic)
    if min(counts) < least:
        unit = ("family is", "families are") if statistic.name == "worst" else ("query is", "queries are")
        lines.append(f"{plural(min(counts), *unit)} too few to compare {statistic}: it takes at least {least}.")
    return lines
