"""The table of all queries, worst first. The first rows are plain HTML; a script adds the others on demand.

`query_table` and `query_rows` are also for pages that list a part of the queries, sorted and paged by a server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from karat._internal.arrays import Floats
from karat._internal.display import number, plural, signed
from karat._internal.writers import visible
from karat.metrics.names import sign_of
from karat.report.html.excerpts import LONGEST_ID, cut, opening
from karat.report.html.filters import Filters
from karat.report.html.histogram import PLACES
from karat.report.html.markup import Child, Element, Pool, breakable, data, h, pack
from karat.report.html.opened_query import Bodies
from karat.report.html.scores import UNNAMED, headline
from karat.run import Run
from karat.run.stored_items import GoldItem

PLAIN = 100
"""Rows that are plain HTML, and rows that the script adds at a time."""
QUERY, FOUND, CHANGE = "query", "found at any rank", "change"
"""The columns beside the metrics."""
_FOUND = "Gold items that were retrieved at any rank, also below the cutoffs of the metrics, of all relevant ones"
_SHOWN = 160
"""Characters of a query shown in its row while it is closed."""
_SEARCHED = 300
"""Characters of any text that are searched."""
_LONGEST_QUERY, _WORDS = 4_000, 50
_NARROW = 3
"""Metrics that are shown on narrow screens."""

Body = Callable[[int], Element | None]
"""The element that is shown below a row while it is open, by the number of the row."""
SortLink = Callable[[str], str]
"""The address of the same table, sorted by a column."""


class Order(NamedTuple):
    """The order of the rows: by a column, the lowest or the highest value first."""

    column: str
    is_descending: bool = False

    @property
    def words(self) -> str:
        """The order as a sentence."""
        if self.column == QUERY:
            return f"Sorted by query, {'Z to A' if self.is_descending else 'A to Z'}."
        return f"Sorted by {self.column}, {'highest' if self.is_descending else 'lowest'} first."


def worst_order(name: str) -> Order:
    """The order that begins with the worst scores."""
    return Order(name, is_descending=sign_of(name) < 0)


def query_rows(run: Run, names: Sequence[str], body: Body, changes: Floats | None = None) -> list[Element]:
    """One row for each row of a run, or of a part of a run, in its order."""
    every = enumerate(run.ids)
    return [query_row(run, row, names, run.gold(one), body(row), _at(changes, row)) for row, one in every]


def query_row(
    run: Run,
    row: int,
    names: Sequence[str],
    gold: Sequence[GoldItem],
    body: Element | None,
    change: float | None = None,
) -> Element:
    """One row: the query, which opens, its scores, its gold found and, if given, its change from the baseline."""
    text = run.query[row] if run.query is not None else None
    query = opening(cut(text, _LONGEST_QUERY), _SHOWN, "bdi.asked") if text else None
    opened = h("summary", opening(run.ids[row], LONGEST_ID, "bdi.id"), " ", query)
    return h(
        "tr",
        h("td", h("details", opened, body)),
        *(_score(name, run.scores[name][row], is_extra=place >= _NARROW) for place, name in enumerate(names)),
        h("td.n", f"{_found(gold)} of {_relevant(gold)}"),
        None if change is None else _change(names[0], change),
    )


def query_table(
    names: Sequence[str],
    rows: Iterable[Element],
    *,
    order: Order,
    has_changes: bool = False,
    caption: Sequence[Child] = (),
    sort_link: SortLink | None = None,
) -> Element:
    """The table; its headings tell the order, and are links if `sort_link` is given."""
    columns = [QUERY, *names, FOUND, *([CHANGE] if has_changes else [])]
    extra, less = names[_NARROW:], [name for name in names if sign_of(name) < 0]
    heads = []
    for place, column in enumerate(columns):
        kind = ("th.n" if place else "th") + (".roomy" if column in extra else "")
        way = ("descending" if order.is_descending else "ascending") if column == order.column else None
        name = breakable(column) if sort_link is None else [h("a", *breakable(column), href=sort_link(column))]
        heads.append(h(kind, *name, scope="col", aria_sort=way, title=_FOUND if column == FOUND else None))
    beside = len(columns) - 1
    said = [
        *caption,
        *([f"Less is better: {', '.join(less)}."] if less else []),
        *([h("span.tight", f"Only on a wider screen: {', '.join(extra)}.")] if extra else []),
    ]
    return h(
        f"table.queries.beside-{beside}.narrow-{beside - len(extra)}",
        h("caption", h("span", order.words, id="order"), *(piece for part in said for piece in (" ", part))),
        h("thead", h("tr", *heads)),
        h("tbody", *rows),
        id="all",
    )


class Queries:
    """The rows of the table of a static page, worst first, and the place of each query in it."""

    def __init__(
        self,
        run: Run,
        causes: Mapping[tuple[str, int], str],
        baseline: Run | None = None,
        filters: Filters | None = None,
        *,
        before: str = UNNAMED,
    ) -> None:
        self._run = run
        self._names = headline(run)
        self._changes = changes_from(run, baseline, self._names[0]) if baseline is not None else None
        self._before = before
        self._filters = filters
        self._gold = [run.gold(query) for query in run.ids]
        self._bodies = Bodies(run, causes, baseline, "" if before == UNNAMED else before)
        self._order = run.worst_rows().tolist()
        self.place = {run.ids[row]: place for place, row in enumerate(self._order)}
        if run.repeats is not None:  # a query is where its worst repeat is
            for place, row in enumerate(self._order):
                self.place.setdefault(run.queries[run.repeats.query[row]], place)

    def section(self) -> tuple[Element, Any]:
        """The section, and the data of its script: sort keys, search texts, filters, and the other rows."""
        tags, texts = Pool(), Pool()
        plain, later, keys = [], [], []
        for place, row in enumerate(self._order):
            gold = self._gold[row]
            body = self._bodies.of(row, gold)
            tr = query_row(self._run, row, self._names, gold, body, _at(self._changes, row))
            if place < PLAIN:
                plain.append(h(tr.tag, *tr.inside, id=f"row-{place}"))
            else:  # encoded at once, because millions of small lists need too much memory
                later.append(msgspec.Raw(msgspec.json.encode(pack(tr, tags, texts))))
            own = [] if self._filters is None else self._filters.tags(row)
            keys.append([[pack(word, tags, texts) for word in self._words(row)], self._values(row), own])
        filters = [] if self._filters is None else self._filters.given
        held = {
            "page": PLAIN, "keys": keys, "rows": later, "tags": list(tags), "texts": list(texts), "filters": filters,
        }  # fmt: skip
        return self._section(plain), held

    def _section(self, plain: list[Element]) -> Element:
        only = f"Only the first {PLAIN} are listed; the others need JavaScript." if len(self._order) > PLAIN else None
        search = h(
            "form.search",
            h("label", "Search ", h("input", type="search", id="search", placeholder="query, id, gold or field")),
            h("span.chips", id="chips"),
            h("output", id="count", for_="search"),
            role="search",
            hidden="",
        )
        caption: list[Child] = ["Open a query to see its gold and what was retrieved."]
        if self._changes is not None:
            caption += [f"Change: in {self._names[0]}, from", h("span", data(self._before), ".")]
        without = None
        if self._bodies.without:
            count = plural(self._bodies.without, "query is", "queries are")
            without = h("p.note", f"{count} shown without texts, to keep the page small.")
        order, has_changes = worst_order(self._names[0]), self._changes is not None
        return h(
            "section",
            h("h2", "All queries"),
            *([] if self._filters is None else self._filters.targets()),
            without,
            h("noscript", h("p.note", only)) if only else None,
            search,
            query_table(self._names, plain, order=order, has_changes=has_changes, caption=caption),
            h("p", h("button", "Show more", type="button", id="more", hidden="")),
            id="queries",
        )

    def _words(self, row: int) -> list[str]:
        """The texts by which a row is found: id, query, gold and simple fields."""
        run = self._run
        text = run.query[row] if run.query is not None else None
        fields = [str(column[row]) for column in run.meta.values() if isinstance(column[row], str | int)]
        words = [run.ids[row], text or "", *(item.gold for item in self._gold[row] if item.grade > 0), *fields]
        return [word[:_SEARCHED] for word in words[:_WORDS]]

    def _values(self, row: int) -> list[str | float | None]:
        """The sort key of a row in each column."""
        gold = self._gold[row]
        values = [self._run.scores[name][row] for name in self._names]
        values += [_found(gold) - _relevant(gold), *([] if self._changes is None else [self._changes[row]])]
        return [
            visible(self._run.ids[row]),
            *(None if value != value else round(float(value), PLACES) for value in values),
        ]


def changes_from(run: Run, baseline: Run, name: str) -> Floats:
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


def _at(changes: Floats | None, row: int) -> float | None:
    return None if changes is None else float(changes[row])


def _change(name: str, change: float) -> Element:
    gain = sign_of(name) * change
    way = ".up" if gain > 0 else ".down" if gain < 0 else ""
    return h(f"td.n{way}", signed(change))


def _score(name: str, value: float, *, is_extra: bool) -> Element:
    """A score; the worst and the best of 0 to 1 stand out, of a metric of which less is better 1 and 0."""
    worst, best = (0.0, 1.0) if sign_of(name) > 0 else (1.0, 0.0)
    kinds = {worst: ".worst", best: ".best"}
    kind = ".none" if value != value else kinds.get(round(float(value), PLACES), "")
    return h(f"td.n{kind}{'.roomy' if is_extra else ''}", number(value))
