"""The cause of each miss: what is measured, in which order, and how it is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.display import plural, sanitize
from karat._internal.grammar import parse_call
from karat.analysis.diagnose.miss import Finding, Missed
from karat.analysis.diagnose.similar import held, nearest, ruler
from karat.judges.text import FOLD_LABELS, FOLDS, folder
from karat.run import Run
from karat.run.stored_items import GoldText, Items, Retrieved, without_mark

_HALF, _NAMED, _PARTS = 0.5, 60, 3
_STEPS = (10, 20, 50)
_FORM = ("unicode", "case", "space")


class _Query(NamedTuple):
    """What came back for a query, and the texts of it folded."""

    row: int
    items: Items
    folded: list[str]


class _Case(NamedTuple):
    """A missed gold item that was not found at any rank: its alternatives, and its query."""

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
        self._missed = missed
        self._k = missed.k
        self._judge = run.provenance.judge
        self._fold = folder(_FORM)
        self._queries: dict[int, _Query] = {}

    def find(self, numbers: Ints) -> dict[int, Finding]:
        """The cause of each of these misses, by its number."""
        found: dict[int, Finding] = {}
        lost: list[_Case] = []
        for number in numbers.tolist():
            row = int(self._missed.query[number])
            if np.isfinite(self._missed.first[number]):
                found[number] = self._too_low(row, int(self._missed.first[number]))
                continue
            query = self._query(row)
            case = _Case(number, self._gold(number, query), query)
            finding = self._in_parts(case) or self._other_form(case)
            if finding is None:
                lost.append(case)
            else:
                found[number] = finding
        near = self._near_copies(lost)
        for case in lost:
            found[case.number] = (
                near.get(case.number)
                or self._held(case)
                or self._right_document(case)
                or self._nowhere(case)
                or self._not_retrieved(case)
            )
        return found

    def copies(self, row: int) -> list[int]:
        """The ranks of a query that hold a copy of an item above, by its id or its text."""
        query = self._query(row)
        by_doc = self._judge.startswith("ids(at=doc")
        seen: set[tuple[str, str]] = set()
        copies = []
        for item, folded in zip(query.items.retrieved, query.folded, strict=True):
            names = (("doc", item.doc),) if by_doc else (("id", item.id), ("text", folded))
            own = {(field, name) for field, name in names if name}
            copies += [] if own.isdisjoint(seen) else [item.rank]
            seen |= own
        return copies

    def _query(self, row: int) -> _Query:
        if row not in self._queries:
            kept = self._run.stored_items
            items = Items([], []) if kept is None else kept.items(row)
            folded = ["" if item.text is None else self._fold(without_mark(item.text)) for item in items.retrieved]
            self._queries[row] = _Query(row, items, folded)
        return self._queries[row]

    def _gold(self, number: int, query: _Query) -> list[GoldText]:
        """What is known of a gold item and its alternatives."""
        of = self._run.all_hits.gold_items
        item = number - int(of.start[query.row])
        found = [self._filled(gold) for gold in query.items.gold if gold.item == item]
        return found or [GoldText(of.label[number], None, None, float(of.grade[number]))]

    def _filled(self, gold: GoldText) -> GoldText:
        """A gold item that is only named, with what stands under its id in any ranking."""
        if gold.id is None or gold.id not in self._known or (gold.text is not None and gold.doc is not None):
            return gold
        known = self._known[gold.id]
        text = known.text if gold.text is None else gold.text
        return gold._replace(text=text, doc=known.doc if gold.doc is None else gold.doc)

    @cached_property
    def _known(self) -> dict[str, Retrieved]:
        """The text and the document of every id that was retrieved for any query."""
        kept = self._run.stored_items
        if kept is None or "id" not in kept.retrieved or not {"text", "doc"} & set(kept.retrieved):
            return {}
        ids = kept.retrieved["id"]
        nothing = [None] * len(ids)
        rows = zip(ids, kept.retrieved.get("text", nothing), kept.retrieved.get("doc", nothing), strict=True)
        return {name: Retrieved(0, name, text, doc, None) for name, text, doc in rows if name is not None}

    def _too_low(self, row: int, rank: int) -> Finding:
        """It was found, but not in the top k."""
        above = sum(copy < rank for copy in self.copies(row))
        if rank - above <= self._k:
            copies = plural(above, "place above it holds a copy", "places above it hold copies")
            return Finding("crowded out", f"at rank {rank}: {copies}, without which it would stand at {rank - above}")
        return Finding("below k", f"at rank {rank}, below {self._k}: recall@{_next_cutoff(rank)} would find it")

    def _in_parts(self, case: _Case) -> Finding | None:
        """Parts of it were found, as the judge says itself."""
        hits = self._run.all_hits
        if hits.part is None:
            return None
        first, last = np.searchsorted(hits.query, (case.query.row, case.query.row + 1)).tolist()
        rows = [i for i in range(first, last) if hits.gold[i] == case.number and hits.part[i]]
        if not rows:
            return None
        ranks = tuple(int(hits.rank[i]) for i in rows)
        whys = [hits.why if isinstance(hits.why, str) else hits.why[i] for i in rows]
        told = [f"rank {rank} {why}" for rank, why in zip(ranks[:_PARTS], whys, strict=False)]
        wants = parse_call(self._judge).named.get("coverage") if self._judge.startswith("spans(") else None
        told += [f"the judge wants {wants:.0%}".replace("%", " %")] if isinstance(wants, float) else []
        return Finding("split over chunks" if len(ranks) > 1 else "cut differently", "; ".join(told), ranks)

    def _other_form(self, case: _Case) -> Finding | None:
        """An item of this query is the same when folded; for judges that look into texts, it holds the same."""
        inside = self._judge.startswith(("contains", "spans"))
        for gold in case.gold:
            name, text = self._fold(gold.id or ""), self._fold(without_mark(gold.text or ""))
            for item, folded in zip(case.retrieved, case.query.folded, strict=True):
                if name and item.id and item.id != gold.id and self._fold(item.id) == name:
                    return _same_but(gold.id, item.id, item.rank)
                if text and folded == text and item.text != gold.text:
                    return _same_but(gold.text, item.text, item.rank)
                if inside and text and text in folded and self._elsewhere(gold, item):
                    return Finding("case or white space", f"rank {item.rank} holds it but for case", (item.rank,))
        return None

    def _elsewhere(self, gold: GoldText, item: Retrieved) -> bool:
        """Whether it is case that keeps the judge from seeing it, and not another document."""
        raw = " ".join(without_mark(gold.text or "").split())
        same_document = gold.doc is None or item.doc is None or gold.doc == item.doc
        return same_document and raw not in " ".join((item.text or "").split())

    def _near_copies(self, cases: Sequence[_Case]) -> dict[int, Finding]:
        """A text of this query is nearly equal."""
        by = ruler(self._judge)
        numbers, wanted, ranked, texts = [], [], [], []
        for case in cases:
            others = [item for item in case.retrieved if item.text]
            for gold in case.gold:
                if gold.text and others:
                    numbers.append(case.number)
                    wanted.append(without_mark(gold.text))
                    ranked.append(others)
                    texts.append([without_mark(item.text or "") for item in others])
        found: dict[int, Finding] = {}
        for number, others, best in zip(numbers, ranked, nearest(wanted, texts, by), strict=True):
            if best is None or number in found:
                continue
            item = others[best.place]
            under = f' under the id "{sanitize(item.id, _NAMED)}"' if item.id else ""
            if best.alike == 1:
                text = f"the same text stands at rank {item.rank}{under}"
            else:
                wants = "" if by.threshold is None else f"; the judge wants {by.threshold:g}"
                text = f"a nearly equal text stands at rank {item.rank}{under} ({_two_places(best.alike)} alike{wants})"
            found[number] = Finding("nearly equal", text, (item.rank,))
        return found

    def _held(self, case: _Case) -> Finding | None:
        """One or several texts of this query hold most of it."""
        for gold in case.gold:
            share, by = held(self._fold(without_mark(gold.text or "")), case.query.folded)
            if share < _HALF:
                continue
            ranks = sorted(case.retrieved[place].rank for place in by)
            told = f"{share:.0%}".replace("%", " %")
            if len(ranks) == 1:
                said = f"rank {ranks[0]} holds {told} of it, within another text"
                return Finding("cut differently", said, tuple(ranks))
            return Finding("split over chunks", f"ranks {_listed(ranks)} together hold {told} of it", tuple(ranks))
        return None

    def _right_document(self, case: _Case) -> Finding | None:
        for gold in case.gold:
            ranks = [item.rank for item in case.retrieved if gold.doc is not None and item.doc == gold.doc]
            if ranks:
                where = f"rank {ranks[0]} is" if len(ranks) == 1 else f"ranks {_listed(ranks)} are"
                return Finding("right document", f"{where} from its document, but another chunk", tuple(ranks))
        return None

    def _seen(self, gold: GoldText) -> bool | None:
        """Whether its id was retrieved for any query; in a very large run, among what is kept."""
        if gold.seen is not None or not self._judge.startswith("ids") or gold.id is None:
            return gold.seen
        return gold.id in self._kept_ids

    @cached_property
    def _kept_ids(self) -> frozenset[str]:
        kept = self._run.stored_items
        column = "doc" if self._judge.startswith("ids(at=doc") else "id"
        return frozenset() if kept is None else frozenset(kept.retrieved.get(column, ()))

    def _nowhere(self, case: _Case) -> Finding | None:
        kept = self._run.stored_items
        if kept is None or len(self._run) < 2 or any(self._seen(gold) is not False for gold in case.gold):
            return None
        where = "for no query of the run" if kept.extent.whole else f"in the top {kept.extent.places} of no query"
        return Finding("nowhere in the run", f"its id was retrieved {where}: is it in the index, under this id?")

    def _not_retrieved(self, case: _Case) -> Finding:
        depth = int(self._run.all_hits.depth[case.query.row])
        if depth == 0:
            return Finding("not retrieved", "nothing was retrieved")
        elsewhere = "; retrieved for another query" if any(map(self._seen, case.gold)) else ""
        said = "the one retrieved item is another" if depth == 1 else f"not among the {depth:,} retrieved items"
        return Finding("not retrieved", said + elsewhere)


def _same_but(one: str | None, other: str | None, rank: int) -> Finding:
    """Two ids or texts are the same when folded."""
    return Finding("case or white space", f"rank {rank} is the same but for {_form(one or '', other or '')}", (rank,))


def _form(one: str, other: str) -> str:
    alone = next((name for name in ("case", "space", "unicode") if FOLDS[name](one) == FOLDS[name](other)), None)
    return "case and white space" if alone is None else FOLD_LABELS[alone]


def _next_cutoff(rank: int) -> int:
    """The next round number, at which people cut."""
    return next(step for step in _rounds() if step >= rank)


def _rounds() -> Iterator[int]:
    power = 1
    while True:
        yield from (step * power for step in _STEPS)
        power *= 10


def _listed(ranks: Sequence[int]) -> str:
    shown = [str(rank) for rank in ranks[:4]] + (["…"] if len(ranks) > 4 else [])
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _two_places(alike: float) -> str:
    """Two decimal places; never 1.00 for texts that differ."""
    return f"{min(alike, 0.99):.2f}"
