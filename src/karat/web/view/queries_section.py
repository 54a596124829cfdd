"""The table of queries of the Run screen, one page of it: chips of the filters, search, sorted heads, rows, pages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.display import plural
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.queries import CHANGE, FOUND, QUERY, Order, query_rows, query_table, worst_order
from karat.run.lazy_run import LazyRun
from karat.web.view.address import run_link
from karat.web.view.chosen_queries import choose
from karat.web.view.controls import Chip, chips, hidden
from karat.web.view.opened import random_sample, version_of
from karat.web.view.paging import page_links
from karat.web.view.query_address import query_href
from karat.web.view.run_address import BY_CHANGE, BY_FOUND, BY_ID, CAUSE, SEARCH, SIZES, RunAddress
from karat.web.view.run_facts import PairFacts, RunFacts

_COLUMNS = {BY_ID: QUERY, BY_FOUND: FOUND, BY_CHANGE: CHANGE}
"""The names of columns in an address, and in the table."""


class QueriesSection:
    """The section, for one address."""

    def __init__(self, facts: RunFacts, asked: RunAddress, pair: PairFacts | None) -> None:
        self._facts, self._lazy, self._asked = facts, facts.lazy, asked
        self._path = run_link(facts.file.id)
        self._names = facts.lazy.headline
        self._changes = None if pair is None else pair.changes
        self._before = "" if pair is None else pair.baseline.file.name
        self._version = version_of(facts.file, *([] if pair is None else [pair.baseline.file]))
        self._among: Sequence[str] = ()
        """The queries through which the page of one of them leads; none for all, worst first."""
        self._cause = dict(asked.conditions).get(CAUSE)
        self._chosen = choose(
            facts.lazy,
            asked,
            causes={} if self._cause is None else facts.causes,
            found=facts.search(asked.search),
            changes=self._changes,
        )

    def element(self) -> Element:
        """The section."""
        return h(
            "section",
            h("h2", "All queries", tabindex=-1),
            h("p.note", "A bar of a histogram, a slice or a cause shows its queries here."),
            self._search(),
            h("div", self._chips(), *self._counts(), self._table(), self._pages(), id="results"),
            id="queries",
            data_version=self._version,
        )

    def _search(self) -> Element:
        """The field for words; the filters and the order stay as they are."""
        kept = self._asked._replace(search="", page=1, show="").parameters
        return h(
            "form.search",
            h(
                "label",
                "Search ",
                h("input", type="search", id="search", name=SEARCH, value=self._asked.search, maxlength=1000,
                  placeholder="query, id, gold or retrieved text"),
            ),
            *hidden(kept),
            h("button", "Search", type="submit"),
            role="search",
            method="get",
            action=f"{self._path}#queries",
            data_live=None if self._facts.sampled else "",
        )  # fmt: skip

    def _chips(self) -> Element | None:
        """The filters of the address."""
        asked, filters = self._asked, list[Chip]()
        for condition in asked.conditions:
            subject, value = condition.words
            href = asked.removing(condition).href(self._path, "queries")
            filters.append(Chip(f"{subject}: {value or '(empty)'}", href, f"off {condition.key}"))
        if asked.search:
            href = asked._replace(search="", page=1).href(self._path, "queries")
            filters.append(Chip(f"search: {asked.search}", href, "off search"))
        return chips(filters, Chip("All filters off", asked.cleared().href(self._path, "queries"), "off"))

    def _counts(self) -> list[Element]:
        """The number of queries that match, and what a reader has to know about it."""
        rows, lazy = self._chosen.rows, self._lazy
        lines = [] if self._cause is None else self._of_cause(self._cause)
        first = self._names[0] if self._names else None
        if first is not None and any(condition.field is not None for condition in self._asked.conditions):
            about = lazy.about(first)[rows]
            if not about.all():
                lines.append(f"{first} is about {_queries(lazy, rows[about]):,} of these queries.")
        lines += [f"This run has no {one}, so that filter is left out." for one in self._asked.unknown]
        return [h("p", self._matches(rows), id="matches"), *(h("p.note", line) for line in lines)]

    def _of_cause(self, cause: str) -> list[str]:
        """The number of gold items behind the queries of a cause; of a large run, that they are from a sample."""
        items = int(np.isin(self._facts.causes.get(cause, ()), self._chosen.rows).sum())
        lines = [] if not items else [f"They miss {plural(items, 'gold item', 'gold items')} with the cause “{cause}”."]
        if self._facts.sampled:
            sample = random_sample(len(self._facts.detail.queries), self._lazy.queries)
            lines.append(f"Causes are known for {sample}; only these are listed.")
        return lines

    def _matches(self, rows: Ints) -> str:
        lazy = self._lazy
        if not len(rows):
            return "No query matches." if len(lazy) else "The run has no queries."
        count = plural(_queries(lazy, rows), "query", "queries")
        count += f" of {lazy.queries:,}" if len(rows) < len(lazy) else ""
        return count if lazy.repeats is None else f"{count} ({plural(len(rows), 'repeat', 'repeats')})"

    def _table(self) -> Element | None:
        """The rows of the page; their bodies are fetched when they are opened."""
        shown = self._chosen.shown
        if not len(shown):
            return None
        run, names = self._lazy.take(shown), self._names
        changes = None if self._changes is None else self._changes[shown]
        self._among = run.ids if self._asked.chooses else ()
        rows = query_rows(run, names, lambda place: self._body(run.ids[place], int(shown[place])), changes)
        caption: list[Child] = ["Open a query to see its gold and what was retrieved."]
        caption += [f"Change: in {names[0]}, from", h("span", data(self._before), ".")] if changes is not None else []
        return query_table(
            names,
            rows,
            order=self._order(),
            has_changes=changes is not None,
            caption=caption,
            sort_link=self._sort_link,
        )

    def _order(self) -> Order:
        """The order of the rows, as the table names it."""
        asked = self._asked
        if asked.column:
            return Order(_COLUMNS.get(asked.column, asked.column), asked.down)
        return worst_order(self._names[0]) if self._names else Order("")

    def _sort_link(self, column: str) -> str:
        """The table by a column, or the other way round if it is by this column now."""
        now, key = self._order(), next((key for key, words in _COLUMNS.items() if words == column), column)
        turned = column == now.column and not now.is_descending
        return self._asked._replace(sort=f"-{key}" if turned else key, page=1, show="").href(self._path, "queries")

    def _body(self, query_id: str, row: int) -> Element:
        """The place of an opened query, with a link to its own page."""
        runs = [*filter(None, [self._asked.baseline]), self._facts.file.id]
        link = h("a", "This query on a page of its own", href=query_href(runs, query_id, self._among))
        before = RunAddress(baseline=self._asked.baseline)
        return h("div.unopened", h("p.small", link), data_opened=before.href(f"{self._path}/opened/{row}"))

    def _pages(self) -> Element | None:
        """Links to the other pages, and to more rows on each."""
        pages, asked = self._chosen.pages, self._asked._replace(show="")
        sizes = [size for size in SIZES if size != pages.size and pages.rows > SIZES[0]]
        return page_links(
            pages,
            lambda page: asked._replace(page=page).href(self._path, "queries"),
            {size: asked._replace(size=size, page=1).href(self._path, "queries") for size in sizes},
        )


def _queries(lazy: LazyRun, rows: Ints) -> int:
    """The number of queries that some rows are of."""
    return len(rows) if lazy.repeats is None else len(np.unique(lazy.repeats.query[rows]))
