"""Queries that moved between two runs: the scores before and after, and the ranks of the gold in both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from karat._internal.display import number
from karat.analysis.changes import Move, QueryChange
from karat.report.html.excerpts import cut, excerpt, short_id
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.scores import table

_QUERY = 120
_LABEL = 80
_GOLD = 4
_MARKS = {1: ("▲", "won", "up"), 0: ("=", "tied", "none"), -1: ("▼", "lost", "down")}


def moved_table(
    changes: Sequence[QueryChange], link: Callable[[str], str], caption: str = "Queries that moved most"
) -> Element:
    """The table of these queries; `link` is the address of a query."""
    rows: list[list[Child]] = []
    for one in changes:
        way = (one.gain > 0) - (one.gain < 0)
        mark, word, kind = _MARKS[way]
        name = h("a", short_id(one.query_id), href=link(one.query_id))
        scores = h(
            f"span.move.{kind}",
            h("span", mark, role="img", aria_label=word),
            f" {number(one.before, 2)} → {number(one.after, 2)}",
        )
        text = excerpt(one.query, _QUERY) if one.query else None
        rows.append([h("span", name, " ", text), scores, _gold(one.gold)])
    metric = changes[0].metric if changes else "score"
    return table(caption, ["query", metric, "ranks of its gold"], rows, text=range(3))


def _gold(moves: Sequence[Move]) -> Element:
    """The ranks of the gold items, those that moved most first."""
    if not moves:
        return h("span.small", "no gold in both runs")
    lines = [h("div", h("b.move", in_words(move), " "), _label(move.label)) for move in moves[:_GOLD]]
    more = [h("div.small", f"and {len(moves) - _GOLD:,} more")] if len(moves) > _GOLD else []
    return h("div", *lines, *more)


def _label(label: str) -> Element:
    """The name of a gold item: an id, or the start of its text."""
    return data(cut(label, _LABEL), "bdi" if " " in label else "bdi.id")


def in_words(move: Move) -> str:
    """The ranks of a gold item before and after."""
    before, after = (rank_in_words(rank) for rank in (move.before, move.after))
    if move.before == move.after:
        return "not retrieved" if move.before is None else f"stays at {before}"
    return f"{before} → {after}"


def rank_in_words(rank: int | None) -> str:
    """A rank, or that there is none."""
    return "not retrieved" if rank is None else str(rank)
