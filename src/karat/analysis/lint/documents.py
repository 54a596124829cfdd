"""Checks of gold texts: not in the corpus, also elsewhere, quoted in queries, or with near copies that are not gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from karat._internal.display import cut_label, cut_name, plural, sanitize
from karat._internal.grams import Grams, sharing
from karat._internal.overlap import Sketches, cut_pieces, passages
from karat.analysis.diagnose.similar import NEAR_COPY, nearest
from karat.analysis.lint.test_set import EXAMPLES, Chunk, GoldRow, Problem, TestSet, problems
from karat.errors import nearest as nearest_name
from karat.judges.corpus import Corpus, Place
from karat.judges.spans.cover import RangeUnion
from karat.judges.text import ALL, fold_space, folder
from karat.samples.notes import Tally

MAX_CHARACTERS = 20_000_000
"""The size of a corpus up to which near copies are searched; above, only equal texts."""
_SHOWN, _ID_SHOWN = 60, 20
_MAX_NAMES = 10_000
_ALIKE = 0.7
"""Near copies differ less in length, whatever their white space."""
_FEW_PAIRS = 20_000
"""Gold times retrieved items of a query up to which all are compared; above, those with similar sketches."""
_ASKED = 10_000
"""Characters of a query that are searched in its gold."""
_QUOTED, _MOST, _HALF = 30, 0.8, 0.5
"""A query quotes gold if it shares passages of this length, most of the query or half of the gold text."""


class Documents:
    """A corpus in which gold is looked up."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    @cached_property
    def folded(self) -> dict[str, str]:
        """The documents with normalized white space."""
        return {name: fold_space(self.corpus[name].text) for name in self.corpus.names()}

    @cached_property
    def _searched(self) -> Grams:
        return Grams(list(self.folded.values()))

    def holders(self, text: str) -> list[str]:
        """The names of the documents that contain a text; white space may differ."""
        names = list(self.folded)
        return [names[number] for number in self._searched.holders(fold_space(text))]

    def lacks(self, gold: GoldRow) -> str | None:
        """The reason why a gold item is not in the corpus; None if it is."""
        given = gold.doc if gold.doc is not None else gold.id
        if given is None:
            return None if self.holders(gold.text or "") else "its text is not in any document"
        name = self.corpus.name(given)
        if name not in self.corpus:
            close = nearest_name(given, self.corpus.names()[:_MAX_NAMES])
            kind = "document" if gold.doc is not None else "id"
            more = f', the nearest is "{cut_name(close, _SHOWN)}"' if close else ""
            return f'no {kind} "{cut_name(given, _SHOWN)}"{more}'
        text = self.corpus[name].text
        if gold.text and not self.corpus[name].contains(gold.text):
            return f'its text is not in "{cut_name(name, _SHOWN)}"'
        if gold.end is not None and gold.end > len(text):
            return f'it ends at character {gold.end:,}, but "{cut_name(name, _SHOWN)}" has {len(text):,}'
        return None


def check_corpus(tests: TestSet, documents: Documents) -> list[Problem]:
    """Relevant gold items that are not in the corpus."""
    tally = Tally(EXAMPLES)
    different = {(gold.row, gold.key): gold for gold in reversed(tests.gold)}
    for gold in reversed(different.values()):
        if gold.grade > 0 and (why := documents.lacks(gold)) is not None:
            tally.add(f"{cut_name(gold.query_id, _ID_SHOWN)}: {cut_label(gold.name, _SHOWN)}: {why}")
    items, them = plural(tally.count, "gold item is", "gold items are"), "it" if tally.count == 1 else "them"
    text = f"{items} not in the corpus: no retriever can find {them}."
    return problems(tally, "not in the corpus", text, serious=True)


def check_ranges(tests: TestSet, documents: Documents | None) -> list[Problem]:
    """Gold ranges with words that also occur elsewhere: in the document, or without one in the retrieved chunks."""
    tally = Tally(EXAMPLES)
    for own, chunks in zip(tests.by_query, tests.retrieved, strict=True):
        own_ranges = _ranges(own)
        words = _ChunkWords(chunks)
        for gold in own:
            if gold.grade <= 0 or gold.start is None or gold.end is None or gold.doc is None:
                continue
            places = _places_in_document(gold, documents) or words.places(gold)
            others = [place for place in places if not any(own_ranges[gold.doc].within(*place))]
            if others:
                more = "" if len(others) == 1 else f" and {len(others) - 1} more"
                at = f"also at {others[0][0]:,} to {others[0][1]:,}{more}"
                tally.add(f"{cut_name(gold.query_id, _ID_SHOWN)}: {cut_label(gold.name, _SHOWN)}, {at}")
    ranges = plural(tally.count, "gold range has words that also occur", "gold ranges have words that also occur")
    text = (
        f"{ranges} elsewhere in the document, where they do not count: "
        "put all places in one group, or give the quotes without ranges."
        + (" Without a corpus, only the retrieved texts were searched." if documents is None else "")
    )
    return problems(tally, "same words elsewhere", text, serious=False)


