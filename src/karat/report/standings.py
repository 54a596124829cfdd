"""Standings of many runs: one table with a row per run, the verdict, and recall at equal tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import isinf, isnan
from typing import Any, Protocol

from karat._internal.display import (
    bold,
    columns,
    cut_name,
    number,
    paragraph,
    quantity,
    sanitize,
    span,
    style,
    terminal_width,
    text_table,
)
from karat._internal.writers import html_table, html_text
from karat.analysis.standings import Standing, Standings
from karat.analysis.sweep.grid import label, value_text
from karat.analysis.token_curve import BudgetPoint, TokenCurve
from karat.report.forms import Markdown, bullets, code, escape, table
from karat.report.measures import amount, finite

_NAME, _NAMED = 32, 4
"""The width of a name in the terminal, and the number of runs that a sentence names."""
_STYLE = {"winner": "good", "ahead": "unsure", "equal": "unsure", "maybe": "unsure"}
CURVE_TITLE = "Recall at equal tokens"


class Mark(Protocol):
    """A way to mark the best value of a column."""

    def __call__(self, text: str, *, best: bool) -> str:
        """The value as it is shown."""


def terminal(standings: Standings) -> list[str]:
    """The table, recall at equal tokens, and the sentences, as blocks of lines."""
    header, *rows = table_lines = lines(standings, starred, _NAME)
    texts = _texts(standings)
    if texts > 1 and _width(table_lines) > terminal_width():  # a table that is split repeats its first column alone
        header, *rows = [_joined(standings, cells, place) for place, cells in enumerate(table_lines)]
        texts = 1
    for cells in rows:
        cells[-1] = style(cells[-1], _STYLE[cells[-1]]) if cells[-1] in _STYLE else cells[-1]
    right = range(texts, len(header) - 1)
    blocks = [text_table([[*map(bold, header)], *rows], right=right)]
    if standings.curve is not None:
        header, *rows = curve_lines(standings, standings.curve, starred, _NAME)
        header[0] = CURVE_TITLE
        blocks += ["", text_table([[*map(bold, header)], *rows], right=range(1, len(header)))]
    return [*blocks, ""]


def _width(rows: Sequence[Sequence[str]]) -> int:
    """The columns of the terminal that a table takes."""
    return 2 + sum(max(map(columns, column)) + 2 for column in zip(*rows, strict=True)) - 2


def _joined(standings: Standings, cells: Sequence[str], place: int) -> list[str]:
    """A line of the table with all settings in one column."""
    name = "setting" if place == 0 else named(standings, standings.rows[place - 1])
    return [name, *cells[_texts(standings) :]]


def paragraphs(standings: Standings, kind: str) -> list[str]:
    """The sentences for the terminal, the verdict in bold."""
    first, *rest = sentences(standings, kind)
    return [paragraph(bold(first)), *map(paragraph, rest)]


def markdown(standings: Standings, kind: str) -> list[str]:
    """The verdict, the table, recall at equal tokens and the other sentences as Markdown."""
    texts = _texts(standings)
    header, *rows = lines(standings, bolded)
    first, *rest = sentences(standings, kind, "bold")
    shown = [[*map(code, cells[:texts]), *cells[texts:]] for cells in rows]
    head = [*header[:texts], *(code(one) if one in standings.rows[0].means else one for one in header[texts:])]
    parts = [Markdown(f"**{escape(first)}**"), table(head, shown, range(texts, len(header) - 1))]
    if standings.curve is not None:
        header, *rows = curve_lines(standings, standings.curve, bolded)
        named = [[code(cells[0]), *cells[1:]] for cells in rows]
        parts.append(table([CURVE_TITLE.lower(), *header[1:]], named, range(1, len(header))))
    return [*parts, bullets(rest)]


def html(standings: Standings, caption: str, kind: str) -> str:
    """The same as HTML tables, for notebooks."""
    header, *rows = lines(standings, starred)
    shown = html_table(header, rows, caption)
    if standings.curve is not None:
        header, *rows = curve_lines(standings, standings.curve, starred)
        shown += html_table(header, rows, CURVE_TITLE)
    return shown + "".join(f"<p>{html_text(line)}</p>" for line in sentences(standings, kind))


def starred(text: str, *, best: bool) -> str:
    """The value, with a star if it is the best."""
    return f"{text}{'*' if best else ' '}"


def bolded(text: str, *, best: bool) -> str:
    """The value, in bold if it is the best."""
    return Markdown(f"**{text}**") if best else text


def _texts(standings: Standings) -> int:
    """The number of columns with the settings, or the name, of a run."""
    return max(len(standings.varying), 1)


def lines(standings: Standings, mark: Mark, width: int | None = None) -> list[list[str]]:
    """The header, then one line per run: settings or name, means, measures, tokens, and if it may be the best."""
    first, named = standings.rows[0], standings.varying or ["run"]
    tokens = ["tokens"] if any(row.tokens == row.tokens for row in standings.rows) else []
    failed = ["failed"] if any(row.failed for row in standings.rows) else []
    found = [[*named, *first.means, *first.measures, *tokens, *failed, "best?"]]
    for row in standings.rows:
        texts = [cut_name(value_text(row.settings.get(name, "–")), width) for name in standings.varying]
        means = [mark(number(value), best=name in row.best) for name, value in row.means.items()]
        measures = [mark(_median(value), best=name in row.best) for name, value in row.measures.items()]
        counted = [amount(round(row.tokens) if row.tokens == row.tokens else row.tokens) for _ in tokens]
        numbers = [*means, *measures, *counted, *(f"{row.failed:,}" for _ in failed)]
        found.append([*(texts or [cut_name(row.name, width)]), *numbers, _state(standings, row)])
    return [[sanitize(cell) if type(cell) is str else cell for cell in row] for row in found]


def _median(value: float) -> str:
    return amount(value) if isinf(value) else quantity(value)


def _state(standings: Standings, row: Standing) -> str:
    if standings.selection is None or len(standings.rows) == 1:
        return "–"
    if row.equal or (row is standings.rows[0] and standings.equals):
        return "equal"
    if row is standings.rows[0]:
        return "winner" if standings.sole else "ahead"
    return "maybe" if row.possible else "no"


def named(standings: Standings, row: Standing, *, without: str = "") -> str:
    """A run in a sentence: the settings in which it differs from the others, or its name."""
    shown = [name for name in standings.varying if name != without]
    return label(row.settings, shown) if shown else cut_name(row.name, _NAME)


def curve_lines(standings: Standings, curve: TokenCurve, mark: Mark, width: int | None = None) -> list[list[str]]:
    """The header, then one line per run: recall at each budget, in brackets if it retrieved fewer tokens."""
    found = [["", *(f"{point.tokens:,}t" for point in curve.points)]]
    for i, name in enumerate(curve_names(standings, curve)):
        cells = [
            mark(f"({value})" if curve.total[i] < point.tokens else value, best=i == point.leader)
            for point in curve.points
            for value in [number(point.recall[i])]
        ]
        found.append([cut_name(name, width), *cells])
    return found


def curve_names(standings: Standings, curve: TokenCurve) -> list[str]:
    """The name of each run with a curve."""
    return [named(standings, standings.rows[place], without="k" * curve.without_k) for place in curve.rows]


def sentences(standings: Standings, kind: str, mark: str = "*") -> list[str]:
    """The verdict, the honest mean of the winner, the meaning of the columns, and what makes a comparison unfair."""
    if standings.selection is None:
        return [f"{standings.metric} is undefined for every query that all {kind}s have: nothing can be chosen by it."]
    told = [*_verdict(standings, kind), *_winner(standings), *_cheaper(standings), *_tokens(standings, kind)]
    return [sanitize(line) for line in [*told, *_legend(standings, mark)]]


def _verdict(standings: Standings, kind: str) -> list[str]:
    rows, metric, best = standings.rows, standings.metric, named(standings, standings.rows[0])
    if len(rows) == 1:
        return [f"One {kind}: there is nothing to choose from."]
    if standings.equal:
        return [f"Every {kind} has the same {metric} for every query: it cannot choose."]
    corrected = f"5 % level, corrected for choosing among {len(rows)}"
    if standings.sole:
        return [f"{best} beats every other {kind} in {metric} ({corrected})."]
    equals, others = standings.equals, [row for row in standings.possible[1:] if not row.equal]
    worse = len(rows) - len(standings.possible)
    alike = f"{best} has the same {metric} for every query as {_some(standings, equals)}" if equals else ""
    if not others:
        return [f"{alike}. They beat every other {kind} ({corrected})."]
    rest = f" The other {worse} are worse ({corrected})." if worse > 1 else f" One is worse ({corrected})."
    if not worse:
        rest = f" ({corrected[0].upper()}{corrected[1:]}.)"
    like = f"cannot be distinguished from {_some(standings, others)}.{rest}"
    if equals:
        return [f"No clear winner in {metric}: {alike}. They are ahead, but {like}"]
    return [f"No clear winner in {metric}: {best} is ahead, but {like}"]


def _some(standings: Standings, rows: Sequence[Standing]) -> str:
    """A few runs by name, and the number of the others."""
    names = "; ".join(named(standings, row) for row in rows[:_NAMED])
    return f"{names} and {len(rows) - _NAMED} more" if len(rows) > _NAMED else names


def _winner(standings: Standings) -> list[str]:
    selection = standings.selection
    if selection is None or len(standings.rows) == 1 or standings.equal:
        return []
    naive, low_high = standings.rows[0].means[standings.metric], span(*standings.interval)
    held = (
        ""
        if isnan(standings.held_out)
        else f" On queries that took no part in the choice: {number(standings.held_out)}."
    )
    its = "their" if standings.equals else "its"
    ends = f" The interval of {its} true mean, with the choice accounted for: {low_high}." if low_high else ""
    return [
        f"{its.capitalize()} mean of {number(naive)} was chosen for being the best, so it may be too high.{held}{ends}"
    ]


def _cheaper(standings: Standings) -> list[str]:
    cheapest = standings.cheapest
    if cheapest is None or standings.sole:
        return []
    tokens = f"{cheapest.tokens:,.0f} instead of {standings.rows[0].tokens:,.0f}"
    return [f"Of those that may be best, {named(standings, cheapest)} reads the fewest tokens: {tokens}."]


def _tokens(standings: Standings, kind: str) -> list[str]:
    """A comparison at equal k that is unfair, and the leaders at equal tokens."""
    told, curve = [], standings.curve
    if standings.unequal_tokens is not None:
        few, many = standings.unequal_tokens
        told.append(
            f"At equal k, {standings.metric} is not fair: {named(standings, many)} reads {many.tokens:,.0f} tokens, "
            f"{named(standings, few)} {few.tokens:,.0f}. Compare at equal tokens."
        )
    if curve is None:
        if kind == "setting" and all(row.tokens != row.tokens for row in standings.rows):
            told.append("The items have no texts, so there is no comparison at equal tokens.")
        return told
    return [*told, _leaders(standings, curve)]


def _leaders(standings: Standings, curve: TokenCurve) -> str:
    names = curve_names(standings, curve)
    led = [point for point in curve.points if point.leader >= 0]
    if not led:
        return "Recall at equal tokens is the same for all."
    parts = []
    for leader, points in groupby(led, key=lambda point: point.leader):
        parts.append(f"{names[leader]} at {_list([f'{point.tokens:,}' for point in points])}")
    clear = [f"{point.tokens:,}" for point in led if point.possible == 1]
    sure = f"significantly at {_list(clear)}" if clear else "none of them significantly"
    less = " In brackets: retrieved fewer tokens than that." if has_brackets(curve) else ""
    deepest = " Of settings that differ in k alone, the largest k is shown." if curve.without_k else ""
    return f"Recall at equal tokens is led by {'; '.join(parts)} tokens, {sure}.{less}{deepest}"


def has_brackets(curve: TokenCurve) -> bool:
    """True if a run retrieved fewer tokens than a budget."""
    return any(total < point.tokens for point in curve.points for total in curve.total)


def _list(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _legend(standings: Standings, mark: str) -> list[str]:
    first = standings.rows[0]
    parts = [f"{mark}: the best of its column"] if any(row.best for row in standings.rows) or standings.curve else []
    if any(row.tokens == row.tokens for row in standings.rows):
        top = f"the top {standings.cutoff}" if isinstance(standings.cutoff, int) else "all that was retrieved"
        parts.append(f"tokens: the mean of {top}")
    if any(row.failed for row in standings.rows):
        parts.append("failed: queries, which are excluded for all")
    if "latency" in first.measures:
        parts.append("latency: the median, in ms")
    if others := [name for name in first.measures if name != "latency"]:
        parts.append(f"{', '.join(others)}: the median")
    words = {"equal": "has the scores of the first for every query", "maybe": "cannot be distinguished from the first"}
    states = {_state(standings, row) for row in standings.rows}
    if told := [f"{state} {meaning}" for state, meaning in words.items() if state in states]:
        parts.append(f"best?: {', '.join(told)}")
    return [f"{parts[0][0].upper()}{'; '.join(parts)[1:]}."] if parts else []


def data(standings: Standings) -> dict[str, Any]:
    """The standings as plain values."""
    selection, curve = standings.selection, standings.curve
    return {
        "metric": standings.metric,
        "queries": standings.queries,
        "winner": None if selection is None else standings.rows[0].name,
        "beats_every_other": standings.sole,
        "possibly_best": [row.name for row in standings.possible],
        "mean": None if selection is None else standings.rows[0].means[standings.metric],
        "held_out_mean": None if isnan(standings.held_out) else standings.held_out,
        "interval": [finite(end) for end in standings.interval],
        "rows": [_row_data(row) for row in standings.rows],
        "at_equal_tokens": None if curve is None else [_point_data(standings, curve, one) for one in curve.points],
    }


def _row_data(row: Standing) -> dict[str, Any]:
    return {
        "name": row.name,
        "settings": dict(row.settings),
        "means": dict(row.means),
        "best_in": sorted(row.best),
        "medians": {name: finite(value) for name, value in row.measures.items()},
        "tokens": finite(row.tokens),
        "p": finite(row.p),
        "possibly_best": row.possible,
        "equals_first": row.equal,
        "failed": row.failed,
    }


def _point_data(standings: Standings, curve: TokenCurve, point: BudgetPoint) -> dict[str, Any]:
    names = curve_names(standings, curve)
    return {
        "tokens": point.tokens,
        "recall": dict(zip(names, point.recall, strict=True)),
        "leader": None if point.leader < 0 else names[point.leader],
        "possibly_best": point.possible,
    }
