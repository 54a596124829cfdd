"""A comparison: a table of two runs, or a matrix of several, and the queries that moved most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from karat._internal.display import (
    bold,
    cell_width,
    cut_label,
    cut_name,
    heading,
    number,
    paragraph,
    plural,
    sanitize,
    style,
    text_table,
)
from karat._internal.writers import html_table, plain, to_csv
from karat.analysis.changes import Move, QueryChange
from karat.analysis.compare import LETTERS, Comparison
from karat.analysis.pairs import Row
from karat.report import measures, numbers, summaries, unjudged_items
from karat.report import standings as ranked
from karat.report.compared_slices import (
    NAME,
    VERDICT,
    beating,
    line_of,
    slice_blocks,
    slice_header,
    slice_lines,
    slice_tables,
    superscript,
)
from karat.report.forms import Latex, Markdown, code, escape, latex_table, table
from karat.report.remarks import comparison_remarks as remarks
from karat.report.slices import few_queries

_SHORT, _QUERY, _LABEL, _GOLD = 16, 40, 30, 3
_NUMBERS, _BOUNDS = (1, 2, 3, 6, 7), (1, 2, 3)
_INTERVAL, _WINNER, _MATH = 4, 5, (2, 3, 5)
_UNDECIDED = "cannot tell"
_MOVED = "ranks of its gold"


def terminal(comparison: Comparison, *, bounds: bool = False) -> str:
    """The table, the bounds on request, what it cannot show, the slices, and the queries that moved most."""
    shown = _table(comparison)
    if bounds:
        rows = [[*map(bold, ("", *unjudged_items.DIFFERENCE_HEADER[1:]))], *unjudged_items.difference_rows(comparison)]
        note = paragraph(unjudged_items.difference_note(comparison))
        shown = f"{shown.rstrip()}\n\n{text_table(rows, right=_BOUNDS)}\n\n{note}"
    lines = [heading(_caption(comparison)), "", shown, *map(paragraph, _footnotes(comparison))]
    for fields, slices in comparison.slices.items():
        lines += slice_blocks(comparison, fields, slices)
    if moved := _moved(comparison):
        rows = [[bold(cell) for cell in ("  Moved most", "", moved[0].metric, _MOVED)]]
        for mark, query_id, text, scores, gold in (_moved_cells(one, cell_width(NAME)) for one in moved):
            colored = style(mark, "good" if mark == "▲" else "bad")
            rows.append([f"{colored} {query_id}", f'"{text}"' if text else "", scores, gold])
        lines += ["", text_table(rows)]
    return "\n".join(lines)


def _table(comparison: Comparison) -> str:
    """The table of two runs, the matrix of three, or the standings of many; then the measures."""
    if comparison.standings is not None:
        blocks = ranked.terminal(comparison.standings)
        return "\n".join([*blocks, *ranked.paragraphs(comparison.standings, "run")])
    if len(comparison.names) > 2:
        header = ["", bold(_corner(comparison)), *map(bold, _metrics(comparison))]
        shown = text_table([header, *_matrix(comparison, superscript, NAME)], gap="   ")
    else:
        rows, header = _lines(comparison, NAME), _header(comparison, NAME)
        for row, cells in zip(comparison.rows, rows, strict=True):
            cells[_WINNER] = style(cells[_WINNER], VERDICT[row.verdict])
        if not _has_interval(comparison.rows):
            header[_INTERVAL] = ""
        shown = text_table([[*map(bold, header)], *rows], right=_NUMBERS)
    shown += measures.compared_terminal(comparison, NAME)
    shown += numbers.compared_terminal(comparison, NAME)
    return shown


def html(comparison: Comparison) -> str:
    """The table as HTML, for notebooks."""
    caption = " · ".join([_caption(comparison), *_footnotes(comparison)])
    if comparison.standings is not None:
        shown = ranked.html(comparison.standings, caption, "run")
    elif len(comparison.names) > 2:
        shown = html_table(
            ["", _corner(comparison, "run"), *_metrics(comparison)], _matrix(comparison, superscript), caption
        )
    else:
        shown = html_table(_header(comparison), _lines(comparison), caption)
    if comparison.measures and comparison.standings is None:
        shown += html_table(measures.compared_header(comparison), measures.compared_rows(comparison), "measures")
    if comparison.numbers and comparison.standings is None:
        shown += html_table(numbers.compared_header(comparison), numbers.compared_rows(comparison), "numbers")
    for fields in comparison.slices:
        shown += html_table(slice_header(comparison, fields), list(slice_lines(comparison, fields)), f"by {fields}")
    return shown


def markdown(comparison: Comparison, *, bounds: bool = False) -> str:
    """The table, the bounds on request, and the queries that moved most, for a pull request."""
    notes = [*(_bounds_markdown(comparison) if bounds else ()), *map(escape, _footnotes(comparison))]
    if comparison.standings is not None:
        return "\n\n".join([*ranked.markdown(comparison.standings, "run"), *notes, *slice_tables(comparison)])
    if len(comparison.names) > 2:
        header = ["", _corner(comparison, "run"), *map(code, _metrics(comparison))]
        matrix = _matrix(comparison, "<sup>{}</sup>".format)
        rows = [[letter, code(name), *map(Markdown, cells)] for letter, name, *cells in matrix]
        shown = table(header, rows, range(2, len(header)))
        parts = [
            shown,
            *measures.compared_markdown(comparison),
            *numbers.compared_markdown(comparison),
            *notes,
            *slice_tables(comparison),
        ]
        return "\n\n".join(parts)
    _, a, b, *header = _header(comparison)
    rows = [[code(metric), *cells] for metric, *cells in _lines(comparison)]
    shown = table([_corner(comparison, "metric"), code(a), code(b), *header], rows, right=_NUMBERS)
    parts = [
        shown,
        *measures.compared_markdown(comparison),
        *numbers.compared_markdown(comparison),
        *notes,
        *slice_tables(comparison),
    ]
    if moved := _moved(comparison):
        lines = [[mark, code(query), *cells] for mark, query, *cells in map(_moved_cells, moved)]
        parts.append(table(["", "query", "text", moved[0].metric, _MOVED], lines))
    return "\n\n".join(parts)


def _bounds_markdown(comparison: Comparison) -> list[str]:
    rows = [[code(metric), *cells] for metric, *cells in unjudged_items.difference_rows(comparison)]
    note = escape(unjudged_items.difference_note(comparison))
    return [table(unjudged_items.DIFFERENCE_HEADER, rows, right=_BOUNDS), note]


def latex(comparison: Comparison) -> str:
    """The tables for a paper: all queries, then the slices by each field."""
    two, raised = len(comparison.names) == 2, "$^{{{}}}$".format
    if two:
        rows = [[metric, *_math(cells)] for metric, *cells in _lines(comparison)]
        tables = [latex_table([_corner(comparison, "metric"), *_header(comparison)[1:]], rows)]
    else:
        rows = [[letter, name, *map(Latex, cells)] for letter, name, *cells in _matrix(comparison, raised)]
        tables = [latex_table(["", _corner(comparison, "run"), *_metrics(comparison)], rows, left=2)]
    if comparison.measures:
        tables.append(latex_table(measures.compared_header(comparison), measures.compared_rows(comparison)))
    tables += numbers.compared_latex(comparison)
    for fields in comparison.slices:
        rows = [
            [*cells[:3], *(_math(cells[3:]) if two else map(Latex, cells[3:]))]
            for cells in slice_lines(comparison, fields, raised)
        ]
        tables.append(latex_table(slice_header(comparison, fields), rows, left=2))
    return "\n\n".join(tables)


def csv(comparison: Comparison) -> str:
    """One row for each metric and pair of runs."""
    return to_csv(comparison.table)


def data(comparison: Comparison, *, bounds: bool = False) -> dict[str, Any]:
    """Everything that is shown of a comparison, as plain values."""
    values = {
        "names": comparison.names,
        "queries": len(comparison),
        "test": comparison.test,
        **({} if comparison.summary is None else {"summary": comparison.summary}),
        "rows": [_row_data(comparison, row) for row in comparison.rows],
        "moved": comparison.moved(),
        "remarks": remarks(comparison),
    }
    by = {
        fields: {name: [_row_data(comparison, row) for row in rows] for name, rows in slices.items()}
        for fields, slices in comparison.slices.items()
    }
    more: dict[str, Any] = {"measures": measures.compared_data(comparison)} if comparison.measures else {}
    more |= numbers.compared_data(comparison)
    if comparison.standings is not None:
        more["standings"] = ranked.data(comparison.standings)
    more |= unjudged_items.difference_data(comparison, asked=bounds)
    return dict(plain(values | more | ({"by": by} if by else {})))


def _row_data(comparison: Comparison, row: Row) -> dict[str, Any]:
    names = comparison.names
    pairs = [{"first": names[pair.first], "second": names[pair.second], **pair.numbers()} for pair in row.pairs]
    values = {"means" if comparison.summary is None else "values": dict(zip(names, row.means, strict=True))}
    found = {"verdict": row.verdict, "winner": comparison.winner(row)}
    others = {name: value for name, value in row._asdict().items() if name not in {"metric", "means", "pairs"}}
    return {"metric": row.metric, **values, **others, **found, "pairs": pairs}


def _caption(comparison: Comparison) -> str:
    judges = " and ".join(dict.fromkeys(run.provenance.judge for run in comparison.runs))
    conventions = " and ".join(dict.fromkeys(run.convention.name for run in comparison.runs))
    names = f"{len(comparison.names)} runs"
    if comparison.standings is None:
        names = ", ".join(cut_name(name, NAME) for name in comparison.names)
    return sanitize(
        f"{names} · {plural(len(comparison), 'query', 'queries')} · judge: {judges} · convention: {conventions}"
    )


def _corner(comparison: Comparison, default: str = "") -> str:
    """The header of the names in the first column: the summary that is compared, if it is not the mean."""
    return default if comparison.summary is None else sanitize(comparison.summary)


def _header(comparison: Comparison, width: int | None = None) -> list[str]:
    a, b = (cut_name(name, width) for name in comparison.names)
    short = cut_name(b, None if width is None else _SHORT)
    p = "p (Holm)" if len(comparison.rows) > 1 else "p"
    names = [_corner(comparison), a, b]
    return [*names, "difference", "95 % interval", "winner", p, f"{short} won / tied / lost"]


def _lines(comparison: Comparison, width: int | None = None) -> list[list[str]]:
    """One line per metric of two runs."""
    return [
        [row.metric, *line_of(comparison, row, width), f"{row.won:,} / {row.tied:,} / {row.lost:,}"]
        for row in comparison.rows
    ]


def _matrix(comparison: Comparison, raised: Callable[[str], str], width: int | None = None) -> list[list[str]]:
    """One row for each run: its letter, its name, its means with the letters of the runs it beats."""
    lines = []
    for run, name in enumerate(comparison.names):
        cells = [beating(row, run, raised) for row in comparison.rows]
        lines.append([LETTERS[run], cut_name(name, width), *cells])
    return lines


def _metrics(comparison: Comparison) -> list[str]:
    return [row.metric for row in comparison.rows]


def _footnotes(comparison: Comparison) -> list[str]:
    """The test of the runs, the facts that the table cannot show, and the remarks."""
    rows, notes = comparison.rows, list[str]()
    if comparison.standings is not None and not comparison.slices:
        pass  # its sentences are below the table
    elif len(comparison.names) > 2:
        pairs = f"Holm correction over the {len(rows[0].pairs)} pairs of a metric"
        test = f"{summaries.test_name(comparison)}, p < 0.05, {pairs}"
        notes.append(f"A raised letter: significantly better than that run ({test}).")
    else:
        if len(rows) > 1:
            but = "; the intervals are not" * _has_interval(rows)
            notes.append(f"p is corrected for {len(rows)} metrics (Holm){but}.")
        if comparison.test == "bounded":
            notes.append("Bounded test: p and the intervals assume nothing about the differences.")
        elif comparison.summary is None:
            notes += _detectable(rows)
    for fields, slices in comparison.slices.items():
        over = plural(len(slices), "slice", "slices")
        if len(comparison.names) > 2:
            over = f"the {len(rows[0].pairs)} pairs in {over}"
        elif len(rows) > 1:
            over += f" × {len(rows)} metrics"
        but = ", the intervals are not" * any(map(_has_interval, slices.values()))
        notes.append(f"By {fields}: the tests are corrected for {over} (Holm){but}.")
        defined = {row.metric: [found[i].n for found in slices.values()] for i, row in enumerate(rows)}
        notes += few_queries(defined, comparison.about_slices(fields))
    return [
        *notes,
        *([] if comparison.standings is not None else numbers.compared_remarks(comparison)),
        *summaries.compared_remarks(comparison),
        *remarks(comparison),
    ]


def _has_interval(rows: Sequence[Row]) -> bool:
    """True if a difference has an interval: with few queries none has."""
    return any(row.low == row.low for row in rows)


def _detectable(rows: list[Row]) -> list[str]:
    """The differences that this number of queries can detect, in the metrics without a clear result."""
    undecided = [row for row in rows if row.verdict == _UNDECIDED and row.n]
    known = [row for row in undecided if row.detectable == row.detectable]
    lines = []
    if known:
        each = ", ".join(f"{number(row.detectable)} in {row.metric}" for row in known)
        lines.append(f"{_queries(known)} can detect a difference of {each} (80 % power); smaller ones may be missed.")
    if few := [row for row in undecided if row not in known]:
        names = ", ".join(row.metric for row in few)
        lines.append(f"{_queries(few)} {'is' if few[0].n == 1 else 'are'} too few to detect a difference in {names}.")
    return lines


def _queries(rows: list[Row]) -> str:
    counts = {row.n for row in rows}
    return plural(max(counts), "query", "queries") if len(counts) == 1 else "These queries"


def _moved(comparison: Comparison) -> list[QueryChange]:
    return comparison.moved() if len(comparison.names) == 2 else []


def _moved_cells(moved: QueryChange, width: int | None = None) -> list[str]:
    """A query that moved: up or down, its id, its text, its scores, its gold."""
    gold = [f"{cut_label(move.label, _LABEL)}: {_ranks(move)}" for move in moved.gold[:_GOLD]]
    more = [f"and {len(moved.gold) - _GOLD} more"] if len(moved.gold) > _GOLD else []
    return [
        "▲" if moved.gain > 0 else "▼",
        cut_name(moved.query_id, width),
        sanitize(moved.query or "", cell_width(_QUERY)),
        f"{moved.before:.2f} → {moved.after:.2f}",
        " · ".join(gold + more),
    ]


def _ranks(move: Move) -> str:
    before, after = ("not retrieved" if rank is None else str(rank) for rank in (move.before, move.after))
    return f"{before} → {after}" if before != after else f"stays {before}"


def _math(cells: Sequence[str]) -> list[str]:
    """The cells of two runs with the difference, its interval and p in LaTeX's math mode."""
    return [Latex(f"${cell}$") if i in _MATH and cell and cell != "–" else cell for i, cell in enumerate(cells)]
