"""A query opened: its fields, its gold, and the items that were retrieved, beside those of the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat._internal.display import plural
from karat.report.html.excerpts import cut
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.query_facts import (
    cause_of,
    failure,
    field_list,
    field_values,
    gold_entry,
    gold_rank,
    rank_in_words,
    step_list,
)
from karat.report.html.ranking_entries import (
    LONGEST,
    Matched,
    Ranking,
    Texts,
    name_of,
    rest_of,
    shown_cutoff_of,
    spaced,
    step_places,
    with_line,
)
from karat.run import Run
from karat.run.stored_items import GoldItem, Retrieved

_PLACES = 20
"""Retrieved items, and gold items, that are shown."""
_CHARACTERS = 12_000_000
"""Characters of all texts on a page."""
_NAME = 80
"""Characters of a text in place of an id, in the ranking of the baseline."""


class Bodies:
    """The details of the queries; texts are cut, and then omitted, once the page has enough of them."""

    def __init__(
        self,
        run: Run,
        causes: Mapping[tuple[str, int], str],
        baseline: Run | None = None,
        name: str = "",
        *,
        room: int = _CHARACTERS,
    ) -> None:
        """`name` is that of the baseline, if it has one."""
        self._run = run
        self._causes = causes
        self._k = shown_cutoff_of(run)
        self._places = step_places(run)
        self._baseline, self._name = baseline, name
        self._rows, self._places_before = ({}, {}) if baseline is None else (_rows(baseline), step_places(baseline))
        self._room = room
        self._for_whole = room // 2
        self._seen: set[str] = set()
        self.without = 0
        """The number of queries shown without their texts."""

    def of(self, row: int, gold: Sequence[GoldItem]) -> Element:
        """The gold and the retrieved items of a query, and the ranking of the baseline if there is one."""
        ranking = Ranking(self._run, row, self._places.get(row, {}))
        before = self._before(row)
        texts = self._take(ranking)
        kind = "div.opened" if before is None else "div.opened.compared"
        return h(
            "div.details",
            failure(self._run, row),
            field_list(field_values(self._run, row)),
            step_list(self._run, row, "h3"),
            h(
                kind,
                h(
                    "div.wanted",
                    h("h3", "Gold"),
                    *self._gold(ranking, gold, before, texts),
                    tabindex=0,
                    role="group",
                    aria_label="Gold",
                ),
                h("div", h("h3", "Retrieved"), *self._retrieved(ranking, before, texts)),
                None if before is None else self._beside(before, ranking),
            ),
        )

    def _before(self, row: int) -> Ranking | None:
        """The ranking of the baseline; None if it does not have the query."""
        if self._baseline is None:
            return None
        names = [self._run.ids[row]]
        if self._run.repeats is not None:
            names.append(self._run.queries[int(self._run.repeats.query[row])])
        found = next((self._rows[name] for name in names if name in self._rows), None)
        return None if found is None else Ranking(self._baseline, found, self._places_before.get(found, {}))

    def _take(self, ranking: Ranking) -> Texts:
        """The form of the texts for which there is room; texts that are on the page already need none."""
        if ranking.items is None:
            return "none"
        given = [*(item.text for item in ranking.known[:_PLACES]), *(gold.text for gold in ranking.items.gold)]
        texts = {text for text in given if text is not None} - self._seen
        whole = sum(len(text) + min(len(text), LONGEST) * (len(text) > LONGEST) for text in texts)
        size = sum(min(len(text), LONGEST) for text in texts)
        form: Texts = "cut"
        if whole <= self._for_whole:
            form, size = "whole", whole
            self._for_whole -= whole
        elif size > self._room:
            self.without += 1
            return "none"
        self._room -= size
        self._seen |= texts
        return form

    def _gold(self, ranking: Ranking, gold: Sequence[GoldItem], before: Ranking | None, texts: Texts) -> list[Element]:
        relevant = [(place, item) for place, item in enumerate(gold) if item.grade > 0]
        old = {} if before is None else {item.gold: item for item in before.run.gold(before.run.ids[before.row])}
        rows = []
        for place, item in relevant[:_PLACES]:
            was = None if item.gold not in old else h("span.small", f"baseline: {rank_in_words(old[item.gold])}")
            cause = cause_of(self._causes, self._run, ranking.row, place)
            about = spaced(gold_rank(item, self._k), was)
            rows.append(h("li", *about, *gold_entry(ranking, place, item, texts=texts), cause))
        notes = []
        if len(relevant) > len(rows):
            notes.append(f"{len(relevant) - len(rows):,} more.")
        if len(relevant) < len(gold):
            notes.append(f"{plural(len(gold) - len(relevant), 'item', 'items')} of grade 0, not relevant.")
        return [h("ul", *rows), *(h("p.note", note) for note in notes or ([] if rows else ["None."]))]

    def _retrieved(self, ranking: Ranking, before: Ranking | None, texts: Texts) -> list[Element]:
        rows, matched = [], None if before is None else Matched([ranking, before])
        for place, item in enumerate(ranking.known[:_PLACES]):
            move = None if matched is None else matched.move(0, place, 1)
            kind = "li.hit" if item.rank in ranking.hits else "li"
            rows.append((item.rank, h(kind, *ranking.entry(item, texts=texts, move=move))))
        note = rest_of(ranking, len(rows))
        return [h("ol", *with_line(rows, self._k, ranking.depth)), *([h("p.note", note)] if note else [])]

    def _beside(self, before: Ranking, ranking: Ranking) -> Element:
        shown = self._ranked_before(before, ranking)
        named: list[Child] = [": ", data(self._name)] if self._name else []
        return h("div.before", h("h3", "Baseline", *named), *shown, tabindex=0, role="group", aria_label="Baseline")

    def _ranked_before(self, before: Ranking, ranking: Ranking) -> list[Element]:
        """The ranking of the baseline by names; the moves are beside this run's items."""
        rows, matched = [], Matched([before, ranking])
        for place, item in enumerate(before.known[:_PLACES]):
            key, is_hit = matched.keys[0][place], item.rank in before.hits
            gone = None
            if key is not None and ranking.items is not None and matched.rank(1, key) is None:
                words = "gone" if ranking.complete else f"now {matched.missing(1)}"
                gone = h("span.moved.down" if is_hit else "span.moved", words)
            entry = spaced(h("span.rank", str(item.rank)), _short_name(item, mark=is_hit), gone)
            rows.append((item.rank, h("li.hit" if is_hit else "li", *entry)))
        note = rest_of(before, len(rows))
        return [h("ol", *with_line(rows, self._k, before.depth)), *([h("p.note", note)] if note else [])]


def _short_name(item: Retrieved, *, mark: bool) -> Child | None:
    if item.id is not None:
        return name_of(item.id, mark=mark)
    text = item.text or item.doc
    return None if text is None else h("mark" if mark else "span", h("bdi", cut(text, _NAME)))


def _rows(run: Run) -> dict[str, int]:
    """The rows of a run by the ids of their queries, and by their own."""
    own = {name: row for row, name in enumerate(run.ids)}
    return own if run.repeats is None else {query: run.row(query) for query in run.queries} | own
