"""Comparisons to read: on a terminal, in a notebook, in a pull request, in a paper."""

from __future__ import annotations

from collections.abc import Callable

from karat._internal.display import html_table, number, plural, sanitize, text_table
from karat.analysis.changes import Move, QueryChange
from karat.analysis.compare import LETTERS, Comparison, Row
from karat.report.forms import Latex, Markdown, code, escape, table_latex
from karat.report.forms import table as markdown_table

_SUPERSCRIPT = dict(zip(LETTERS, "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
_NAME, _QUERY, _LABEL, _GOLD = 32, 40, 30, 3
_UP, _DOWN = "▲", "▼"


def terminal(comparison: Comparison) -> str:
    """The whole screen: who is better, what could not be seen, and where to look."""
    if len(comparison.names) > 2:
        header = ["", "", *_metrics(comparison)]
        shown = text_table([header, *_matrix(comparison, _superscript)], gap="   ")
    else:
        shown = text_table([_header(comparison), *map(_line, comparison.rows)], right=(1, 2, 3, 5, 6), gap="  ")
    lines = [_caption(comparison), "", shown, *(f"  {line}" for line in _footnotes(comparison))]
    moved = comparison.moved() if len(comparison.names) == 2 else []
    if moved:
        rows = [["  Moved most", "", moved[0].metric, "where its gold went"], *map(_moved_line, moved)]
        lines += ["", text_table(rows)]
    return "\n".join(lines)


def notebook(comparison: Comparison) -> str:
    """The table as HTML, everything escaped."""
    caption = " · ".join([_caption(comparison), *_footnotes(comparison)])
    if len(comparison.names) > 2:
        return html_table(["", "run", *_metrics(comparison)], _matrix(comparison, _superscript), caption)
    return html_table(_header(comparison), [_line(row) for row in comparison.rows], caption)


def markdown(comparison: Comparison) -> str:
    """The same for a pull request: escaped, so that nothing from the data links, calls or runs."""
    if len(comparison.names) > 2:
        header = ["", "run", *map(code, _metrics(comparison))]
        rows = [[a, code(name), *cells] for a, name, *cells in _matrix(comparison, "<sup>{}</sup>".format)]
        table = markdown_table(header, [[a, b, *map(Markdown, cells)] for a, b, *cells in rows], range(2, len(header)))
        return "\n\n".join([table, *map(escape, _footnotes(comparison))])
    _, a, b, *header = _header(comparison)
    rows = [[code(metric), *cells] for metric, *cells in map(_line, comparison.rows)]
    table = markdown_table(["metric", code(a), code(b), *header], rows, right=(1, 2, 3, 5, 6))
    parts = [table, *map(escape, _footnotes(comparison))]
    if moved := comparison.moved():
        lines = [[mark, code(query), *cells] for mark, query, *cells in map(_moved_cells, moved)]
        parts.append(markdown_table(["", "query", "text", moved[0].metric, "where its gold went"], lines))
    return "\n\n".join(parts)


def latex(comparison: Comparison) -> str:
    """The table for a paper."""
    if len(comparison.names) > 2:
        rows = [[a, name, *map(Latex, cells)] for a, name, *cells in _matrix(comparison, "$^{{{}}}$".format)]
        return table_latex(["", "run", *_metrics(comparison)], rows, left=2)
    _, a, b, difference, ends, p, counts, _ = _header(comparison)
    rows = []
    for row in comparison.rows:
        metric, first, second, *signed, chance, won, _ = _line(row)
        rows.append([metric, first, second, *map(_math, signed), _math(chance), won])
    return table_latex(["metric", a, b, difference, ends, p, counts], rows)


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
    ends = "" if row.low != row.low else f"[{row.low:+.3f}, {row.high:+.3f}]"
    difference = "–" if row.difference != row.difference else f"{row.difference:+.3f}"
    return [row.metric, *map(number, row.means), difference, ends, _chance(row.p), counts, row.verdict]


def _matrix(comparison: Comparison, raised: Callable[[str], str]) -> list[list[str]]:
    """One row for each run: its letter, its name, its means with the letters of those it beats."""
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
    """What stands behind the table."""
    if len(comparison.names) > 2:
        pairs = len(comparison.rows[0].pairs)
        said = [
            "A raised letter: significantly better than that run "  # noqa: ISC004
            f"(sign-flip test, p < 0.05, Holm over the {pairs} pairs of a metric)."
        ]
    else:
        rows = len(comparison.rows)
        said = [f"p is corrected for {rows} metrics (Holm), the intervals are not."] if rows > 1 else []
        said += _unseen(comparison.rows)
    return [*said, *comparison.remarks()]


def _unseen(rows: list[Row]) -> list[str]:
    """What difference so many queries would mostly not show."""
    known = [row for row in rows if row.detectable == row.detectable]
    known = [row for row in known if row.verdict == "cannot tell"] or known[:1]
    if not known:
        return []
    each = ", ".join(f"{row.metric} {row.detectable:.3f}" for row in known)
    counts = {row.n for row in known}
    over = plural(max(counts), "query", "queries") if len(counts) == 1 else "so many queries"
    return [f"With {over} a smaller true difference would often go unseen (80 % power): {each}."]


def _moved_line(moved: QueryChange) -> list[str]:
    mark, query_id, text, scores, gold = _moved_cells(moved)
    return [f"{mark} {query_id}", f'"{text}"' if text else "", scores, gold]


def _moved_cells(moved: QueryChange) -> list[str]:
    """A query that moved: up or down, its id, its text, its scores, its gold."""
    mark = _UP if moved.after > moved.before else _DOWN
    text = sanitize(moved.query or "", _QUERY)
    gold = [f"{sanitize(move.label, _LABEL)}: {_way(move)}" for move in moved.gold[:_GOLD]]
    more = [f"and {len(moved.gold) - _GOLD} more"] if len(moved.gold) > _GOLD else []
    return [
        mark,
        sanitize(moved.query_id, _NAME),
        text,
        f"{moved.before:.2f} → {moved.after:.2f}",
        " · ".join(gold + more),
    ]


def _way(move: Move) -> str:
    before, after = ("not retrieved" if rank is None else str(rank) for rank in (move.before, move.after))
    return f"{before} → {after}" if before != after else f"stays {before}"


def _chance(p: float) -> str:
    return "–" if p != p else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _math(text: str) -> str:
    """Numbers with signs, as mathematics has them."""
    return Latex(f"${text}$") if text and text != "–" else text
