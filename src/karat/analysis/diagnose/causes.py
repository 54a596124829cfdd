"""The cause of each miss: the checks in their order, each with its measured values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.display import cut_name, percent, plural
from karat._internal.overlap import Piece, consecutive, coverage, occurrence, passages
from karat.analysis.diagnose.miss import Finding, Missed
from karat.analysis.diagnose.similar import judge_similarity, nearest
from karat.judges.text import FOLD_LABELS, FOLDS, fold_space, folder
from karat.run import Run
from karat.run.stored_items import GoldText, Items, Range, Retrieved, common_range

_HALF, _ID_WIDTH, _PARTS = 0.5, 60, 3
_FORM = ("unicode", "case", "space")


class _Query(NamedTuple):
    """The stored items of a query, and the normalized texts of the retrieved ones."""

    row: int
    items: Items
    gold: dict[int, list[GoldText]]
    folded: list[str]


class _Case(NamedTuple):
    """A gold item that was not found at any rank, with its alternatives and its query."""

    number: int
    gold: list[GoldText]
    query: _Query

    @property
    def retrieved(self) -> list[Retrieved]:
        return self.query.items.retrieved


class Causes:
    """Finds the cause of each miss of a run."""

    def __init__(self, run: Run, missed: Missed) -> None:
        self._run = run
        self._stored = run.stored_items
        self._missed = missed
        self._compares = run.provenance.compares
        self._settings = run.provenance.judge_settings
        self.fold = folder(_FORM)
        self._queries: dict[int, _Query] = {}
        self._copies: dict[int, list[int]] = {}

    def find(self, numbers: Ints) -> dict[int, Finding]:
        """The cause of each of these misses, by its number."""
        found: dict[int, Finding] = {}
        rest: list[_Case] = []
        for number in numbers.tolist():
            query = self._query(int(self._missed.query[number]))
            case = _Case(number, self._gold(number, query), query)
            finding = self._elsewhere(case) or self._too_low(case) or self._in_parts(case) or self._other_form(case)
            if finding is None:
                rest.append(case)
            else:
                found[number] = finding
        near = self._near_copies(rest)
        for case in rest:
            found[case.number] = (
                near.get(case.number)
                or self._covered(case)
                or self._right_document(case)
                or self._nowhere(case)
                or self._not_retrieved(case)
            )
        return found

    def copies(self, row: int) -> list[int]:
        """The ranks of a query that are copies of an item above, by id or text."""
        if row not in self._copies:
            self._copies[row] = self._find_copies(self._query(row))
        return self._copies[row]

    def _find_copies(self, query: _Query) -> list[int]:
        seen: set[tuple[str, str]] = set()
        copies = []
        for item, folded in zip(query.items.retrieved, query.folded, strict=True):
            keys = (("doc", item.doc),) if self._compares == "doc" else (("id", item.id), ("text", folded))
            own = {(field, key) for field, key in keys if key}
            copies += [] if own.isdisjoint(seen) else [item.rank]
            seen |= own
        return copies

    def _query(self, row: int) -> _Query:
        if row not in self._queries:
            items = Items([], []) if self._stored is None else self._stored.items(row)
            folded = ["" if item.text is None else self.fold(item.text) for item in items.retrieved]
            self._queries[row] = _Query(row, items, items.by_item(), folded)
        return self._queries[row]

    def _gold(self, number: int, query: _Query) -> list[GoldText]:
        """The stored fields of a gold item and its alternatives."""
        gold = self._run.all_hits.gold_items
        item = number - int(gold.start[query.row])
        found = [self.filled(one) for one in query.gold.get(item, ())]
        return found or [GoldText(gold.label[number], None, None, float(gold.grade[number]))]

    def filled(self, gold: GoldText) -> GoldText:
        """A gold item with the text and document that its id has in any ranking."""
        if gold.id is None or gold.id not in self._known or (gold.text is not None and gold.doc is not None):
            return gold
        known = self._known[gold.id]
        text = known.text if gold.text is None else gold.text
        return gold._replace(text=text, doc=known.doc if gold.doc is None else gold.doc)

    @cached_property
    def _known(self) -> dict[str, Retrieved]:
        """The text and document of every retrieved id."""
        columns = {} if self._stored is None else self._stored.retrieved
        if "id" not in columns or not {"text", "doc"} & set(columns):
            return {}
        ids = columns["id"]
        nothing = [None] * len(ids)
        rows = zip(ids, columns.get("text", nothing), columns.get("doc", nothing), strict=True)
        return {name: Retrieved(0, name, text, doc, None) for name, text, doc in rows if name is not None}

    def _elsewhere(self, case: _Case) -> Finding | None:
        """The words of a range occur again in chunks from elsewhere; if the range itself was found, in the top k."""
        first = self._missed.first[case.number]
        for gold in case.gold if self._compares == "span" else ():
            if gold.start is None or not gold.text:
                continue
            others = [i for i, item in enumerate(case.retrieved) if _overlap(gold, item) is None]
            others = others if first == np.inf else others[: self._missed.k]
            share, by = occurrence(self.fold(gold.text), [case.query.folded[i] for i in others])
            if not by or share < float(self._settings.get("coverage", _HALF)):
                continue
            items = [case.retrieved[others[i]] for i in by]
            ranks = tuple(sorted(item.rank for item in items))
            has = f"{_listed(ranks)} {'has' if len(ranks) == 1 else 'together have'}"
            words = "the same words" if share == 1 else f"{percent(share)} of its words"
            where = "another place of its document" if items[0].doc == gold.doc else "a place in another document"
            return Finding("same words elsewhere", f"{has} {words}, at {where}", ranks)
        return None

    def _too_low(self, case: _Case) -> Finding | None:
        """It was found, but not in the top k."""
        if self._missed.first[case.number] == np.inf:
            return None
        rank = int(self._missed.first[case.number])
        copies = sum(copy < rank for copy in self.copies(case.query.row))
        if rank - copies <= self._missed.k:
            above = plural(copies, "copy", "copies")
            return Finding("crowded out", f"at rank {rank}; without the {above} above it, at rank {rank - copies}")
        return Finding("below k", f"at rank {rank}, below k = {self._missed.k}: recall@{rank} would find it")

    @cached_property
    def _parts(self) -> dict[int, list[int]]:
        """The hits on parts, by the number of the gold item."""
        hits, found = self._run.all_hits, dict[int, list[int]]()
        for i in () if hits.part is None else hits.part.nonzero()[0].tolist():
            found.setdefault(int(hits.gold[i]), []).append(i)
        return found

    def _in_parts(self, case: _Case) -> Finding | None:
        """The judge itself found parts of it."""
        hits = self._run.all_hits
        rows = self._parts.get(case.number)
        if rows is None:
            return None
        ranks = tuple(int(hits.rank[i]) for i in rows)
        whys = [hits.why if isinstance(hits.why, str) else hits.why[i] for i in rows]
        texts = [f"rank {rank} {why}" for rank, why in zip(ranks[:_PARTS], whys, strict=False)]
        required = self._settings.get("coverage") if self._compares == "span" else None
        texts += [f"the judge requires {percent(required)}"] if isinstance(required, float) else []
        items = [item for item in case.retrieved if item.rank in ranks]
        split = any(len(consecutive(_pieces(gold, items))) > 1 for gold in case.gold)
        return Finding("split over chunks" if split else "cut differently", "; ".join(texts), ranks)

    def _other_form(self, case: _Case) -> Finding | None:
        """A retrieved item is equal after normalization; for judges of quotes and spans, it contains an equal text."""
        inside = self._compares in {"quote", "span"}
        for gold in case.gold:
            name, text = self.fold(gold.id or ""), self.fold(gold.text or "")
            for item, folded in zip(case.retrieved, case.query.folded, strict=True):
                if name and item.id and item.id != gold.id and self.fold(item.id) == name:
                    return _equal_except(gold.id, item.id, item.rank)
                if text and folded == text and item.text != gold.text:
                    return _equal_except(gold.text, item.text, item.rank)
                if inside and text and text in folded and _only_case(gold, item):
                    return Finding("case or white space", f"rank {item.rank} contains it except for case", (item.rank,))
        return None

    def _near_copies(self, cases: Sequence[_Case]) -> dict[int, Finding]:
        """A retrieved text of this query is nearly equal."""
        by = judge_similarity(self._compares, self._settings)
        numbers, wanted, candidates = [], [], []
        for case in cases:
            with_text = [item for item in case.retrieved if item.text]
            for gold in case.gold:
                if gold.text and with_text:
                    numbers.append(case.number)
                    wanted.append(gold.text)
                    candidates.append(with_text)
        texts = [[item.text or "" for item in items] for items in candidates]
        found: dict[int, Finding] = {}
        for number, items, best in zip(numbers, candidates, nearest(wanted, texts, by), strict=True):
            if best is None or number in found:
                continue
            item = items[best.place]
            which = f"rank {item.rank}" + (f', id "{cut_name(item.id, _ID_WIDTH)}",' if item.id else "")
            required = "" if by.threshold is None else f"; the judge requires {by.threshold:g}"
            similarity = f"{min(best.similarity, 0.99):.2f}"
            text = (
                f"is nearly equal (similarity {similarity}{required})" if best.similarity < 1 else "has the same text"
            )
            found[number] = Finding("nearly equal", f"{which} {text}", (item.rank,), best.similarity)
        return found

    def _covered(self, case: _Case) -> Finding | None:
        """One or several retrieved texts of this query contain most of it."""
        for gold in case.gold:
            if self._compares == "span" and gold.start is not None:
                continue  # no chunk has enough of the range, so its words are from another place
            share, by = coverage(self.fold(gold.text or ""), case.query.folded)
            if share < _HALF:
                continue
            ranks = tuple(sorted(case.retrieved[place].rank for place in by))
            if len(ranks) == 1:
                text = f"rank {ranks[0]} contains {percent(share)} of it, in another chunk"
                return Finding("cut differently", text, ranks)
            return Finding("split over chunks", f"{_listed(ranks)} together contain {percent(share)} of it", ranks)
        return None

    def _right_document(self, case: _Case) -> Finding | None:
        for gold in case.gold:
            ranks = tuple(item.rank for item in case.retrieved if gold.doc is not None and item.doc == gold.doc)
            if ranks:
                chunks = "is another chunk" if len(ranks) == 1 else "are other chunks"
                gaps = [gap for item in case.retrieved if (gap := _gap(gold, item)) is not None]
                away = (
                    "" if not gaps else f", the nearest {min(gaps):,} characters away" if min(gaps) else ", next to it"
                )
                return Finding("right document, wrong chunk", f"{_listed(ranks)} {chunks} of its document{away}", ranks)
        return None

    def _retrieved_anywhere(self, gold: GoldText) -> bool | None:
        """True if its id was retrieved for any query; in a very large run, among the stored items. None if unknown."""
        if gold.seen is not None or self._compares not in {"id", "doc"} or gold.id is None:
            return gold.seen
        return gold.id in self._stored_ids

    @cached_property
    def _stored_ids(self) -> frozenset[str]:
        return frozenset() if self._stored is None else frozenset(self._stored.retrieved.get(self._compares, ()))

    def _nowhere(self, case: _Case) -> Finding | None:
        unknown = any(self._retrieved_anywhere(gold) is not False for gold in case.gold)
        if self._stored is None or len(self._run) < 2 or unknown:
            return None
        extent = self._stored.extent
        where = "was not retrieved for any query" if extent.whole else f"is not in the top {extent.places} of any query"
        return Finding("nowhere in the run", f"its id {where}: check that it is in the index under this id")

    def _not_retrieved(self, case: _Case) -> Finding:
        depth = int(self._run.all_hits.depth[case.query.row])
        if depth == 0:
            return Finding("not retrieved", "nothing was retrieved")
        elsewhere = "; retrieved for another query" if any(map(self._retrieved_anywhere, case.gold)) else ""
        text = "the only retrieved item is another one" if depth == 1 else f"not among the {depth:,} retrieved items"
        return Finding("not retrieved", text + elsewhere)


def _overlap(gold: GoldText, item: Retrieved) -> Range | None:
    """The part of a gold range that a chunk has; None if it has none, or the ranges are unknown."""
    shared = common_range(gold, item)
    return shared if shared is not None and shared.start < shared.end else None


def _gap(gold: GoldText, item: Retrieved) -> int | None:
    """The number of characters between a gold range and a chunk; None if they are not known."""
    shared = common_range(gold, item)
    return None if shared is None else max(shared.start - shared.end, 0)


def _pieces(gold: GoldText, items: Sequence[Retrieved]) -> Iterator[Piece]:
    """The pieces of a gold item that these chunks have, by their ranges or else by their texts."""
    for item in items:
        shared = _overlap(gold, item)
        if shared is not None:
            yield Piece(*shared, item.rank)
        elif gold.text and item.text:
            text, other = fold_space(gold.text), fold_space(item.text)
            yield from (Piece(own.start, own.start + own.size, item.rank) for own in passages(text, other))


def _only_case(gold: GoldText, item: Retrieved) -> bool:
    """True if the judge missed it because of case, and not because of another document."""
    raw = " ".join((gold.text or "").split())
    same_document = gold.doc is None or item.doc is None or gold.doc == item.doc
    return same_document and raw not in " ".join((item.text or "").split())


def _equal_except(one: str | None, other: str | None, rank: int) -> Finding:
    """Two ids or texts that are equal after normalization."""
    names = ("case", "space", "unicode")
    single = next((name for name in names if FOLDS[name](one or "") == FOLDS[name](other or "")), None)
    form = "case and white space" if single is None else FOLD_LABELS[single]
    return Finding("case or white space", f"rank {rank} is equal except for {form}", (rank,))


def _listed(ranks: Iterable[int]) -> str:
    shown = [str(rank) for rank in ranks]
    if len(shown) == 1:
        return f"rank {shown[0]}"
    shown = shown[:4] + (["…"] if len(shown) > 4 else [])
    return f"ranks {', '.join(shown[:-1])} and {shown[-1]}"
