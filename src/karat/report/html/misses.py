"""What was missed, and why; what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.diagnosis import Diagnosis
from karat.report.html.figures import share, table
from karat.report.html.markup import Child, Element, data, h
from karat.tables import many

_SHOWN = 25
_QUERY = 120


def misses(found: Diagnosis, place: Mapping[str, int]) -> Element:
    """The causes with their counts, the advice, and the first of the gold items that were missed."""
    count = len(found.misses)
    if not count:
        return h("section", h("h2", "Missed gold"), h("p", f"None: the top {found.k} hold all gold."), id="misses")
    queries = len({miss.query_id for miss in found.misses})
    of = f"{many(count, 'gold item', 'gold items')} of {many(queries, 'query', 'queries')}"
    return h(
        "section",
        h("h2", "Missed gold"),
        h("p", f"{of} {'is' if count == 1 else 'are'} not in the top {found.k}."),
        _causes(found),
        h("ul.advice", *(h("li", data(advice)) for advice in found.advice)) if found.advice else None,
        *(h("p.note", data(note)) for note in found.notes),
        _table(found, place),
        id="misses",
    )


def _causes(found: Diagnosis) -> Element:
    """A bar for each cause, the most frequent first."""
    rows: list[list[Any]] = []
    count = len(found.misses)
    for cause, times in sorted(found.causes.items(), key=lambda pair: -pair[1]):
        width = round(200 * times / count, 1)
        bar = h("svg.share", h("rect.bar", x=0, y=2, width=width, height=8), viewBox="0 0 200 12", aria_hidden="true")
        rows.append([cause, f"{times:,}", share(times / count), bar])
    return table("Causes", ["cause", "gold items", "share", ""], rows, text=(0, 3))


def _table(found: Diagnosis, place: Mapping[str, int]) -> Element:
    shown = sorted(found.misses, key=lambda miss: place.get(miss.query_id, len(place)))[:_SHOWN]
    rows: list[list[Child]] = []
    for miss in shown:
        asked = miss.query or ""
        asked = asked if len(asked) <= _QUERY else asked[:_QUERY] + "…"
        link = h("a", data(miss.query_id, "bdi.id"), href=f"#row-{place[miss.query_id]}")
        rows.append([link, data(asked), data(miss.gold[:_QUERY]), data(miss.text)])
    rest = len(found.misses) - len(shown)
    caption = "Missed gold items, worst queries first"
    more = h("p.note", f"{rest:,} more; each query below has its own.") if rest else None
    return h("div", table(caption, ["query", "", "gold item", "why"], rows, text=range(4)), more)
