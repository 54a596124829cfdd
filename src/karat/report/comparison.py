"""A comparison: a table of two runs, or a matrix of several, and the queries that moved most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karat._internal.display import (
    cell_width,
    html_table,
    number,
    p_value,
    paragraph,
    plural,
    sanitize,
    signed,
    span,
    text_table,
)
from karat._internal.output import plain
from karat.analysis.changes import Move, QueryChange
from karat.analysis.compare import LETTERS, Comparison, Row
from karat.report.forms import Latex, Markdown, code, escape, latex_table, table
from karat.report.remarks import comparison_remarks as remarks

_SUPERSCRIPT = dict(zip(LETTERS, "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
_NAME, _QUERY, _LABEL, _GOLD = 32, 40, 30, 3
_NUMBERS = (1, 2, 3, 5, 6)
_MOVED = "ranks of its gold"


def terminal(comparison: Comparison) -> str:
    """The table, what it cannot show, and the queries that moved most."""
    if len(comparison.names) > 2:
        shown = text_table([["", "", *_metrics(comparison)], *_matrix(comparison, _superscript)], gap="   ")
    else:
        shown = text_table([_header(comparison), *map(_line, comparison.rows)], right=_NUMBERS)
    lines = [paragraph(_caption(comparison), "", ""), "", shown, *map(paragraph, _footnotes(comparison))]
    if moved := _moved(comparison):
        rows = [["  Moved most", "", moved[0].metric, _MOVED]]
        for mark, query_id, text, scores, gold in map(_moved_cells, moved):
            rows.append([f"{mark} {query_id}", f'"{text}"' if text else "", scores, gold])
        lines += ["", text_table(rows)]
    return "\n".join(lines)


def html(comparison: Comparison) -> str:
    """The table as HTML, for notebooks."""
    caption = " · ".join([_caption(comparison), *_footnotes(comparison)])
    if len(comparison.names) > 2:
        return html_table(["", "run", *_metrics(comparison)], _matrix(comparison, _superscript), caption)
    return html_table(_header(comparison), [_line(row) for row in comparison.rows], caption)


def markdown(comparison: Comparison) -> str:
    """The table and the queries that moved most, for a pull request."""
    notes = map(escape, _footnotes(comparison))
    if len(comparison.names) > 2:
        header = ["", "run", *map(code, _metrics(comparison))]
        matrix = _matrix(comparison, "<sup>{}</sup>".format)
        rows = [[letter, code(name), *map(Markdown, cells)] for letter, name, *cells in matrix]
        return "\n\n".join([table(header, rows, range(2, len(header))), *notes])
    _, a, b, *header = _header(comparison)
    rows = [[code(metric), *cells] for metric, *cells in map(_line, comparison.rows)]
    parts = [table(["metric", code(a), code(b), *header], rows, right=_NUMBERS), *notes]
    if moved := _moved(comparison):
        lines = [[mark, code(query), *cells] for mark, query, *cells in map(_moved_cells, moved)]
        parts.append(table(["", "query", "text", moved[0].metric, _MOVED], lines))
    return "\n\n".join(parts)


def latex(comparison: Comparison) -> str:
    """The table for a paper."""
    if len(comparison.names) > 2:
        rows = [[letter, name, *map(Latex, cells)] for letter, name, *cells in _matrix(comparison, "$^{{{}}}$".format)]
        return latex_table(["", "run", *_metrics(comparison)], rows, left=2)
    rows = []
    for row in comparison.rows:
        metric, first, second, difference, ends, p, counts, _ = _line(row)
        rows.append([metric, first, second, _math(difference), _math(ends), _math(p), counts])
    return latex_table(["metric", *_header(comparison)[1:-1]], rows)


def csv(comparison: Comparison) -> str:
    """One row for each metric and pair of runs."""
    return comparison.table.write_csv()


def data(comparison: Comparison) -> dict[str, Any]:
    """Everything that is shown of a comparison, as plain values."""
    names, rows = comparison.names, []
    for row in comparison.rows:
        pairs = [{"first": names[pair.first], "second": names[pair.second], **pair.numbers()} for pair in row.pairs]
        means = dict(zip(names, row.means, strict=True))
        rows.append({**row._asdict(), "means": means, "verdict": row.verdict, "pairs": pairs})
    values = {
        "names": names,
        "queries": len(comparison),
        "test": comparison.test,
        "rows": rows,
        "moved": comparison.moved(),
    }
    return dict(plain(values | {"remarks": remarks(comparison)}))


def _caption(comparison: Comparison) -> str:
    first = comparison.runs[0]
    return sanitize(
        f"{', '.join(sanitize(name, _NAME) for name in comparison.names)} · "
        f"{plural(len(comparison), 'query', 'queries')} · judge: {first.provenance.judge} · "
        f"convention: {first.convention.name}"
    )


def _header(comparison: Comparison) -> list[str]:
    a, b = (sanitize(name, _NAME) for name in comparison.names)
    return ["", a, b, "difference", "95 % interval", "p (Holm)", "won / tied / lost", ""]


def _line(row: Row) -> list[str]:
    """One metric of two runs."""
    counts = f"{row.won:,} / {row.tied:,} / {row.lost:,}"
    ends = span(row.low, row.high, 3, "+")
    return [row.metric, *map(number, row.means), signed(row.difference), ends, p_value(row.p), counts, row.verdict]


def _matrix(comparison: Comparison, raised: Callable[[str], str]) -> list[list[str]]:
    """One row for each run: its letter, its name, its means with the letters of the runs it beats."""
    lines = []
    for run, name in enumerate(comparison.names):
        cells = []
        for row in comparison.rows:
            beaten = "".join(LETTERS[other] for other in row.beaten(run))
            cells.append(number(row.means[run]) + (raised(beaten) if beaten else ""))
        lines.append([LETTERS[run], sanitize(name, _NAME), *cells])
    return lines


def _superscript(letters: str) -> str:
    return "".join(_SUPERSCRIPT[letter] for letter in letters)


def _metrics(comparison: Comparison) -> list[str]:
    return [row.metric for row in comparison.rows]


def _footnotes(comparison: Comparison) -> list[str]:
    """How the runs were tested, what the table cannot show, and the remarks."""
    rows, notes = comparison.rows, []
    if len(comparison.names) > 2:
        test = f"{comparison.test} test, p < 0.05, Holm correction over the {len(rows[0].pairs)} pairs of a metric"
        notes.append(f"A raised letter: significantly better than that run ({test}).")
    else:
        if len(rows) > 1:
            notes.append(f"p is corrected for {len(rows)} metrics (Holm); the intervals are not.")
        if comparison.test == "bounded":
            notes.append("Bounded test: p and the intervals assume nothing about the differences.")
        notes += _detectable(rows)
    return [*notes, *remarks(comparison)]


def _detectable(rows: list[Row]) -> list[str]:
    """The differences that this number of queries can detect."""
    known = [row for row in rows if row.detectable == row.detectable]
    known = [row for row in known if row.verdict == "cannot tell"] or known[:1]
    if not known:
        return []
    each = ", ".join(f"{row.detectable:.3f} in {row.metric}" for row in known)
    counts = {row.n for row in known}
    queries = f"{plural(max(counts), 'query', 'queries')} can" if len(counts) == 1 else "These queries can"
    return [f"{queries} detect a difference of {each} (80 % power); smaller ones may be missed."]


def _moved(comparison: Comparison) -> list[QueryChange]:
    return comparison.moved() if len(comparison.names) == 2 else []


def _moved_cells(moved: QueryChange) -> list[str]:
    """A query that moved: up or down, its id, its text, its scores, its gold."""
    gold = [f"{sanitize(move.label, _LABEL)}: {_ranks(move)}" for move in moved.gold[:_GOLD]]
    more = [f"and {len(moved.gold) - _GOLD} more"] if len(moved.gold) > _GOLD else []
    return [
        "▲" if moved.after > moved.before else "▼",
        sanitize(moved.query_id, cell_width(_NAME)),
        sanitize(moved.query or "", cell_width(_QUERY)),
        f"{moved.before:.2f} → {moved.after:.2f}",
        " · ".join(gold + more),
    ]


def _ranks(move: Move) -> str:
    before, after = ("not retrieved" if rank is None else str(rank) for rank in (move.before, move.after))
    return f"{before} → {after}" if before != after else f"stays {before}"


def _math(text: str) -> str:
    """Numbers with signs in LaTeX's math mode."""
    return Latex(f"${text}$") if text and text != "–" else text
