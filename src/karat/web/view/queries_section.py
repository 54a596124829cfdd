"""The table of queries of the Run screen, one page of it: chips of the filters, search, sorted heads, rows, pages."""

from __future__ import annotations

from urllib.parse import urlencode

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat._internal.display import number, plural, signed
from karat.metrics.names import sign_of
from karat.report.html.markup import Child, Element, data, h
from karat.run import Run
from karat.run.lazy_run import LazyRun
from karat.web.view.chosen_queries import choose
from karat.web.view.query_filter import BY_CHANGE, BY_FOUND, BY_ID, CAUSE, SEARCH, SIZES, QueryFilter
from karat.web.view.run_facts import LARGE, PairFacts, RunFacts

_QUERY = 300


def query_address(run_id: str, query_id: str, baseline: str = "") -> str:
    """The address of one query, with the ranking of the baseline beside it."""
    runs = ",".join(filter(None, (baseline, run_id)))
    return f"/query?{urlencode({'runs': runs, 'query': query_id}, safe=',')}"


class QueriesSection:
    """The section, for one address."""

    def __init__(self, facts: RunFacts, asked: QueryFilter, pair: PairFacts | None) -> None:
        self._facts, self._lazy, self._asked = facts, facts.lazy, asked
        self._path = f"/run/{facts.file.id}"
        self._names = facts.lazy.headline
        self._changes: Floats | None = None
        if pair is not None and self._names:
            self._changes = pair.changes.get(self._names[0])
        self._by_cause = any(condition.key == CAUSE for condition in asked.conditions)
        self._chosen = choose(
            facts.lazy,
            asked,
            causes=facts.causes if self._by_cause else {},
            found=facts.search(asked.search),
            changes=self._changes,
        )

    def element(self) -> Element:
        """The section."""
        return h(
            "section",
            h("h2", "All queries", tabindex=-1),
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
        lines = []
        if self._by_cause and self._facts.sampled:
            lines.append(
                f"Causes are known for a random sample of {LARGE:,} queries; only those of the sample are listed."
            )
        first = self._names[0] if self._names else None
        if first is not None and any(condition.field is not None for condition in self._asked.conditions):
            about = lazy.about(first)[rows]
            if not about.all():
                lines.append(f"{first} is about {_count(lazy, rows[about])} of them.")
        return [h("p", self._matches(rows), id="matches"), *(h("p.note", line) for line in lines)]

    def _matches(self, rows: Ints) -> str:
        lazy = self._lazy
        if len(rows) == len(lazy):
            return _count(lazy, rows)
        every = f"{lazy.queries:,}"
        return (
            f"{_count(lazy, rows)} of {every}"
            if len(rows)
            else f"None of the {plural(lazy.queries, 'query', 'queries')} matches."
        )

    def _table(self) -> Element | None:
        if not len(self._chosen.rows):
            return None
        run = self._lazy.take(self._chosen.shown)
        heads: list[tuple[str, str]] = [
            ("query", BY_ID),
            *((name, name) for name in self._names),
            ("gold found", BY_FOUND),
        ]
        heads += [("change", BY_CHANGE)] if self._changes is not None else []
        rows = [self._row(run, place, int(row)) for place, row in enumerate(self._chosen.shown)]
        return h(
            f"table.queries.beside-{len(heads) - 1}",
            h("caption", self._caption()),
            h("thead", h("tr", *(self._head(words, column, i) for i, (words, column) in enumerate(heads)))),
            h("tbody", *rows),
            id="all",
        )

    def _sorted(self) -> tuple[str, bool]:
        """The column by which the rows are sorted, and True if the greatest is first."""
        asked = self._asked
        if asked.column or not self._names:
            return asked.column, asked.down
        return self._names[0], (sign_of(self._names[0]) < 0) != asked.down

    def _caption(self) -> str:
        column, down = self._sorted()
        ways = {BY_ID: ("a to z", "z to a"), BY_FOUND: ("most missed first", "fewest missed first")}
        ways[BY_CHANGE] = ("greatest loss first", "greatest gain first")
        words = {BY_ID: "query", BY_FOUND: "gold found", BY_CHANGE: "change"}.get(column, column)
        low, high = ways.get(column, ("lowest first", "highest first"))
        text = f"By {words}, {high if down else low}. Open a query to see its gold and what was retrieved."
        return text + (f" Change: in {self._names[0]}, from the baseline." if self._changes is not None else "")

    def _head(self, words: str, column: str, place: int) -> Element:
        """A head that sorts by its column, or turns the order round."""
        now, down = self._sorted()
        order = None if column != now else "descending" if down else "ascending"
        to = f"-{column}" if column == now and not down else column
        link = self._link(words, self._asked._replace(sort=to, page=1, show=""), f"sort {column}")
        return h("th" if place == 0 else "th.n", link, scope="col", aria_sort=order)

    def _row(self, run: Run, place: int, row: int) -> Element:
        query_id = run.ids[place]
        text = run.query[place] if run.query is not None else None
        query = data(text if len(text) <= _QUERY else text[:_QUERY] + "…", "bdi.asked") if text else None
        alone = h("a", "All on one page", href=query_address(self._facts.file.id, query_id, self._asked.baseline))
        opened = h(
            "details",
            h("summary", data(query_id, "bdi.id"), " ", query),
            h("p.alone", alone),
            data_opened=f"{self._path}/opened/{row}",
        )
        gold = [item for item in run.gold(query_id) if item.grade > 0]
        found = sum(item.rank is not None for item in gold)
        scores = [_score(run.scores[name][place]) for name in self._names]
        change = None if self._changes is None else self._change(float(self._changes[row]))
        return h("tr", h("td", opened), *scores, h("td.n", f"{found} of {len(gold)}"), change)

    def _change(self, difference: float) -> Element:
        gain = sign_of(self._names[0]) * difference
        return h(f"td.n{'.up' if gain > 0 else '.down' if gain < 0 else ''}", signed(difference))

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


def _count(lazy: LazyRun, rows: Ints) -> str:
    """The number of queries; of repeats, too, if there are any."""
    if lazy.repeats is None:
        return plural(len(rows), "query", "queries")
    queries = len(np.unique(lazy.repeats.query[rows]))
    return f"{plural(queries, 'query', 'queries')} ({plural(len(rows), 'repeat', 'repeats')})"


def _score(value: float) -> Element:
    kind = ".none" if value != value else ".zero" if value <= 0 else ".one" if value >= 1 else ""
    return h(f"td.n{kind}", number(value))
