"""Slices of a comparison: a table for each field, and the letters of the runs that a mean beats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from karat._internal.display import (
    bold,
    cut_name,
    heading,
    number,
    p_value,
    sanitize,
    signed,
    span,
    style,
    text_table,
)
from karat.analysis.compare import LETTERS, Comparison
from karat.analysis.pairs import Row
from karat.report.forms import Markdown, code, escape, table

_SUPERSCRIPT = dict(zip(LETTERS, "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
NAME = 32
VERDICT = {"better": "good", "worse": "bad", "cannot tell": "unsure", "same": "plain"}
"""The colour of each verdict."""


def superscript(letters: str) -> str:
    """Raised letters for terminals."""
    return "".join(_SUPERSCRIPT[letter] for letter in letters)


def slice_blocks(comparison: Comparison, fields: str, slices: Mapping[str, list[Row]]) -> list[str]:
    """For the terminal a narrow table per metric: the interval next to the difference, and no p."""
    _, _, queries, *header = slice_header(comparison, fields, NAME)
    runs, lines = len(comparison.names), list(slice_lines(comparison, fields, places=2, width=NAME))
    verdicts = [VERDICT[rows[i].verdict] for i in range(len(comparison.rows)) for rows in slices.values()]
    both = ["difference (95 %)", "winner"] if runs == 2 else []
    blocks = []
    for first in range(0, len(lines), len(slices)):
        rows = [["", *map(bold, (queries, *header[:runs], *both))]]
        for line, (_, value, *cells) in enumerate(lines[first : first + len(slices)], first):
            change = []
            if runs == 2:
                _, interval, winner = cells[runs + 1 : runs + 4]
                change = [f"{cells[runs + 1]} {interval}".rstrip(), style(winner, verdicts[line])]
            rows.append([value, *cells[: runs + 1], *change])
        title = heading(sanitize(f"{lines[first][0]} by {fields}"))
        blocks += ["", title, text_table(rows, right=range(1, runs + 2))]
    return blocks


def slice_tables(comparison: Comparison) -> list[Markdown]:
    """A Markdown table for each field."""
    tables = []
    for fields in comparison.slices:
        metric, name, queries, *header = slice_header(comparison, fields)
        runs = len(comparison.names)
        rows = [
            [code(metric), code(value, 80), *map(Markdown if runs > 2 else escape, cells)]
            for metric, value, *cells in slice_lines(comparison, fields, "<sup>{}</sup>".format)
        ]
        shown = [metric, code(name, 80), queries, *map(code, header[:runs]), *header[runs:]]
        tables.append(table(shown, rows, right=_slice_numbers(shown)))
    return tables


def slice_header(comparison: Comparison, fields: str, width: int | None = None) -> list[str]:
    """The header of a table of slices."""
    names = [cut_name(name, width) for name in comparison.names]
    more = ["difference", "95 % interval", "winner", "p (Holm)"] if len(names) == 2 else []
    return ["metric", sanitize(f"by {fields}"), "queries", *names, *more]


def slice_lines(
    comparison: Comparison,
    fields: str,
    raised: Callable[[str], str] = superscript,
    places: int = 3,
    width: int | None = None,
) -> Iterator[list[str]]:
    """One line per metric and slice: as for all queries, or the means with the letters of the runs they beat."""
    about = comparison.about_slices(fields)
    for metric in range(len(comparison.rows)):
        for i, (name, rows) in enumerate(comparison.slices[fields].items()):
            row = rows[metric]
            runs = range(len(comparison.names))
            letters = [beating(row, run, raised) for run in runs]
            cells = line_of(comparison, row, width, places) if len(runs) == 2 else letters
            yield [row.metric, cut_name(name, width), f"{about[row.metric][i]:,}", *cells]


def _slice_numbers(header: Sequence[str]) -> list[int]:
    """The columns of numbers."""
    return [i for i, name in enumerate(header) if i > 1 and name not in {"95 % interval", "winner"}]


def beating(row: Row, run: int, raised: Callable[[str], str]) -> str:
    """The mean of a run with the letters of the runs that it beats."""
    beaten = "".join(LETTERS[other] for other in row.beaten(run))
    return number(row.means[run]) + (raised(beaten) if beaten else "")


def line_of(comparison: Comparison, row: Row, width: int | None, places: int = 3) -> list[str]:
    """The means of two runs, the difference, its interval, the name of the better run, and p."""
    return [
        *map(number, row.means),
        signed(row.difference),
        span(row.low, row.high, places, "+"),
        cut_name(comparison.winner(row) or row.verdict, width),
        p_value(row.p),
    ]
