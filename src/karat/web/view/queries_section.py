"""The table of queries of the Run screen, one page of it: chips of the filters, search, sorted heads, rows, pages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.display import plural
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.queries import CHANGE, FOUND, QUERY, Order, query_rows, query_table, worst_order
from karat.run.lazy_run import LazyRun
from karat.web.view.chosen_queries import choose
from karat.web.view.query_address import query_href
from karat.web.view.query_filter import BY_CHANGE, BY_FOUND, BY_ID, CAUSE, SEARCH, SIZES, QueryFilter
from karat.web.view.run_facts import PairFacts, RunFacts

_COLUMNS = {BY_ID: QUERY, BY_FOUND: FOUND, BY_CHANGE: CHANGE}
"""The names of columns in an address, and in the table."""


class QueriesSection:
    """The section, for one address."""

    def __init__(self, facts: RunFacts, asked: QueryFilter, pair: PairFacts | None) -> None:
        self._facts, self._lazy, self._asked = facts, facts.lazy, asked
        self._path = f"/run/{facts.file.id}"
        self._names = facts.lazy.headline
        self._changes = None if pair is None else pair.changes
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
            data_version=self._facts.version,
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
            *(h("input", type="hidden", name=name, value=value) for name, value in kept.items()),
            h("button", "Search", type="submit"),
            role="search",
            method="get",
            action=f"{self._path}#queries",
            data_live=None if self._facts.sampled else "",
        )  # fmt: skip

    def _link(self, words: Child, to: QueryFilter, control: str, **more: str) -> Element:
        return h("a", words, href=to.address(self._path, "queries"), data_control=control, **more)

    def _chips(self) -> Element | None:
        """The filters, each with a link that removes it."""
        asked, chips = self._asked, []
        for condition in asked.conditions:
            subject, value = condition.words
            words = f"{subject}: {value or '(empty)'}"
            off = h("span", "×", aria_hidden="true")
            remove = self._link(off, asked.removing(condition), f"off {condition.key}", aria_label=f"Remove {words}")
            chips.append(h("li.chip", data(words), " ", remove))
        if asked.search:
            words = f"search: {asked.search}"
            off = h("span", "×", aria_hidden="true")
            remove = self._link(off, asked._replace(search="", page=1), "off search", aria_label=f"Remove {words}")
            chips.append(h("li.chip", data(words), " ", remove))
        if len(chips) > 1:
            chips.append(h("li", self._link("All filters off", asked.cleared(), "off")))
        return h("ul.chips", *chips, aria_label="Filters") if chips else None

    def _counts(self) -> list[Element]:
        """The number of queries that match, and what a reader has to know about it."""
        rows, lazy = self._chosen.rows, self._lazy
        lines = [] if self._cause is None else self._of_cause(self._cause)
        first = self._names[0] if self._names else None
        if first is not None and any(condition.field is not None for condition in self._asked.conditions):
            about = lazy.about(first)[rows]
            if not about.all():
                lines.append(f"{first} is about {_queries(lazy, rows[about]):,} of these queries.")
        return [h("p", self._matches(rows), id="matches"), *(h("p.note", line) for line in lines)]

    def _of_cause(self, cause: str) -> list[str]:
        """The number of gold items behind the queries of a cause; of a large run, that they are from a sample."""
        items = int(np.isin(self._facts.causes.get(cause, ()), self._chosen.rows).sum())
        lines = [f"They miss {plural(items, 'gold item', 'gold items')} with the cause “{cause}”."]
        if self._facts.sampled:
            known = f"Causes are known for a random sample of {len(self._facts.detail.queries):,} queries"
            lines.append(f"{known}; only those of the sample are listed.")
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
        caption += [f"Change: in {names[0]}, from the baseline."] if changes is not None else []
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
        return self._asked._replace(sort=f"-{key}" if turned else key, page=1, show="").address(self._path, "queries")

    def _body(self, query_id: str, row: int) -> Element:
        """The place of an opened query, with a link to its own page."""
        runs = [*filter(None, [self._asked.baseline]), self._facts.file.id]
        link = h("a", "This query on a page of its own", href=query_href(runs, query_id, self._among))
        before = QueryFilter(baseline=self._asked.baseline)
        return h("div.unopened", h("p.small", link), data_opened=before.address(f"{self._path}/opened/{row}"))

    def _pages(self) -> Element | None:
        """Links to the other pages, and to more rows on each."""
        chosen, asked = self._chosen, self._asked
        if len(chosen.rows) <= SIZES[0]:
            return None
        last, now = chosen.pages, chosen.page
        to = {"First": 1, "Previous": now - 1, "Next": now + 1, "Last": last}
        links = [
            h("li", self._link(words, asked._replace(page=page, show=""), f"page {words}"))
            if page != now and 1 <= page <= last
            else h("li", h("span.off", words))
            for words, page in to.items()
        ]
        links.insert(2, h("li.now", f"page {now:,} of {last:,}"))
        sizes = [size for size in SIZES if size != chosen.size]
        links += [
            h("li", self._link(f"{size} per page", asked._replace(size=size, page=1, show=""), "size"))
            for size in sizes
        ]
        return h("nav.pages", h("ul", *links), aria_label="Pages of queries")


def _queries(lazy: LazyRun, rows: Ints) -> int:
    """The number of queries that some rows are of."""
    return len(rows) if lazy.repeats is None else len(np.unique(lazy.repeats.query[rows]))
