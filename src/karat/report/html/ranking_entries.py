"""The entries of a ranking: each item with its place, its score, why it is relevant, and its text with the matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from karat._internal.display import plural
from karat.report.html.excerpts import cut, folded, short_id
from karat.report.html.markup import Child, Element, data, h
from karat.report.marks import gold_ranges, marked, stored_text
from karat.run import Run
from karat.run.stored_items import GoldText, Hit, Items, Range, Retrieved

LONGEST = 700
"""Characters of a text, or of a label, that are shown before it is expanded."""
_LABEL = 60
_WHOLE = ("id", "doc")
"""Judges that compare these match whole items; there is no range inside to mark."""

Key: TypeAlias = "tuple[str, object, int]"
"""The field that identifies an item, its value, and the number of equal items above it."""
Texts: TypeAlias = Literal["whole", "cut", "none"]
"""Long texts are cut and can be expanded, or only cut, or no text is shown."""
Places: TypeAlias = Mapping[int, Sequence[tuple[int, int]]]
"""By the rank of a match: the steps that returned it, from 1, each with the rank in the step."""


class Move(NamedTuple):
    """The rank of an item in another ranking, in words."""

    words: str
    way: str = ""
    """"up", "down", or empty."""


class Ranking:
    """The ranking of one query of a run."""

    def __init__(self, run: Run, row: int, places: Places | None = None) -> None:
        self.run = run
        self.row = row
        self.places = step_places(run).get(row, {}) if places is None else places
        self.items: Items | None = run.items(run.ids[row])
        self.depth = int(run.all_hits.depth[row])
        self.hits: dict[int, list[Hit]] = {}
        for hit in run.hits(run.ids[row]):
            if hit.grade > 0:  # the others are judged not relevant
                self.hits.setdefault(hit.rank, []).append(hit)
        self._compares = run.provenance.compares

    @cached_property
    def known(self) -> list[Retrieved]:
        """The stored items, best first; of a run that stores none, the ranks of its matches."""
        if self.items is not None:
            return self.items.retrieved
        return [Retrieved(rank, None, None, None, None) for rank in sorted(self.hits)]

    @property
    def complete(self) -> bool:
        """True if every retrieved item is stored."""
        return self.items is not None and len(self.items.retrieved) >= self.depth

    @cached_property
    def quotes(self) -> dict[str, list[GoldText]]:
        """The stored gold by its label."""
        found: dict[str, list[GoldText]] = {}
        for gold in self.items.gold if self.items else ():
            found.setdefault(gold.label, []).append(gold)
        return found

    @cached_property
    def gold(self) -> dict[int, list[GoldText]]:
        """The stored gold by the index of its item."""
        return self.items.by_item() if self.items else {}

    def entry(self, item: Retrieved, *, texts: Texts, move: Move | None = None, longest: int = LONGEST) -> list[Child]:
        """The content of an entry: one line of facts, why it is relevant, and its text if it is wanted."""
        hits = self.hits.get(item.rank, ())
        mark = bool(hits) and (self._compares in _WHOLE or not item.text)
        steps = [h("span.small", f"step {step}, rank {rank}") for step, rank in self.places.get(item.rank, ()) if hits]
        facts = spaced(
            h("span.rank", str(item.rank)),
            None if item.id is None else name_of(item.id, mark=mark),
            place_of(item),
            None if item.score is None else h("span.small", f"score {item.score:.4g}"),
            None if move is None else h(f"span.moved.{move.way}" if hits else "span.moved", move.words),
            *steps,
        )
        why = [_why(hit, item) for hit in hits]
        if texts == "none" or not item.text:
            return [*facts, *why]
        return [*facts, *why, *passage(stored_text(item), self._ranges(item, hits), texts, longest)]

    def _ranges(self, item: Retrieved, hits: Sequence[Hit]) -> list[Range]:
        whole = [Range(0, len(item.text or ""))] if hits else []
        if self._compares in _WHOLE:
            return whole
        found = [place for hit in hits for gold in self.quotes.get(hit.gold, ()) for place in gold_ranges(gold, item)]
        return found or (whole if self._compares == "text" else [])


def _why(hit: Hit, item: Retrieved) -> Element:
    """The reason of a match, and its gold if that is not named above already."""
    gold: list[Child] = [] if hit.gold == item.id else [" · ", data(cut(hit.gold, _LABEL))]
    return h("p.why", "relevant: ", data(cut(hit.why, LONGEST)), *gold)


class Matched:
    """The same items in several rankings of a query: by their ids, or by their texts if not all have ids."""

    def __init__(self, rankings: Sequence[Ranking]) -> None:
        items = [item for ranking in rankings for item in ranking.known]
        has_ids, has_texts = (all(getattr(item, name) is not None for item in items) for name in ("id", "text"))
        field = "id" if has_ids else "text" if has_texts else None
        self.rankings = rankings
        self.keys = [_keys(ranking.known, field) for ranking in rankings]
        """The key of each item of each ranking; None if nothing tells it from others."""
        self._ranks = [
            {key: item.rank for item, key in zip(ranking.known, keys, strict=True) if key is not None}
            for ranking, keys in zip(rankings, self.keys, strict=True)
        ]

    @cached_property
    def numbers(self) -> dict[Key, int]:
        """The items of all rankings, numbered from 0."""
        return {
            key: number for number, key in enumerate(dict.fromkeys(key for keys in self.keys for key in keys if key))
        }

    def rank(self, at: int, key: Key | None) -> int | None:
        """The rank of an item in the ranking at this place, among what is stored of it."""
        return None if key is None else self._ranks[at].get(key)

    def missing(self, at: int) -> str:
        """The words for an item that is not in the ranking at this place: not there, or too far down to be stored."""
        ranking = self.rankings[at]
        return "not retrieved" if ranking.complete else f"below rank {len(ranking.known)}"

    def move(self, at: int, place: int, before: int) -> Move | None:
        """The move of an item since another ranking; None if its rank is the same, or not known."""
        key, rank = self.keys[at][place], self.rankings[at].known[place].rank
        if key is None or self.rankings[before].items is None:
            return None
        old = self.rank(before, key)
        if old is None:
            return Move("new" if self.rankings[before].complete else f"{self.missing(before)} before", "up")
        return None if old == rank else Move(f"{old} → {rank}", "up" if old > rank else "down")


def _keys(items: Sequence[Retrieved], field: str | None) -> list[Key | None]:
    """The keys of the items of a ranking, by one field, or by whatever each has."""
    found: list[Key | None] = []
    seen: Counter[tuple[str, object]] = Counter()
    for item in items:
        key = _identity(item) if field is None else (field, getattr(item, field))
        found.append(None if key is None else (*key, seen[key]))
        if key is not None:
            seen[key] += 1
    return found


def step_places(run: Run) -> dict[int, dict[int, list[tuple[int, int]]]]:
    """The places of the matches in the steps of all queries, by row; empty if there are no steps."""
    steps = run.all_hits.steps
    found: dict[int, dict[int, list[tuple[int, int]]]] = {}
    if steps is not None:
        for row, rank, step, at in zip(
            *(c.tolist() for c in (steps.query, steps.merged, steps.step, steps.rank)), strict=True
        ):
            found.setdefault(row, {}).setdefault(rank, []).append((step + 1, at))
    return found


def _identity(item: Retrieved) -> tuple[str, object] | None:
    """The field that identifies an item, and its value."""
    if item.id is not None:
        return "id", item.id
    if item.doc is not None and item.start is not None:
        return "range", (item.doc, item.start, item.end)
    if item.text is not None:
        return "text", (item.text, item.length)
    return None if item.doc is None else ("doc", item.doc)


def shown_cutoff_of(run: Run) -> int | None:
    """The cutoff at which a ranking has its line: that of the diagnosis; None if no metric has one."""
    ks = [metric.headline[1] for metric in sorted(run.metrics, key=lambda metric: metric.name != "recall")]
    return next((k for k in ks if isinstance(k, int)), None)


def cutoff_line(k: int) -> Element:
    """The line in a list of items after the last that counts at k."""
    return h("li.cutoff", f"k = {k}")


def with_line(entries: Sequence[tuple[int, Element]], k: int | None, depth: int) -> list[Element]:
    """The entries of a list, given with their ranks, and a line after rank k if the ranking is longer."""
    shown = [entry for _, entry in entries]
    if k is None or depth <= k or not entries or entries[-1][0] < k:
        return shown
    above = sum(rank <= k for rank, _ in entries)
    return [*shown[:above], cutoff_line(k), *shown[above:]]


def rest_of(ranking: Ranking, shown: int) -> str | None:
    """A sentence on what a list of items does not show; None if it shows all."""
    if not ranking.depth:
        return "Nothing was retrieved."
    if ranking.items is None:
        return "The run stores no items: only the matches are known."
    rest = ranking.depth - shown
    return f"{plural(rest, 'more item was', 'more were')} retrieved." if rest > 0 else None


def place_of(item: Retrieved | GoldText) -> Element | None:
    """The document of an item, and the range of characters in it."""
    doc = None if item.doc is None or item.doc == item.id else data(cut(item.doc, LONGEST))
    if item.start is not None and item.end is not None:
        of: list[Child] = [" of ", doc] if doc is not None else []
        return h("span.small", f"characters {item.start:,}–{item.end:,}", *of)
    return None if doc is None else h("span.small", "in ", doc)


def name_of(label: str, *, mark: bool = False) -> Element:
    """An id, marked if the whole item matches."""
    name = data(cut(label, LONGEST), "bdi.id") if " " in label else short_id(label)
    return h("mark", name) if mark else name


def passage(text: str, ranges: Sequence[Range] = (), texts: Texts = "whole", longest: int = LONGEST) -> list[Element]:
    """A text with its marks. A longer one is cut, around its first mark, and can be expanded."""
    if len(text) <= longest:
        return [_text(marked(text, ranges, len(text)))]
    short = _text(marked(text, ranges, longest))
    return [folded(short, _text(marked(text, ranges, len(text)))) if texts == "whole" else short]


def _text(pieces: Sequence[tuple[bool, str]]) -> Element:
    return h("bdi.text", *(h("mark", piece) if mark else piece for mark, piece in pieces))


def spaced(*parts: Child | None) -> list[Child]:
    """The parts that are there, a space after each."""
    return [piece for part in parts if part is not None for piece in (part, " ")]
