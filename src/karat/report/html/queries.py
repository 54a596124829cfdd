"""The table of all queries. The worst come first and are plain HTML; a script adds the rest when they are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from karat.arrays import Floats
from karat.items import GoldItem
from karat.report.html.figures import headline, number, signed
from karat.report.html.markup import Element, Pool, data, h, pack, visible
from karat.report.html.texts import Bodies
from karat.run import Run
from karat.tables import many

PLAIN = 100
"""How many rows are plain HTML, and how many more the script shows at a time."""
_QUERY = 300
"""How many characters of a query are shown before it is opened, and how many of any text are searched."""
_WHOLE, _WORDS = 4_000, 50


class Queries:
    """The rows of the table in their order, worst first, and where each query stands in it."""

    def __init__(self, run: Run, causes: Mapping[tuple[str, int], str], baseline: Run | None = None) -> None:
        self._run = run
        self._names = headline(run)
        self._changes = _changes(run, baseline, self._names[0]) if baseline is not None else None
        self._gold = [run.gold(query) for query in run.ids]
        self._bodies = Bodies(run, causes)
        self._order = worst_first(run)
        self.place = {run.ids[row]: place for place, row in enumerate(self._order)}

    def section(self) -> tuple[Element, Any]:
        """The section, and what its script needs: what to sort and search by, and the rows that are not in it."""
        tags, texts = Pool(), Pool()
        plain, later, keys = [], [], []
        for place, row in enumerate(self._order):
            tr = self._row(row)
            if place < PLAIN:
                plain.append(h(tr.tag, *tr.inside, id=f"row-{place}"))
            else:  # written at once, for millions of small lists would keep Python's memory busy
                later.append(msgspec.Raw(msgspec.json.encode(pack(tr, tags, texts))))
            keys.append([[pack(word, tags, texts) for word in self._words(row)], self._values(row)])
        held = {"page": PLAIN, "keys": keys, "rows": later, "tags": list(tags), "texts": list(texts)}
        return self._section(plain), held

    def _section(self, plain: list[Element]) -> Element:
        header = ["query", *self._names, "gold found", *(["change"] if self._changes is not None else [])]
        heads = [h("th" if i == 0 else "th.n", name, scope="col") for i, name in enumerate(header)]
        only = f"Only the first {PLAIN} are listed, the others need JavaScript." if len(self._order) > PLAIN else None
        search = h(
            "form.search",
            h("label", "Search ", h("input", type="search", id="search", placeholder="query, id, gold or field")),
            h("output", id="count", for_="search"),
            role="search",
            hidden="",
        )
        caption = f"Worst {self._names[0]} first. A query opens into its gold and what was retrieved."
        caption += f" Change: in {self._names[0]}, against the baseline." if self._changes is not None else ""
        without = None
        if self._bodies.without:
            said = (
                f"{many(self._bodies.without, 'query is', 'queries are')} shown without texts, to keep the page small."
            )
            without = h("p.note", said)
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
        asked = data(text if len(text) <= _QUERY else text[:_QUERY] + "…", "bdi.asked") if text else None
        opened = h("summary", data(query_id, "bdi.id"), " ", asked)
        whole = data(text[:_WHOLE], "bdi.text") if text and len(text) > _QUERY else None
        scores = [_score(run.scores[name][row]) for name in self._names]
        gold = self._gold[row]
        change = None
        if self._changes is not None:
            difference = float(self._changes[row])
            way = ".up" if difference > 0 else ".down" if difference < 0 else ""
            change = h(f"td.n{way}", signed(difference) if difference else "0")
        return h(
            "tr",
            h("td", h("details", opened, whole, self._bodies.of(row, gold))),
            *scores,
            h("td.n", f"{_found(gold)} of {_relevant(gold)}"),
            change,
        )

    def _words(self, row: int) -> list[str]:
        """What a row is searched by: id, query, gold and simple fields."""
        run = self._run
        text = run.query[row] if run.query is not None else None
        fields = [str(column[row]) for column in run.meta.values() if isinstance(column[row], str | int)]
        words = [run.ids[row], text or "", *(item.gold for item in self._gold[row] if item.grade > 0), *fields]
        return [word[:_QUERY] for word in words[:_WORDS]]

    def _values(self, row: int) -> list[str | float | None]:
        """What a row is sorted by in each column."""
        gold = self._gold[row]
        values = [self._run.scores[name][row] for name in self._names]
        values += [_found(gold) - _relevant(gold), *([] if self._changes is None else [self._changes[row]])]
        return [visible(self._run.ids[row]), *(None if value != value else round(float(value), 6) for value in values)]


def worst_first(run: Run) -> list[int]:
    """The rows by the first headline metric, then by the others; undefined ones last."""
    columns = [np.nan_to_num(run.scores[name], nan=2.0) for name in reversed(headline(run))]
    return [int(row) for row in np.lexsort(columns)]


def _changes(run: Run, baseline: Run, name: str) -> Floats:
    """How much each query gained over the baseline; undefined where that has not got it."""
    if name not in baseline.scores:
        return np.full(len(run), np.nan)
    before = dict(zip(baseline.ids, baseline.scores[name].tolist(), strict=True))
    old: Floats = np.array([before.get(query, np.nan) for query in run.ids])
    return run.scores[name] - old


def _found(gold: Sequence[GoldItem]) -> int:
    return sum(item.rank is not None for item in gold if item.grade > 0)


def _relevant(gold: Sequence[GoldItem]) -> int:
    return sum(item.grade > 0 for item in gold)


def _score(value: float) -> Element:
    kind = ".none" if value != value else ".zero" if value <= 0 else ".one" if value >= 1 else ""
    return h(f"td.n{kind}", number(value))
