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
from karat.report.html.markup import Child, Element, Pool, data, h, pack
from karat.report.html.scores import headline
from karat.report.marks import gold_ranges, marked, stored_text
from karat.run import Run
from karat.run.stored_items import GoldItem, GoldText, Hit, Items, Range, Retrieved

_LONGEST = 700
"""Characters of a text that are shown."""
_LABEL = 60
_WHOLE = ("id", "doc")
"""Judges that compare these match whole items; there is no range inside to mark."""
_PLACES = 20
"""Retrieved items, and gold items, that are shown."""
_CHARACTERS = 12_000_000
"""Characters of all texts on a page."""


class Bodies:
    """The details of the queries; texts are omitted once the page has enough of them."""

    def __init__(self, run: Run, causes: Mapping[tuple[str, int], str], *, room: int = _CHARACTERS) -> None:
        self._run = run
        self._causes = causes
        self._compares = run.provenance.compares
        self._room = room
        self._seen: set[str] = set()
        self.without = 0
        """The number of queries shown without their texts."""

    def of(self, row: int, gold: Sequence[GoldItem]) -> Element:
        """The gold and the retrieved items of a query."""
        query_id = self._run.ids[row]
        items, hits = self._run.items(query_id), self._run.hits(query_id)
        texts = self._take(items)
        retrieved = self._retrieved(hits, items, int(self._run.all_hits.depth[row]), texts=texts)
        return h(
            "div.opened",
            h("div", h("h4", "Gold"), *self._gold(query_id, gold, items, texts=texts)),
            h("div", h("h4", "Retrieved"), *retrieved),
        )

    def _take(self, items: Items | None) -> bool:
        """True if there is room for the texts of a query; texts that are on the page already need none."""
        if items is None:
            return False
        given = [*(item.text for item in items.retrieved[:_PLACES]), *(gold.text for gold in items.gold)]
        texts = {text for text in given if text is not None} - self._seen
        size = sum(min(len(text), _LONGEST) for text in texts)
        if size > self._room:
            self.without += 1
            return False
        self._room -= size
        self._seen |= texts
        return True

    def _gold(self, query_id: str, gold: Sequence[GoldItem], items: Items | None, *, texts: bool) -> list[Element]:
        relevant = [(place, item) for place, item in enumerate(gold) if item.grade > 0]
        stored = items.by_item() if items else {}
        rows = []
        for place, item in relevant[:_PLACES]:
            own = [stored_text(g) for g in stored.get(place, ()) if g.text]
            cause = self._causes.get((query_id, place), "")
            found = h("span.found", f"rank {item.rank}") if item.rank else h("span.missed", "not retrieved")
            grade = None if item.grade == 1 else h("span.small", f"grade {item.grade:g}")
            why = h("p.cause", data(cause)) if cause else None
            shown = [_text([(False, _short(text))]) for text in own if texts and text != item.gold]
            name = data(_short(item.gold), "bdi.text") if item.gold in own else _name(item.gold)
            rows.append(h("li", *_spaced(found, grade), name, why, *shown))
        notes = []
        if len(relevant) > len(rows):
            notes.append(f"{len(relevant) - len(rows):,} more.")
        if len(relevant) < len(gold):
            notes.append(f"{plural(len(gold) - len(relevant), 'item', 'items')} of grade 0, not relevant.")
        return [h("ul", *rows), *(h("p.note", note) for note in notes or ([] if rows else ["None."]))]

    def _retrieved(self, hits: Sequence[Hit], items: Items | None, depth: int, *, texts: bool) -> list[Element]:
        quotes: dict[str, list[GoldText]] = {}
        for gold in items.gold if items else ():
            quotes.setdefault(gold.label, []).append(gold)
        by_rank: dict[int, list[Hit]] = {}
        for hit in hits:
            if hit.grade > 0:  # the others are judged not relevant
                by_rank.setdefault(hit.rank, []).append(hit)
        known = items.retrieved[:_PLACES] if items else [Retrieved(rank, None, None, None, None) for rank in by_rank]
        rows = [self._item(item, by_rank.get(item.rank, ()), quotes, texts=texts) for item in known]
        note = None
        if not depth:
            note = "Nothing was retrieved."
        elif items is None:
            note = "The run stores no items: only the matches are known."
        elif depth > len(rows):
            note = f"{depth - len(rows):,} more were retrieved."
        return [h("ol", *rows), *([h("p.note", note)] if note else [])]

    def _item(
        self, item: Retrieved, hits: Sequence[Hit], quotes: Mapping[str, list[GoldText]], *, texts: bool
    ) -> Element:
        score = None if item.score is None else h("span.small", f"{item.score:.4g}")
        doc = h("span.small", "in ", data(_short(item.doc))) if item.doc is not None and item.doc != item.id else None
        name = (
            None if item.id is None else _name(item.id, mark=bool(hits) and (self._compares in _WHOLE or not item.text))
        )
        why = [h("span.why", data(_short(hit.why)), " · ", data(_short(hit.gold, _LABEL))) for hit in hits]
        text = None
        if texts and item.text:
            text = _text(marked(stored_text(item), self._ranges(item, hits, quotes), _LONGEST))
        return h(
            "li.hit" if hits else "li", h("span.rank", str(item.rank)), " ", *_spaced(name, doc, score, *why), text
        )

    def _ranges(self, item: Retrieved, hits: Sequence[Hit], quotes: Mapping[str, list[GoldText]]) -> list[Range]:
        whole = [Range(0, len(item.text or ""))] if hits else []
        if self._compares in _WHOLE:
            return whole
        found = [place for hit in hits for gold in quotes.get(hit.gold, ()) for place in gold_ranges(gold, item)]
        return found or (whole if self._compares == "text" else [])


def _name(label: str, *, mark: bool = False) -> Element:
    name = data(_short(label), "bdi.id")
    return h("mark", name) if mark else name


def _short(label: str, longest: int = _LONGEST) -> str:
    return label if len(label) <= longest else label[:longest].rstrip() + "…"


def _spaced(*parts: Child | None) -> list[Child]:
    """The parts that are there, a space after each."""
    return [piece for part in parts if part is not None for piece in (part, " ")]


def _text(pieces: Sequence[tuple[bool, str]]) -> Element:
    return h("bdi.text", *(h("mark", piece) if mark else piece for mark, piece in pieces))


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
        self._bodies = Bodies(run, causes)
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
