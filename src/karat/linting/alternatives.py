"""Gold that has a near copy which is not gold: who retrieves the copy is counted as wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zlib import crc32

from karat.diagnosis.alike import NEAR_COPY, nearest
from karat.judges.folding import fold_space
from karat.linting.documents import Documents
from karat.linting.problem import Found, Problem
from karat.linting.testset import Entry, TestSet
from karat.tables import clean, many

_SHOWN = 60
_MOST = 20_000_000
"""Characters of a corpus up to which near copies are sought; above, only equal texts."""
_SKETCH, _WORDS = 8, 3


_Copy = tuple[Entry, str, float]
"""A gold item, what is called its copy, and how alike they are."""


class _Pairs:
    """Gold texts, and for each the texts that may be copies of it."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._wanted: list[str] = []
        self._names: list[list[str]] = []
        self._others: list[list[str]] = []

    def add(self, entry: Entry, text: str, names: list[str], others: list[str]) -> None:
        """A gold item with its text, and the names and texts of others."""
        self._entries.append(entry)
        self._wanted.append(text)
        self._names.append(names)
        self._others.append(others)

    def copies(self) -> Iterator[_Copy]:
        """Those that have a near copy, each with the nearest."""
        best = nearest(self._wanted, self._others, NEAR_COPY)
        for entry, names, found in zip(self._entries, self._names, best, strict=True):
            if found is not None:
                yield entry, names[found.place], found.alike


class _Index:
    """Documents by a sketch of each: the smallest numbers of its runs of three words, which near copies share."""

    def __init__(self, texts: dict[str, str], *, near: bool) -> None:
        self.texts = texts
        self._near = near
        self._holders: dict[object, list[str]] = {}
        for name, text in texts.items():
            for mark in self._marks(text):
                self._holders.setdefault(mark, []).append(name)

    def _marks(self, text: str) -> Sequence[object]:
        words = text.split()
        if not self._near or len(words) <= _WORDS:
            return (text,)
        runs = {" ".join(words[i : i + _WORDS]) for i in range(len(words) - _WORDS + 1)}
        return (text, *sorted(crc32(run.encode("utf-8", "surrogatepass")) for run in runs)[:_SKETCH])

    def like(self, text: str) -> list[str]:
        """The documents that may be near copies, in order."""
        return list(dict.fromkeys(name for mark in self._marks(text) for name in self._holders.get(mark, ())))


def check_alternatives(tests: TestSet, documents: Documents | None) -> Iterator[Problem]:
    """Gold items with a near copy in the corpus or among the retrieved that is no gold of the query."""
    found = Found()
    seen: set[tuple[int, str]] = set()
    for entry, copy, alike in [*_retrieved(tests), *([] if documents is None else _in_corpus(tests, documents))]:
        if (entry.row, entry.name) not in seen:
            seen.add((entry.row, entry.name))
            how = "equal" if alike == 1 else f"{min(alike, 0.99):.2f} alike"
            found.add(f"{clean(entry.query_id, 20)}: {clean(entry.name, _SHOWN)} and {clean(copy, _SHOWN)}, {how}")
    items = many(found.count, "gold item has a near copy that is", "gold items have near copies that are")
    yield from found.problem(
        "no alternatives", f"{items} not gold: give both one group, so that either counts.", serious=False
    )


def _retrieved(tests: TestSet) -> Iterator[_Copy]:
    """Near copies among what was retrieved for the same query."""
    pairs = _Pairs()
    for own, retrieved in zip(tests.by_query(), tests.retrieved(), strict=True):
        ids, texts = {entry.id for entry in own} - {None}, {entry.text for entry in own}
        known = {name: text for name, text in retrieved if name is not None}
        by_id = bool(ids and known)
        strange = [(name, text) for name, text in retrieved if (name not in ids if by_id else text not in texts)]
        for entry in own:
            text = entry.text or known.get(entry.id or "")
            if entry.grade > 0 and entry.group is None and text:
                pairs.add(entry, text, [name or text for name, text in strange], [text for _, text in strange])
    yield from pairs.copies()


def _in_corpus(tests: TestSet, documents: Documents) -> Iterator[_Copy]:
    """Near copies among the documents of gold that is a whole one; documents that hold a quote of another, too."""
    corpus = documents.corpus
    index = _Index(documents.folded, near=len(documents.everything) <= _MOST)
    gold = [{corpus.name(entry.id or entry.doc or "") for entry in own} for own in tests.by_query()]
    pairs = _Pairs()
    for entry in tests.gold:
        name = corpus.name(entry.id or entry.doc or "")
        if entry.grade <= 0 or entry.group is not None or entry.start is not None or name not in index.texts:
            continue
        if entry.id is None and entry.text:
            yield from ((entry, copy, 1.0) for copy in _holders(entry.text, documents) if copy not in gold[entry.row])
            continue
        copies = [copy for copy in index.like(index.texts[name]) if copy not in gold[entry.row]]
        pairs.add(entry, index.texts[name], copies, [index.texts[copy] for copy in copies])
    yield from pairs.copies()


def _holders(quote: str, documents: Documents) -> list[str]:
    """The documents that hold a quote word for word."""
    wanted = fold_space(quote)
    return [name for name, text in documents.folded.items() if wanted in text]
