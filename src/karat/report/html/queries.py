"""The table of all queries, worst first. The first rows are plain HTML; a script adds the others on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from karat._internal.arrays import Floats
from karat._internal.display import number, plural, signed
from karat._internal.writers import visible
from karat.metrics.names import sign_of
from karat.report.html.markup import Element, Pool, data, h, pack
from karat.report.html.opened_query import Bodies
from karat.report.html.scores import headline
from karat.run import Run
from karat.run.stored_items import GoldItem

PLAIN = 100
"""Rows that are plain HTML, and rows that the script adds at a time."""
_QUERY = 300
"""Characters of a query shown in its row, and characters of any text that are searched."""
_LONGEST_QUERY, _WORDS = 4_000, 50


class Queries:
    """The rows of the table, worst first, and the place of each query in it."""

    def __init__(self, run: Run, causes: Mapping[tuple[str, int], str], baseline: Run | None = None) -> None:
        self._run = run
        self._names = headline(run)
        self._changes = _changes(run, baseline, self._names[0]) if baseline is not None else None
        self._gold = [run.gold(query) for query in run.ids]
        self._bodies = Bodies(run, causes, baseline)
        self._order = worst_first(run)
        self.place = {run.ids[row]: place for place, row in enumerate(self._order)}
        if run.repeats is not None:  # a query is where its worst repeat is
            for place, row in enumerate(self._order):
                self.place.setdefault(run.queries[run.repeats.query[row]], place)

    def section(self) -> tuple[Element, Any]:
        """The section, and the data of its script: sort keys, search texts, and the other rows."""
        tags, texts = Pool(), Pool()
        plain, later, keys = [], [], []
        for place, row in enumerate(self._order):
            tr = self._row(row)
            if place < PLAIN:
                plain.append(h(tr.tag, *tr.inside, id=f"row-{place}"))
            else:  # encoded at once, because millions of small lists need too much memory
                later.append(msgspec.Raw(msgspec.json.encode(pack(tr, tags, texts))))
            keys.append([[pack(word, tags, texts) for word in self._words(row)], self._values(row)])
        held = {"page": PLAIN, "keys": keys, "rows": later, "tags": list(tags), "texts": list(texts)}
        return self._section(plain), held

    def _section(self, plain: list[Element]) -> Element:
        header = ["query", *self._names, "gold found", *(["change"] if self._changes is not None else [])]
        heads = [h("th" if i == 0 else "th.n", name, scope="col") for i, name in enumerate(header)]
        only = f"Only the first {PLAIN} are listed; the others need JavaScript." if len(self._order) > PLAIN else None
        search = h(
            "form.search",
            h("label", "Search ", h("input", type="search", id="search", placeholder="query, id, gold or field")),
            h("output", id="count", for_="search"),
            role="search",
            hidden="",
        )
        caption = f"Worst {self._names[0]} first. Open a query to see its gold and what was retrieved."
        caption += f" Change: in {self._names[0]}, compared with the baseline." if self._changes is not None else ""
        without = None
        if self._bodies.without:
            count = plural(self._bodies.without, "query is", "queries are")
            without = h("p.note", f"{count} shown without texts, to keep the page small.")
        return h(
            "section",
            h("h2", "All queries"),
            without,
            h("noscript", h("p.note", only)) if only else None,
            search,
            h(
                f"table.queries.beside-{len(header) - 1}",
                h("caption", caption),
                h("thead", h("tr", *heads)),
                h("tbody", *plain),
                id="all",
            ),
            h("p", h("button", "Show more", type="button", id="more", hidden="")),
            id="queries",
        )

    def _row(self, row: int) -> Element:
        run, query_id = self._run, self._run.ids[row]
        text = run.query[row] if run.query is not None else None
        query = data(text if len(text) <= _QUERY else text[:_QUERY] + "…", "bdi.asked") if text else None
        opened = h("summary", data(query_id, "bdi.id"), " ", query)
        whole = data(text[:_LONGEST_QUERY], "bdi.text") if text and len(text) > _QUERY else None
        scores = [_score(run.scores[name][row]) for name in self._names]
        gold = self._gold[row]
        change = None
        if self._changes is not None:
            difference = float(self._changes[row])
            gain = sign_of(self._names[0]) * difference
            way = ".up" if gain > 0 else ".down" if gain < 0 else ""
            change = h(f"td.n{way}", signed(difference))
        return h(
            "tr",
            h("td", h("details", opened, whole, self._bodies.of(row, gold))),
            *scores,
            h("td.n", f"{_found(gold)} of {_relevant(gold)}"),
            change,
        )

    def _words(self, row: int) -> list[str]:
        """The texts by which a row is found: id, query, gold and simple fields."""
        run = self._run
        text = run.query[row] if run.query is not None else None
        fields = [str(column[row]) for column in run.meta.values() if isinstance(column[row], str | int)]
        words = [run.ids[row], text or "", *(item.gold for item in self._gold[row] if item.grade > 0), *fields]
        return [word[:_QUERY] for word in words[:_WORDS]]

    def _values(self, row: int) -> list[str | float | None]:
        """The sort key of a row in each column."""
        gold = self._gold[row]
        values = [self._run.scores[name][row] for name in self._names]
        values += [_found(gold) - _relevant(gold), *([] if self._changes is None else [self._changes[row]])]
        return [visible(self._run.ids[row]), *(None if value != value else round(float(value), 6) for value in values)]


def worst_first(run: Run) -> list[int]:
    """The rows by the first headline metric, then by the others; undefined scores last."""
    columns = [np.nan_to_num(sign_of(name) * run.scores[name], nan=2.0) for name in reversed(headline(run))]
    return [int(row) for row in np.lexsort(columns)]


def _changes(run: Run, baseline: Run, name: str) -> Floats:
    """The change of each query from the baseline; NaN if the baseline does not have it."""
    if name not in baseline.scores:
        return np.full(len(run), np.nan)
    before = dict(zip(baseline.queries, baseline.per_query(baseline.scores[name]).tolist(), strict=True))
    before |= dict(zip(baseline.ids, baseline.scores[name].tolist(), strict=True))
    rows = range(len(run)) if run.repeats is None else run.repeats.query.tolist()
    old: Floats = np.array(
        [before.get(own, before.get(run.queries[row], np.nan)) for own, row in zip(run.ids, rows, strict=True)]
    )
    return run.scores[name] - old


def _found(gold: Sequence[GoldItem]) -> int:
    return sum(item.rank is not None for item in gold if item.grade > 0)


def _relevant(gold: Sequence[GoldItem]) -> int:
    return sum(item.grade > 0 for item in gold)


def _score(value: float) -> Element:
    kind = ".none" if value != value else ".zero" if value <= 0 else ".one" if value >= 1 else ""
    return h(f"td.n{kind}", number(value))
