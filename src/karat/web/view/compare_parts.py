"""The sections of the Compare screen: metrics, scores query by query, queries that moved, and slices."""

from __future__ import annotations

from karat._internal.display import plural
from karat.metrics.names import sign_of
from karat.report import measures, numbers
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.moves import moved_table
from karat.report.html.score_pairs import score_pairs
from karat.report.html.scores import table
from karat.report.html.side_by_side import about_tests, means_chart, means_matrix, metrics_table, slice_table, verdicts
from karat.web.problems import Refused
from karat.web.view.compare_address import WAYS, CompareAddress
from karat.web.view.compared_runs import ComparedRuns, cutoff_of
from karat.web.view.controls import Chip, chips, choice, late_section
from karat.web.view.moved_queries import MovedQueries
from karat.web.view.opened import random_sample
from karat.web.view.paging import Pages, page_links

HEADINGS = {
    "metrics": "Metrics",
    "scores": "Scores query by query",
    "moved": "Queries that moved",
    "causes": "Causes",
    "slices": "Slices",
}


class CompareParts:
    """The sections of one state of the screen."""

    def __init__(self, runs: ComparedRuns, state: CompareAddress) -> None:
        self.runs, self.state = runs, state
        self.metric = state.metric or self._usual_metric()
        if self.metric not in runs.metrics:
            raise Refused(404, "not every run has this metric", got=self.metric[:80], hint=", ".join(runs.metrics))
        self.other = self._other()
        self.pair = [runs.names[0], runs.names[self.other]]

    def _usual_metric(self) -> str:
        """The first headline metric that all runs have."""
        return next(
            (name for name in self.runs.files[0].run.headline if name in self.runs.metrics), self.runs.metrics[0]
        )

    def _other(self) -> int:
        """The place of the run that is compared with the first."""
        if not self.state.b:
            return 1
        places = {file.file.id: place for place, file in enumerate(self.runs.files)}
        if places.get(self.state.b, 0) == 0:
            raise Refused(404, "b is the id of one of the runs after the first", got=self.state.b[:80])
        return places[self.state.b]

    def section(self, part: str) -> Element:
        """One section."""
        inside = {
            "metrics": self.metrics,
            "scores": self.scores,
            "moved": self.moved,
            "causes": self.causes,
            "slices": self.slices,
        }[part]()
        if part == "causes":
            return h("div", *inside, id="causes")
        return h("section", h("h2", HEADINGS[part]), *inside, id=part)

    def later(self, part: str) -> Element:
        """A section that is fetched by the script."""
        href = self.state._replace(show=part).href(part)
        return late_section(part, HEADINGS[part], href, self.state.part(part), bare=part == "causes")

    def metrics(self) -> list[Element | None]:
        """The verdicts, the table, the chart, measures and numbers, and the remarks."""
        comparison, means = self.runs.comparison, self.runs.means
        remarks = self.runs.remarks()
        return [
            h("div.verdicts", *verdicts(comparison, self.metric)),
            *(h("p.note.remark", data(remark)) for remark in remarks),
            *self._tables(),
            h("p.note", data(about_tests(comparison))),
            *self._units(),
            means_chart(comparison, means),
        ]

    def _tables(self) -> list[Element]:
        """Every metric with its tests; of several runs first the means alone."""
        comparison = self.runs.comparison
        every = metrics_table(comparison, self.runs.means)
        if len(self.runs.names) == 2:
            return [every]
        return [means_matrix(comparison), h("details.numbers", h("summary", "Intervals and tests"), every)]

    def _units(self) -> list[Element]:
        """Tables of the measures and of the numbers of the samples, if all runs have any."""
        comparison, found = self.runs.comparison, list[Element]()
        for caption, header, rows in (
            ("Measures", measures.compared_header, measures.compared_rows if comparison.measures else None),
            ("Numbers of the samples", numbers.compared_header, numbers.compared_rows if comparison.numbers else None),
        ):
            if rows is not None and comparison.standings is None:
                heads = [data(cell) for cell in header(comparison)]
                lines: list[list[Child]] = [[data(cell or "–") for cell in cells] for cells in rows(comparison)]
                found.append(table(caption, heads, lines, text=(0,)))
        return found

    def scores(self) -> list[Element | None]:
        """The choice of the metric and of the run, and the scatter."""
        pairs = self.runs.pairs(self.metric, self.other)
        plain = self.state.changed(way="all", cause="", slice="", show=self._show("moved"))

        def link(before: str, after: str) -> str:
            return plain._replace(before=before, after=after).href("moved")

        return [self._choices(), *score_pairs(pairs, self.pair, link)]

    def _show(self, part: str) -> str:
        """The section that a link shows at once: with large runs the others come later."""
        return part if self.runs.large else ""

    def _choices(self) -> Element:
        """Links to the other metrics, and to the other runs."""
        fresh = self.state.changed(cause="", before="", after="", way=WAYS[0], show="")
        metrics = {name: fresh._replace(metric=name).href("scores") for name in self.runs.metrics}
        lines = [choice("Metric", metrics, self.metric)]
        if len(self.runs.names) > 2:
            others = {
                name: fresh._replace(b=file.file.id).href("scores")
                for name, file in zip(self.runs.names[1:], self.runs.files[1:], strict=True)
            }
            lines.append(choice(f"Compared with {self.runs.names[0]}", others, self.pair[1]))
        return h("div.choices", *lines)

    def moved(self) -> list[Element | None]:
        """The filters, and a page of the queries with the ranks of their gold."""
        found = MovedQueries(self.runs, self.metric, self.other, self.state)
        state = self.state._replace(show=self._show("moved"))
        ways = {f"{way} {found.count(way=way):,}": state.changed(way=way).href("moved") for way in WAYS}
        pages = Pages(len(found.rows), state.page)
        changes = self.runs.moved(found.rows[pages.part], self.metric, self.other)
        less = " Less is better." if sign_of(self.metric) < 0 else ""
        among = [change.query_id for change in changes]
        caption = f"{pages.in_words()}, largest change first"
        shown = moved_table(changes, lambda query: self.state.to_query(query, among), caption) if changes else None
        inline = not self.runs.large or bool(state.cause)
        return [
            h("p.note", f"{self.metric}, ", data(self.pair[0]), " → ", data(self.pair[1]), f".{less}"),
            choice("Result", ways, f"{state.way} {len(found.rows):,}"),
            self.section("causes") if inline else self.later("causes"),
            self._chips(),
            shown or h("p", "No query fits all of these filters."),
            page_links(pages, lambda page: state._replace(page=page).href("moved")),
        ]

    def _chips(self) -> Element | None:
        """The other filters of the address."""
        state, filters = self.state._replace(show=self._show("moved")), list[Chip]()
        if state.before or state.after:
            words = f"{self.metric}: {state.before} → {state.after}"
            filters.append(Chip(words, state.changed(before="", after="", way=WAYS[0]).href("moved")))
        if state.slice:
            filters.append(Chip(f"{state.by}: {state.slice}", state.changed(slice="").href("moved")))
        return chips(filters)

    def causes(self) -> list[Element | None]:
        """Links to the queries by the cause of their misses in the run that lost them."""
        found = MovedQueries(self.runs, self.metric, self.other, self.state)
        known = self.runs.causes(self.metric, self.other)
        if not known.kinds:
            return []
        state = self.state.changed(show=self._show("moved"))
        counts = {cause: found.count(cause=cause) for cause in known.kinds}
        links = {"any": state._replace(cause="").href("moved")} | {
            f"{cause} {count:,}": state._replace(cause=cause).href("moved")
            for cause, count in counts.items()
            if count or cause == state.cause
        }
        at = f"{state.cause} {counts.get(state.cause, 0):,}" if state.cause else "any"
        k = cutoff_of(self.runs.comparison.runs[0], self.metric)
        words = f"The causes are those of the gold missing from the top {k} in the run that lost the query."
        if known.known < known.moved:
            sample = random_sample(known.known, known.moved, "queries that moved")
            words += f" They are known for {sample}; only these are listed."
        return [choice("Cause", links, at), h("p.note", words)]

    def slices(self) -> list[Element | None]:
        """The choice of the field, and the differences by its values."""
        fields = self.runs.fields
        if not fields:
            return [h("p", "No field of the samples divides the queries into a few slices.")]
        field = self.state.by or fields[0]
        if field not in fields:
            raise Refused(404, "there is no such field", got=field[:80], hint=", ".join(fields))
        plain = self.state.changed(cause="", before="", after="", slice="", way=WAYS[0])
        links = {name: plain._replace(by=name, show=self._show("slices")).href("slices") for name in fields}
        found = self.runs.slices(field, self.other)
        sizes = {value: len(rows) for value, rows in self.runs.groups(field).items()}
        there = plain._replace(by=field, show=self._show("moved"))
        to = {value: there._replace(slice=value).href("moved") for value in found}
        note = (
            f"Differences are {self.pair[1]} minus {self.pair[0]}; p is corrected for "
            f"{plural(len(found), 'slice', 'slices')} × {plural(len(self.runs.metrics), 'metric', 'metrics')} (Holm). "
            "A value leads to its queries that moved."
        )
        return [
            choice("By", links, field) if len(fields) > 1 else None,
            slice_table(self.pair, found, field, self.metric, to, sizes),
            h("p.note", data(note)),
        ]