def _places_in_document(gold: GoldRow, documents: Documents | None) -> list[Place]:
    if documents is None or (name := documents.corpus.name(gold.doc or "")) not in documents.corpus:
        return []
    document = documents.corpus[name]
    return document.every_place(document.text[gold.start : gold.end])


def _ranges(gold: Sequence[GoldRow]) -> dict[str | None, RangeUnion]:
    """The ranges of gold items, by document."""
    found: dict[str | None, list[Place]] = {}
    for one in gold:
        if one.start is not None and one.end is not None:
            found.setdefault(one.doc, []).append((one.start, one.end))
    return {doc: RangeUnion(own) for doc, own in found.items()}


class _ChunkWords:
    """The retrieved chunks of a query, in which the words of gold are searched."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._texts = Grams([fold_space(chunk.text) for chunk in chunks])

    def places(self, gold: GoldRow) -> list[Place]:
        """The chunks of the same document that contain the words."""
        found = [self._chunks[number] for number in self._texts.holders(fold_space(gold.text or ""))]
        same = [chunk for chunk in found if chunk.doc == gold.doc and chunk.start is not None]
        return [(chunk.start or 0, chunk.end or 0) for chunk in same]


def check_leakage(tests: TestSet, documents: Documents | None) -> list[Problem]:
    """Queries that quote their gold: they find it by its words."""
    tally = Tally(EXAMPLES)
    fold = folder(ALL)
    for query, own, chunks in zip(tests.samples.query or (), tests.by_query, tests.retrieved, strict=False):
        asked = fold((query or "")[:_ASKED])
        known = {chunk.id: chunk.text for chunk in chunks if chunk.id is not None}
        for gold in own if len(asked) >= _QUOTED else ():
            text = fold(gold.text or known.get(gold.id or "") or _document_text(gold, documents) or "")
            shared = [one for one in passages(asked, text) if one.size >= _QUOTED] if gold.grade > 0 else []
            size = sum(one.size for one in shared)
            if shared and size >= min(_MOST * len(asked), _HALF * len(text)):
                words = _whole_words(asked, shared[0].start, shared[0].start + shared[0].size)
                tally.add(f'{cut_name(gold.query_id, _ID_SHOWN)}: "{sanitize(words, _SHOWN)}"')
                break
    queries = plural(tally.count, "query quotes", "queries quote")
    text = f"{queries} gold: any search for the same words finds it. Ask as a user would who has not read the answer."
    return problems(tally, "quoted gold", text, serious=False)


def _whole_words(text: str, start: int, end: int) -> str:
    """A range of a text without the parts of words at its ends; the range itself if it has no whole word."""
    first = start if start == 0 else text.find(" ", start - 1, end) + 1 or start
    last = end if end == len(text) else text.rfind(" ", first, end + 1)
    return text[first : end if last < 0 else last] or text[start:end]


def _document_text(gold: GoldRow, documents: Documents | None) -> str | None:
    if documents is None or (name := documents.corpus.name(gold.id or "")) not in documents.corpus:
        return None
    return documents.corpus[name].text


class _Copy(NamedTuple):
    """A gold item, the name of its near copy, and their similarity."""

    gold: GoldRow
    name: str
    similarity: float


class _Candidates(NamedTuple):
    """A gold item with its text, and the names and texts of possible copies."""

    gold: GoldRow
    text: str
    names: list[str]
    texts: list[str]


def _near_copies(candidates: Sequence[_Candidates]) -> Iterator[_Copy]:
    best = nearest([one.text for one in candidates], [one.texts for one in candidates], NEAR_COPY)
    for one, found in zip(candidates, best, strict=True):
        if found is not None:
            yield _Copy(one.gold, one.names[found.place], found.similarity)


def check_alternatives(
    tests: TestSet, documents: Documents | None, *, max_characters: int = MAX_CHARACTERS
) -> list[Problem]:
    """Gold items with a near copy, in the corpus or among the retrieved items, that is not gold."""
    tally = Tally(EXAMPLES)
    seen: set[tuple[int, str]] = set()
    in_corpus = [] if documents is None else _copies_in_corpus(tests, documents, max_characters)
    for gold, copy, similarity in [*_retrieved_copies(tests), *in_corpus]:
        if (gold.row, gold.name) not in seen:
            seen.add((gold.row, gold.name))
            how = "equal" if similarity == 1 else f"similarity {min(similarity, 0.99):.2f}"
            pair = f"{cut_label(gold.name, _SHOWN)} and {cut_label(copy, _SHOWN)}"
            tally.add(f"{cut_name(gold.query_id, _ID_SHOWN)}: {pair}, {how}")
    items = plural(tally.count, "gold item has a near copy that is", "gold items have near copies that are")
    text = f"{items} not gold: put both in one group, so that either counts."
    return problems(tally, "no alternatives", text, serious=False)


def _retrieved_copies(tests: TestSet) -> Iterator[_Copy]:
    """Near copies among the retrieved items of the same query."""
    candidates = []
    for own, chunks in zip(tests.by_query, tests.retrieved, strict=True):
        ids = {gold.id for gold in own} - {None}
        known = {chunk.id: chunk.text for chunk in chunks if chunk.id is not None}
        by_id = bool(ids and known)
        held = _held(own, chunks, by_id=by_id)
        others = [
            chunk for number, chunk in enumerate(chunks) if number not in held and not (by_id and chunk.id in ids)
        ]
        similar = _similar_to(others, all_pairs=len(own) * len(others) <= _FEW_PAIRS)
        for gold in own:
            text = gold.text or known.get(gold.id or "")
            if gold.grade > 0 and gold.group is None and text:
                near = similar(text)
                names = [chunk.id or chunk.text for chunk in near]
                candidates.append(_Candidates(gold, text, names, [chunk.text for chunk in near]))
    return _near_copies(candidates)


def _held(gold: Sequence[GoldRow], chunks: Sequence[Chunk], *, by_id: bool) -> set[int]:
    """The numbers of the chunks that contain gold or a part of it, by their range; without ids, also by their text."""
    ranges = _ranges(gold)
    held = {
        number
        for number, chunk in enumerate(chunks)
        if chunk.start is not None
        and chunk.end is not None
        and chunk.doc in ranges
        and any(ranges[chunk.doc].within(chunk.start, chunk.end))
    }
    if by_id:
        return held
    wholes, texts = [fold_space(one.text or "") for one in gold], [fold_space(chunk.text) for chunk in chunks]
    halves = [(one[: (len(one) + 1) // 2], one[len(one) // 2 :]) for one in wholes]
    likely = sharing(wholes, halves, texts, [[text] for text in texts])
    return held | {
        number for own, text in zip(likely, wholes, strict=True) for number in own - held if _has(texts[number], text)
    }


def _similar_to(chunks: Sequence[Chunk], *, all_pairs: bool) -> Callable[[str], Sequence[Chunk]]:
    """The chunks that may be near copies of a text: all of them, or those with a similar sketch."""
    if all_pairs:
        return lambda _: chunks
    sketches = Sketches({str(number): fold_space(chunk.text) for number, chunk in enumerate(chunks)}, near=True)
    return lambda text: [chunks[int(number)] for number in sketches.similar(fold_space(text))]


def _has(chunk: str, gold: str) -> bool:
    """True if a chunk contains a gold text or a half of it; False if they differ in length: it is no near copy."""
    if not _ALIKE * len(chunk) <= len(gold) <= len(chunk) / _ALIKE:
        return False
    cut = (piece.end - piece.start for piece in cut_pieces(gold, chunk))
    return bool(gold) and (gold in chunk or max(cut, default=0) >= _HALF * len(gold))


def _copies_in_corpus(tests: TestSet, documents: Documents, max_characters: int) -> Iterator[_Copy]:
    """Near copies of gold documents, and documents that contain a gold quote of another document."""
    corpus = documents.corpus
    sketches = Sketches(documents.folded, near=sum(map(len, documents.folded.values())) <= max_characters)
    gold_names = [{corpus.name(gold.id or gold.doc or "") for gold in own} for own in tests.by_query]
    candidates = []
    for gold in tests.gold:
        name = corpus.name(gold.id or gold.doc or "")
        if gold.grade <= 0 or gold.group is not None or gold.start is not None or name not in sketches.texts:
            continue
        if gold.id is None and gold.text:
            holders = documents.holders(gold.text)
            yield from (_Copy(gold, name, 1.0) for name in holders if name not in gold_names[gold.row])
            continue
        text = sketches.texts[name]
        copies = [copy for copy in sketches.similar(text) if copy not in gold_names[gold.row]]
        candidates.append(_Candidates(gold, text, copies, [sketches.texts[copy] for copy in copies]))
    yield from _near_copies(candidates)
