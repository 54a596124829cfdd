"""Queries that stand twice, and gold that contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple
from zlib import crc32

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.display import plural, sanitize
from karat.analysis.diagnose.similar import NEAR_COPY, nearest
from karat.analysis.lint.test_set import Entry, Found, Problem, TestSet
from karat.errors import nearest as nearest_name
from karat.judges.corpus import Corpus
from karat.judges.text import ALL, fold_space, folder
from karat.pipeline import evaluate
from karat.run import Run
from karat.stats import detectable, needed

_SHOWN = 60


def check_queries(tests: TestSet) -> Iterator[Problem]:
    """Empty gold, queries that are the same, gold that differs for them, items that stand twice."""
    gold = tests.by_query()
    yield from _empty(tests, gold)
    yield from _same_queries(tests, gold)
    yield from _same_items(gold)


def _empty(tests: TestSet, gold: list[list[Entry]]) -> Iterator[Problem]:
    found = Found()
    for query, own in zip(tests.samples.ids, gold, strict=True):
        if not any(entry.grade > 0 for entry in own):
            found.add(f"{sanitize(query, _SHOWN)}{': every grade is 0 or less' if own else ''}")
    if found.count == len(tests):
        yield from found.problem("no gold", "No query has relevant gold: nothing can be measured.", serious=True)
        return
    queries = plural(found.count, "query has", "queries have")
    yield from found.problem("empty gold", f"{queries} no relevant gold: undefined, and in no mean.", serious=False)


def _same_queries(tests: TestSet, gold: list[list[Entry]]) -> Iterator[Problem]:
    """Queries that are the same but for case, white space and punctuation; with the same gold, or with another."""
    if tests.samples.query is None:
        return
    fold = folder(ALL)
    texts = [fold(text or "") for text in tests.samples.query]
    order = sorted((row for row in range(len(texts)) if texts[row]), key=lambda row: (texts[row], row))
    same, different = Found(), Found()
    groups = [list(rows) for _, rows in groupby(order, key=texts.__getitem__)]
    for rows in sorted(rows for rows in groups if len(rows) > 1):
        names = ", ".join(sanitize(tests.samples.ids[row], 20) for row in rows[:4])
        asked = f'{names}: "{sanitize(tests.samples.query[rows[0]] or "", _SHOWN)}"'
        wanted = {frozenset((entry.key, entry.grade) for entry in gold[row]) for row in rows}
        (same if len(wanted) == 1 else different).add(asked)
    queries = plural(different.count, "query is", "queries are")
    yield from different.problem(
        "conflicting gold",
        f"{queries} asked more than once, with different gold: no retriever can be right.",
        serious=True,
    )
    queries = plural(same.count, "query is", "queries are")
    yield from same.problem(
        "duplicate queries", f"{queries} asked more than once, with the same gold: they count as often.", serious=False
    )


def _same_items(gold: list[list[Entry]]) -> Iterator[Problem]:
    """Items that stand twice in the gold of a query."""
    again, graded = Found(), Found()
    for own in gold:
        several: dict[tuple[object, ...], list[Entry]] = {}
        for entry in own:
            several.setdefault(entry.key, []).append(entry)
        for entries in several.values():
            where = f"{sanitize(entries[0].query_id, 20)}: {sanitize(entries[0].name, _SHOWN)}"
            grades = [entry.grade for entry in entries]
            if len(set(grades)) > 1:
                graded.add(f"{where}, grades {', '.join(f'{grade:g}' for grade in grades)}")
            elif len(grades) > 1:
                again.add(where)
    items = plural(graded.count, "gold item stands", "gold items stand")
    yield from graded.problem(
        "conflicting gold", f"{items} twice in a query, with different grades: the best counts.", serious=True
    )
    items = plural(again.count, "gold item stands", "gold items stand")
    yield from again.problem("repeated gold", f"{items} twice in a query: it counts once.", serious=False)


_NAMES = 10_000


class Documents:
    """A corpus in which gold is looked up."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    @cached_property
    def folded(self) -> dict[str, str]:
        """Every document with its white space folded."""
        return {name: fold_space(self.corpus[name].text) for name in self.corpus.names()}

    @cached_property
    def everything(self) -> str:
        """All documents in one text."""
        return "\n".join(self.folded.values())

    def lacks(self, entry: Entry) -> str | None:
        """Why a gold item cannot be found in the corpus, if it cannot."""
        given = entry.doc if entry.doc is not None else entry.id
        if given is None:
            return None if fold_space(entry.text or "") in self.everything else "this text is in no document"
        name = self.corpus.name(given)
        if name not in self.corpus:
            close = nearest_name(given, self.corpus.names()[:_NAMES])
            kind = "document" if entry.doc is not None else "id"
            return f'no {kind} "{sanitize(given, _SHOWN)}"' + (
                f', the nearest is "{sanitize(close, _SHOWN)}"' if close else ""
            )
        text = self.corpus[name].text
        if entry.text and fold_space(entry.text) not in fold_space(text):
            return f'its text is not in "{sanitize(name, _SHOWN)}"'
        if entry.end is not None and entry.end > len(text):
            return f'it ends at {entry.end:,}, "{sanitize(name, _SHOWN)}" at {len(text):,}'
        return None


