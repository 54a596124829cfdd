"""Two rankings compared without gold: their similarity, the drift of scores, and the queries that changed most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karat._internal.display import (
    bold,
    columns,
    cut_name,
    heading,
    line_end,
    number,
    paragraph,
    percent,
    plural,
    sanitize,
    span,
    style,
    terminal_width,
    text_table,
)
from karat._internal.writers import html_table, plain, to_csv
from karat.analysis.overlap import OTHER_TOP, ItemMove, Overlap, RankingChange, ScoreDrift
from karat.report.forms import Markdown, code, escape, table
from karat.report.notes import SENTENCES, too_few
from karat.report.overlap_notes import OVERLAP_SENTENCES
from karat.samples.notes import Note

_NAME, _ID = 20, 32
_WIDE = 100
"""The width of a line with a text in it, if the terminal is wider."""
_QUERIES, _LISTED = 3, 10
"""The number of changed queries that are shown; in JSON."""
_RANKS = 5
"""The number of ranks of each that are shown of a changed query; all k of a query that is asked for."""
_NARROW = 20
_SIMILARITY = ["", "mean", "95 % interval", "queries"]
_SIGNS = {"new": "good", "gone": "bad", "up": "plain", "down": "plain", "kept": "plain"}
_COMPARED = {"id": "id", "text": "text", "doc": "document", "place": "range of the document"}


def terminal(overlap: Overlap, queries: int = _QUERIES, query: str | None = None) -> str:
    """The sentences that sum it up, the tables, the remarks, and the changed queries; or one query alone."""
    if query is not None:
        return "\n".join([heading(_caption(overlap)), "", *_opened(overlap, overlap.change(query), overlap.k)])
    lines = [heading(_caption(overlap)), "", *map(paragraph, _summary(overlap)), ""]
    lines.append(text_table([[*map(bold, _SIMILARITY)], *_similarity(overlap)], right=(1, 3)))
    if overlap.scores:
        header, *rows = _drift(overlap, _NAME)
        lines += ["", text_table([[*map(bold, header)], *rows], right=(1, 2, 3, 5, 6))]
    if notes := remarks(overlap):
        lines += ["", *map(paragraph, notes)]
    changed = overlap.changed(queries)
    lines += ["", heading("Changed most")] if changed else []
    for one in changed:
        lines += ["", *_opened(overlap, one, _RANKS)]
    return "\n".join(lines)


def markdown(overlap: Overlap, queries: int = _QUERIES, query: str | None = None) -> str:
    """The same as Markdown."""
    if query is not None:
        return "\n\n".join([escape(_caption(overlap)), *_opened_markdown(overlap, overlap.change(query))])
    parts: list[str] = [escape(_caption(overlap)), *map(escape, _summary(overlap))]
    parts.append(table(_SIMILARITY, [[code(name), *cells] for name, *cells in _similarity(overlap)], (1, 3)))
    if overlap.scores:
        header, *rows = _drift(overlap)
        parts.append(table([header[0], *map(code, header[1:3]), *header[3:]], rows, (1, 2, 3, 5, 6)))
    parts += map(escape, remarks(overlap))
    changed = overlap.changed(queries)
    parts += [Markdown("### Changed most")] if changed else []
    for one in changed:
        parts += _opened_markdown(overlap, one)
    return "\n\n".join(parts)


def html(overlap: Overlap) -> str:
    """The same as HTML tables, for notebooks."""
    caption = " · ".join([_caption(overlap), *_summary(overlap), *remarks(overlap)])
    shown = html_table(_SIMILARITY, _similarity(overlap), caption)
    if overlap.scores:
        header, *rows = _drift(overlap)
        shown += html_table(header, rows, "scores")
    for one in overlap.changed(_QUERIES):
        shown += html_table(_item_header(overlap), _items(one), " · ".join(_about(overlap, one)))
    return shown


def csv(overlap: Overlap, queries: int = 0, query: str | None = None) -> str:
    """One row per query; or one row per item of a query."""
    if query is None:
        return to_csv(overlap.table)
    import polars as pl

    moves = overlap.change(query).items
    return to_csv(pl.DataFrame([{"change": one.mark, **one._asdict()} for one in moves], infer_schema_length=None))


def data(overlap: Overlap, queries: int = _LISTED, query: str | None = None) -> dict[str, Any]:
    """Everything that is shown, as plain values."""
    values: dict[str, Any] = {
        "names": overlap.names,
        "queries": len(overlap),
        "k": overlap.k,
        "p": overlap.p,
        "depth": overlap.depth,
        "compared": overlap.compared,
    }
    if query is not None:
        return dict(plain(values | {"changed": [_change_data(overlap.change(query))]}))
    first, second = overlap.only
    values |= {
        "summary": _summary(overlap),
        "rows": [row._asdict() for row in overlap.rows],
        "same_order": overlap.same,
        "items": {"both": int(overlap.common.total(overlap.k).sum()), "only_first": first, "only_second": second},
        "scores": [one._asdict() for one in overlap.scores],
        "remarks": remarks(overlap),
        "changed": [_change_data(one) for one in overlap.changed(queries)],
    }
    return dict(plain(values))


def _change_data(one: RankingChange) -> dict[str, Any]:
    return {**one._asdict(), "items": [{"change": move.mark, **move._asdict()} for move in one.items]}


def remarks(overlap: Overlap) -> list[str]:
    """One sentence per note, and the measures without an interval."""
    lines = [_sentence(note) for note in overlap.notes]
    return [sanitize(line) for line in (*lines, *too_few({row.name: row.n for row in overlap.rows}))]


def _sentence(note: Note) -> str:
    """The sentence of a note; those on the reading of a file are the same for runs, and do not look at the run."""
    own = OVERLAP_SENTENCES.get(note.kind)
    return SENTENCES[note.kind](note, None) if own is None else own(note)  # type: ignore[arg-type]


def _caption(overlap: Overlap) -> str:
    names = ", ".join(cut_name(name, _ID) for name in overlap.names)
    depth = "" if overlap.depth is None else f" · top {overlap.depth:,}"
    queries = plural(len(overlap), "query", "queries")
    return sanitize(f"{names} · {queries}{depth} · no gold: items compared by {_COMPARED[overlap.compared]}")


def _summary(overlap: Overlap) -> list[str]:
    """The sentences that sum it up."""
    first, second = (cut_name(name, _ID) for name in overlap.names)
    top = next(row for row in overlap.rows if row.name == OTHER_TOP)
    size, other = top.n, round(top.mean * top.n) if top.n else 0
    if not size:
        return ["No query has a retrieved item."]
    queries = plural(size, "query", "queries")
    if not overlap.differs.any():
        return [f"All rankings are the same ({queries})."]
    have = "has" if other == 1 else "have"
    same = overlap.same - int(overlap.common.empty.sum())
    top_k = f"{same:,} ({percent(same / size)}) {'has' if same == 1 else 'have'} the same top {overlap.k:,}"
    lines = [
        f"{other:,} of {queries} ({percent(other / size)}) {have} another top result; {top_k} in the same order.",
    ]
    ours, theirs = overlap.only
    both = int(overlap.common.total(overlap.k).sum())
    items = f"{plural(both, 'item is', 'items are')} in both"
    lines.append(f"Within the top {overlap.k:,}, {items}, {ours:,} only in {first}, {theirs:,} only in {second}.")
    return [sanitize(line) for line in lines]


def _similarity(overlap: Overlap) -> list[list[str]]:
    return [[row.name, number(row.mean), span(row.low, row.high), f"{row.n:,}"] for row in overlap.rows]


def _drift(overlap: Overlap, width: int | None = None) -> list[list[str]]:
    first, second = (cut_name(name, width) for name in overlap.names)
    header = ["median score", first, second, "mean difference", "95 % interval", "higher / same / lower", "KS distance"]
    return [header, *map(_drift_cells, overlap.scores)]


def _drift_cells(of: ScoreDrift) -> list[str]:
    ends = "" if of.low != of.low else f"[{_score(of.low, '+')}, {_score(of.high, '+')}]"
    counts = f"{of.higher:,} / {of.same:,} / {of.lower:,}"
    return [of.scores, *map(_score, of.medians), _score(of.difference, "+"), ends, counts, number(of.distance, 2)]


def _score(value: float, sign: str = "") -> str:
    """A score of unknown scale, in three digits."""
    return "–" if value != value else "0" if not value else f"{value:{sign}.3g}"


def _about(overlap: Overlap, one: RankingChange) -> list[str]:
    """The similarity of the rankings of a query."""
    values = [f"{name} {number(value)}" for name, value in one.similarity.items() if name != OTHER_TOP]
    most = min(overlap.k, max(one.sizes))
    return [*values, f"{one.common:,} of the top {most:,} in both" if most else "nothing retrieved"]


def _opened(overlap: Overlap, one: RankingChange, ranks: int) -> list[str]:
    """A query with its items for the terminal, one line each, cut at a word."""
    name = bold(cut_name(one.query_id, _ID))
    text = "" if not one.query or one.query == one.query_id else f'  "{sanitize(one.query)}"'
    lines = [paragraph(name + text, default=_WIDE), paragraph(" · ".join(_about(overlap, one)), default=_WIDE)]
    shown = [move for move in one.items if min(move.before or ranks + 1, move.after or ranks + 1) <= ranks]
    if shown:
        lines.append(_item_table(overlap, shown, min(terminal_width(), _WIDE)))
    if rest := len(one.items) - len(shown):
        more = plural(rest, "more item", "more items")
        lines.append(paragraph(f"… {more} within the top {overlap.k:,}", default=_WIDE))
    return lines


def _item_table(overlap: Overlap, shown: Sequence[ItemMove], width: int) -> str:
    """The items as a table that is no wider than this: texts are cut at a word."""
    header = [*(cut_name(name, _NAME) for name in overlap.names), "", "", ""]
    ids = _ID if all(move.text is None for move in shown) else min(_ID, width // 4)
    rows = [
        [_rank(move.before), _rank(move.after), "" if move.mark == "kept" else move.mark, _name(move, ids), ""]
        for move in shown
    ]
    used = [max(map(columns, column)) for column in zip(header, *rows, strict=True)]
    room = max(width - sum(2 + own for own in used if own) - 2, _NARROW)
    for row, move in zip(rows, shown, strict=True):
        row[2] = style(row[2], _SIGNS[move.mark])
        row[4] = "" if move.text is None else _cut(sanitize(move.text), room)
    return text_table([[*map(bold, header)], *rows], right=(0, 1))


def _opened_markdown(overlap: Overlap, one: RankingChange) -> list[str]:
    text = "" if not one.query or one.query == one.query_id else f": {escape(one.query)}"
    header = _item_header(overlap)
    rows = [[before, after, mark, _cut(item, _WIDE)] for before, after, mark, item in _items(one)]
    head = Markdown(f"{code(one.query_id)}{text}")
    about = escape(" · ".join(_about(overlap, one)))
    return [head, about, table([*map(code, header[:2]), *header[2:]], rows, (0, 1))]


def _item_header(overlap: Overlap) -> list[str]:
    return [*(cut_name(name) for name in overlap.names), "", "item"]


def _items(one: RankingChange) -> list[list[str]]:
    return [[_rank(move.before), _rank(move.after), move.mark, _item(move)] for move in one.items]


def _rank(rank: int | None) -> str:
    return "–" if rank is None else f"{rank:,}"


def _item(move: ItemMove) -> str:
    """The name of an item, and its text."""
    return " ".join(cell for cell in (_name(move), sanitize(move.text or "")) if cell)


def _name(move: ItemMove, width: int | None = None) -> str:
    """The id of an item, or its document."""
    return cut_name((move.id if move.id is not None else move.doc) or "", width)


def _cut(text: str, room: int) -> str:
    """The text, cut at the last word that fits."""
    return text if columns(text) <= room else text[: line_end(text, 0, room - 1)].rstrip() + "…"
