"""The facts of one query beside its ranking: the fields of its sample, its steps, and its gold items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat._internal.display import plural, quantity
from karat.report.html.excerpts import cut, excerpt
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.ranking_entries import Ranking, Texts, name_of, passage, place_of, spaced
from karat.report.marks import stored_text
from karat.run import Run
from karat.run.numbers import LATENCY, MILLISECONDS
from karat.run.stored_items import GoldItem

_VALUE = 200
"""Characters of the value of a field."""


def field_values(run: Run, row: int) -> dict[str, str]:
    """The fields of the sample, with their values in words; of a record only its own fields, such as usage.total."""
    records = {name.rpartition(".")[0] for name in run.meta}
    values = {name: _value(name, column[row]) for name, column in run.meta.items() if name not in records}
    return {name: text for name, text in values.items() if text}


def field_list(values: Mapping[str, str], *, whole: bool = False) -> Element | None:
    """Fields with their values, None if there are none; a long value is cut, and can be expanded if it is `whole`."""
    shown = [
        h("div", h("dt", data(cut(name, _VALUE))), h("dd", excerpt(text, _VALUE) if whole else data(cut(text, _VALUE))))
        for name, text in values.items()
    ]
    return h("dl.fields", *shown) if shown else None


def _value(name: str, value: Any) -> str:
    """The value of a field in words; empty if there is none."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == LATENCY and isinstance(value, int | float):
        return quantity(value, MILLISECONDS)
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def step_list(run: Run, row: int, heading: str = "h4") -> Element | None:
    """The steps that the ranking was merged from, each with its query, below a heading; None if there are none."""
    steps = run.all_hits.steps
    if steps is None or steps.start[row] == steps.start[row + 1]:
        return None
    first, entries = int(steps.start[row]), []
    for i in range(first, int(steps.start[row + 1])):
        asked, name = steps.asked[i], steps.name[i]
        facts = [plural(int(steps.depth[i]), "item", "items")]
        if steps.repeated[i]:
            facts.append(f"{int(steps.repeated[i]):,} of them returned before")
        if steps.latency[i] == steps.latency[i]:
            facts.append(quantity(float(steps.latency[i]), MILLISECONDS))
        if steps.tokens[i] == steps.tokens[i]:
            facts.append(plural(int(steps.tokens[i]), "token", "tokens"))
        named: list[Child] = [": ", data(name)] if name else []
        title = h("b", f"Step {i - first + 1}", *named)
        entries.append(h("li", *spaced(title, data(asked) if asked else None, h("span.small", ", ".join(facts)))))
    merged = h("p.note", f"The ranking is merged from its steps by {steps.merge}.")
    return h("div.steps", h(heading, "Steps"), h("ol", *entries), merged)


def failure(run: Run, row: int) -> Element | None:
    """A sentence on a query that could not be judged."""
    reason = run.failures.get(run.ids[row])
    return None if reason is None else h("p.missed", "This query could not be judged: ", data(reason))


def rank_in_words(item: GoldItem) -> str:
    """The rank of a gold item, or that it has none."""
    return "not retrieved" if item.rank is None else f"rank {item.rank:,}"


def gold_rank(item: GoldItem, k: int | None, number: int | None = None) -> Element:
    """The rank of a gold item: found, below k, or missed; `number` is that of the retrieved item, for a script."""
    within = item.rank is not None and (k is None or item.rank <= k)
    kind = "span.missed" if item.rank is None else "span.found" if within else "span.late"
    return h(kind, rank_in_words(item), data_item=number)


def gold_entry(ranking: Ranking, place: int, item: GoldItem, *, texts: Texts) -> list[Child]:
    """The name of a gold item with its place, its grade, its hop and, if wanted, its text."""
    stored = ranking.gold.get(place, [])
    own = [stored_text(gold) for gold in stored if gold.text]
    grade = None if item.grade == 1 else h("span.small", f"grade {item.grade:g}")
    name = passage(item.gold, texts=texts) if item.gold in own else [name_of(item.gold)]
    where = [place_of(gold) for gold in stored]
    shown = [piece for text in own if texts != "none" and text != item.gold for piece in passage(text, texts=texts)]
    return [*spaced(*name, *where, grade, _hop(ranking, place)), *shown]


def _hop(ranking: Ranking, place: int) -> Element | None:
    gold = ranking.run.all_hits.gold_items
    number = 0 if gold.hop is None else int(gold.hop[int(gold.start[ranking.row]) + place])
    return h("span.small", f"hop {number}") if number else None


def cause_of(causes: Mapping[tuple[str, int], str], run: Run, row: int, place: int) -> Element | None:
    """The cause of a missed gold item, if it is known."""
    cause = causes.get((run.ids[row], place))
    return h("p.cause", data(cause)) if cause else None