def check_corpus(tests: TestSet, documents: Documents) -> Iterator[Problem]:
    """Every relevant gold item must be in the corpus."""
    found = Found()
    different = {(entry.row, entry.key): entry for entry in reversed(tests.gold)}
    for entry in reversed(different.values()):
        if entry.grade > 0 and (why := documents.lacks(entry)) is not None:
            found.add(f"{sanitize(entry.query_id, 20)}: {sanitize(entry.name, _SHOWN)}: {why}")
    items = plural(found.count, "gold item is", "gold items are")
    yield from found.problem(
        "not in the corpus", f"{items} not in the corpus: no retriever can find what is not there.", serious=True
    )


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
            found.add(
                f"{sanitize(entry.query_id, 20)}: {sanitize(entry.name, _SHOWN)} and {sanitize(copy, _SHOWN)}, {how}"
            )
    items = plural(found.count, "gold item has a near copy that is", "gold items have near copies that are")
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


_HIGH = 0.98
_POINTS = 0.02
_MOST_SPREAD = 0.5
"""Scores from 0 to 1 cannot spread more."""


class Strength(NamedTuple):
    """What so many queries can show, and by which spread that was reckoned."""

    queries: int
    spread: float
    of: str
    detectable: float
    needed: int

    def told(self) -> str:
        """One sentence."""
        return (
            f"With {self.queries:,} queries a difference below {self.detectable:.3f} would go unseen (80 % power); "
            f"to see 2 points takes {self.needed:,}. Reckoned by {self.of}, {self.spread:.2f}."
        )


def strength(tests: TestSet, runs: Sequence[Run]) -> Strength | None:
    """By the runs that are given, by what was retrieved, or by the most that scores can spread."""
    defined = sum(any(entry.grade > 0 for entry in own) for own in tests.by_query())
    if defined < 2:
        return None
    spread, of = _spread(tests, runs)
    return Strength(defined, spread, of, detectable(spread, defined), needed(spread, _POINTS))


def _spread(tests: TestSet, runs: Sequence[Run]) -> tuple[float, str]:
    if len(runs) > 1:
        name = _metric([name for name in runs[0].mean if name in runs[1].mean])
        spread = None if name is None else _deviation(_differences(runs[0], runs[1], name))
        if spread is not None:
            return spread, f"the spread of the differences in {name} between the first two runs"
    one = runs[0] if runs else _evaluated(tests)
    name = None if one is None else _metric(list(one.mean))
    spread = None if one is None or name is None else _deviation(one.scores[name])
    return (_MOST_SPREAD, "the most that scores can spread") if spread is None else (spread, f"the spread of {name}")


def _metric(names: Sequence[str]) -> str | None:
    """The last recall, which has the largest cutoff, or whatever comes first."""
    recalls = [name for name in names if name.startswith("recall@")]
    return recalls[-1] if recalls else next(iter(names), None)


def _deviation(values: Floats) -> float | None:
    """The standard deviation of what is defined, if there is any."""
    defined = values[~np.isnan(values)]
    return float(defined.std(ddof=1)) if len(defined) > 1 and defined.std() > 0 else None


def _differences(a: Run, b: Run, name: str) -> Floats:
    """The differences of a metric over the queries that both have."""
    at = {query: row for row, query in enumerate(b.ids)}
    rows = [(row, at[query]) for row, query in enumerate(a.ids) if query in at]
    return np.array([b.scores[name][j] - a.scores[name][i] for i, j in rows], float)


def _evaluated(tests: TestSet) -> Run | None:
    """What was retrieved, measured, if it is there and can be."""
    run = evaluate(tests.samples, "recall@5") if tests.comparable else None
    return run if run is not None and run.all_hits.depth.any() else None


def check_strength(runs: Sequence[Run], found: Strength | None) -> Iterator[Problem]:
    """Too few queries to see two points, and metrics in which every run is as good as perfect."""
    names = [name for name in runs[0].mean if all(run.mean.get(name, 0) > _HIGH for run in runs)] if runs else []
    if names:
        lowest = [f"{name}: {min(run.mean[name] for run in runs):.3f} at the lowest" for name in names]
        which = "every metric" if len(names) == len(runs[0].mean) else f"{len(names)} of {len(runs[0].mean)} metrics"
        text = f"In {which} every run scores above {_HIGH}: it cannot tell them apart any more. Add harder queries."
        yield Problem("saturated", False, len(names), text, lowest)
    if found is not None and found.detectable > _POINTS:
        yield Problem("small", False, found.queries, found.told(), [])
