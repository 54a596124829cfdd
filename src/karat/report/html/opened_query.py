"""A query opened: its gold, and the items that were retrieved, with the matches marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat._internal.display import plural
from karat.report.html.markup import Child, Element, data, h
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
