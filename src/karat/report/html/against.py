"""The run against its baseline: per metric, and the queries that moved most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.comparison import Comparison
from karat.movement import Moved
from karat.report.html.figures import number, signed, table
from karat.report.html.markup import Child, Element, data, h

_QUERY = 120
_WAYS = {"better": "span.up", "worse": "span.down"}


def against(comparison: Comparison, place: Mapping[str, int], metric: str) -> Element:
    """The section: is it better, how sure is that, and which queries moved in this metric, or else in any."""
    before, after = comparison.names[:2]
    rows: list[list[Any]] = []
    for row in comparison.rows:
        sure = f"{signed(row.low)} to {signed(row.high)}" if row.low == row.low else "–"
        rows.append(
            [
                row.metric,
                *map(number, row.means),
                h(_WAYS.get(row.verdict, "span"), signed(row.difference)),
                sure,
                _p(row.p),
                f"{row.won:,} / {row.tied:,} / {row.lost:,}",
                number(row.detectable),
                row.verdict,
            ]
        )
    header: list[Child] = [
        "metric",
        data(before),
        data(after),
        "difference",
        "95 % interval",
        "p (Holm)",
        "won / tied / lost",
    ]
    every = table("Every metric of both", [*header, "smallest visible", "verdict"], rows, text=(0, 8))
    note = "“Smallest visible” is the true difference that so many queries would show in four of five cases."
    compared = {row.metric for row in comparison.rows}
    moved = (comparison.moved(metric=metric) if metric in compared else []) or comparison.moved()
    return h(
        "section",
        h("h2", "Against the baseline"),
        every,
        *(h("p.note", data(remark)) for remark in comparison.remarks()),
        h("p.note", note),
        _moved(moved, place) if moved else None,
        id="baseline",
    )


def _moved(moved: list[Moved], place: Mapping[str, int]) -> Element:
    rows = []
    for one in moved:
        link = h("a", data(one.query_id, "bdi.id"), href=f"#row-{place[one.query_id]}")
        asked = (one.query or "")[:_QUERY]
        way = "span.move.up" if one.after > one.before else "span.move.down"
        ranks = [
            h("div", h("b.move", f"{_rank(old)} → {_rank(new)} "), data(label[:_QUERY])) for label, old, new in one.gold
        ]
        scores = h(way, f"{number(one.before, 2)} → {number(one.after, 2)}")
        rows.append([link, data(asked), scores, h("div", *ranks)])
    header = ["query", "", moved[0].metric, "ranks of its gold"]
    return table("Queries that moved most", header, rows, text=range(4))


def _rank(rank: int | None) -> str:
    return "not found" if rank is None else str(rank)


def _p(p: float) -> str:
    return "–" if p != p else "< 0.001" if p < 0.001 else f"{p:.3f}"
