"""Checks of a test set: repeated queries, conflicting gold, gold outside the corpus, near copies, saturation, size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.display import plural, sanitize
from karat._internal.overlap import Sketches
from karat.analysis.changes import rows_of
from karat.analysis.diagnose.similar import NEAR_COPY, nearest
from karat.analysis.lint.test_set import EXAMPLES, GoldRow, Problem, TestSet, problems
from karat.errors import nearest as nearest_name
from karat.judges.corpus import Corpus
from karat.judges.text import ALL, fold_space, folder
from karat.pipeline import evaluate
from karat.run import Run
from karat.samples.notes import Tally
from karat.stats import detectable, needed

MAX_CHARACTERS = 20_000_000
"""The size of a corpus up to which near copies are searched; above, only equal texts."""
_SHOWN, _ID_SHOWN = 60, 20
_MAX_NAMES = 10_000
_SATURATED = 0.98
_SMALL = 0.02
_MAX_SPREAD = 0.5


def check_queries(tests: TestSet) -> Iterator[Problem]:
    """Empty gold, repeated queries, conflicting gold, repeated gold items."""
    yield from _empty_gold(tests)
    yield from _same_queries(tests)
    yield from _same_items(tests)


def _empty_gold(tests: TestSet) -> list[Problem]:
    tally = Tally(EXAMPLES)
    for query, own in zip(tests.samples.ids, tests.by_query, strict=True):
        if not any(gold.grade > 0 for gold in own):
            tally.add(f"{sanitize(query, _SHOWN)}{': every grade is 0 or less' if own else ''}")
    if tally.count == len(tests):
        return problems(tally, "no gold", "No query has relevant gold: no metric is defined.", serious=True)
    text = (
        f"{plural(tally.count, 'query has', 'queries have')} no relevant gold: undefined and excluded from the means."
    )
    return problems(tally, "empty gold", text, serious=False)


def _same_queries(tests: TestSet) -> list[Problem]:
    """Queries that are equal except for case, white space and punctuation; with the same gold or not."""
    queries = tests.samples.query
    if queries is None:
        return []
    fold = folder(ALL)
    texts = [fold(text or "") for text in queries]
    order = sorted((row for row in range(len(texts)) if texts[row]), key=lambda row: (texts[row], row))
    same, different = Tally(EXAMPLES), Tally(EXAMPLES)
    groups = [list(rows) for _, rows in groupby(order, key=texts.__getitem__)]
    for rows in sorted(rows for rows in groups if len(rows) > 1):
        names = ", ".join(sanitize(tests.samples.ids[row], _ID_SHOWN) for row in rows[:4])
        gold = {frozenset((gold.key, gold.grade) for gold in tests.by_query[row]) for row in rows}
        (same if len(gold) == 1 else different).add(f'{names}: "{sanitize(queries[rows[0]] or "", _SHOWN)}"')
    conflicts = plural(different.count, "query occurs", "queries occur")
    text = f"{conflicts} more than once with different gold: no retriever can satisfy all of it."
    found = problems(different, "conflicting gold", text, serious=True)
    text = (
        f"{plural(same.count, 'query occurs', 'queries occur')} more than once with the same gold: counted each time."
    )
    return found + problems(same, "duplicate queries", text, serious=False)


def _same_items(tests: TestSet) -> list[Problem]:
    """Items that occur twice in the gold of a query."""
    repeated, graded = Tally(EXAMPLES), Tally(EXAMPLES)
    for own in tests.by_query:
        by_key: dict[tuple[object, ...], list[GoldRow]] = {}
        for gold in own:
            by_key.setdefault(gold.key, []).append(gold)
        for first, *others in by_key.values():
            where = f"{sanitize(first.query_id, _ID_SHOWN)}: {sanitize(first.name, _SHOWN)}"
            if any(gold.grade != first.grade for gold in others):
                graded.add(f"{where}, grades {', '.join(f'{gold.grade:g}' for gold in (first, *others))}")
            elif others:
                repeated.add(where)
    items = plural(graded.count, "gold item occurs", "gold items occur")
    text = f"{items} twice in a query with different grades: the highest counts."
    found = problems(graded, "conflicting gold", text, serious=True)
    text = f"{plural(repeated.count, 'gold item occurs', 'gold items occur')} twice in a query: counted once."
    return found + problems(repeated, "repeated gold", text, serious=False)


class Documents:
    """A corpus in which gold is looked up."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    @cached_property
    def folded(self) -> dict[str, str]:
        """The documents with normalized white space."""
        return {name: fold_space(self.corpus[name].text) for name in self.corpus.names()}

    @cached_property
    def everything(self) -> str:
        """All documents in one text."""
        return "\n".join(self.folded.values())

    def lacks(self, gold: GoldRow) -> str | None:
        """The reason why a gold item is not in the corpus; None if it is."""
        given = gold.doc if gold.doc is not None else gold.id
        if given is None:
            return None if fold_space(gold.text or "") in self.everything else "its text is not in any document"
        name = self.corpus.name(given)
        if name not in self.corpus:
            close = nearest_name(given, self.corpus.names()[:_MAX_NAMES])
            kind = "document" if gold.doc is not None else "id"
            more = f', the nearest is "{sanitize(close, _SHOWN)}"' if close else ""
            return f'no {kind} "{sanitize(given, _SHOWN)}"{more}'
        text = self.corpus[name].text
        if gold.text and fold_space(gold.text) not in fold_space(text):
            return f'its text is not in "{sanitize(name, _SHOWN)}"'
        if gold.end is not None and gold.end > len(text):
            return f'it ends at character {gold.end:,}, but "{sanitize(name, _SHOWN)}" has {len(text):,}'
        return None


def check_corpus(tests: TestSet, documents: Documents) -> list[Problem]:
    """Relevant gold items that are not in the corpus."""
    tally = Tally(EXAMPLES)
    different = {(gold.row, gold.key): gold for gold in reversed(tests.gold)}
    for gold in reversed(different.values()):
        if gold.grade > 0 and (why := documents.lacks(gold)) is not None:
            tally.add(f"{sanitize(gold.query_id, _ID_SHOWN)}: {sanitize(gold.name, _SHOWN)}: {why}")
    text = f"{plural(tally.count, 'gold item is', 'gold items are')} not in the corpus: no retriever can find them."
    return problems(tally, "not in the corpus", text, serious=True)


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
            pair = f"{sanitize(gold.name, _SHOWN)} and {sanitize(copy, _SHOWN)}"
            tally.add(f"{sanitize(gold.query_id, _ID_SHOWN)}: {pair}, {how}")
    items = plural(tally.count, "gold item has a near copy that is", "gold items have near copies that are")
    text = f"{items} not gold: put both in one group, so that either counts."
    return problems(tally, "no alternatives", text, serious=False)


def _retrieved_copies(tests: TestSet) -> Iterator[_Copy]:
    """Near copies among the retrieved items of the same query."""
    candidates = []
    for own, retrieved in zip(tests.by_query, tests.retrieved, strict=True):
        ids, texts = {gold.id for gold in own} - {None}, {gold.text for gold in own}
        known = {name: text for name, text in retrieved if name is not None}
        by_id = bool(ids and known)
        others = [(name, text) for name, text in retrieved if (name not in ids if by_id else text not in texts)]
        names, other_texts = [name or text for name, text in others], [text for _, text in others]
        for gold in own:
            text = gold.text or known.get(gold.id or "")
            if gold.grade > 0 and gold.group is None and text:
                candidates.append(_Candidates(gold, text, names, other_texts))
    return _near_copies(candidates)


def _copies_in_corpus(tests: TestSet, documents: Documents, max_characters: int) -> Iterator[_Copy]:
    """Near copies of gold documents, and documents that contain a gold quote of another document."""
    corpus = documents.corpus
    sketches = Sketches(documents.folded, near=len(documents.everything) <= max_characters)
    gold_names = [{corpus.name(gold.id or gold.doc or "") for gold in own} for own in tests.by_query]
    candidates = []
    for gold in tests.gold:
        name = corpus.name(gold.id or gold.doc or "")
        if gold.grade <= 0 or gold.group is not None or gold.start is not None or name not in sketches.texts:
            continue
        if gold.id is None and gold.text:
            quote = fold_space(gold.text)
            holders = [name for name, text in documents.folded.items() if quote in text]
            yield from (_Copy(gold, name, 1.0) for name in holders if name not in gold_names[gold.row])
            continue
        text = sketches.texts[name]
        copies = [copy for copy in sketches.similar(text) if copy not in gold_names[gold.row]]
        candidates.append(_Candidates(gold, text, copies, [sketches.texts[copy] for copy in copies]))
    yield from _near_copies(candidates)


class Strength(NamedTuple):
    """The statistical power of a test set: the minimum detectable difference, and the queries needed for 0.02."""

    queries: int
    spread: float
    """The standard deviation from which it was computed."""
    of: str
    """The scores that have this standard deviation."""
    detectable: float
    needed: int

    def text(self) -> str:
        """The power in one sentence."""
        return (
            f"{self.queries:,} queries can detect a difference of {self.detectable:.3f} (80 % power); smaller "
            f"differences may be missed. Detecting {_SMALL:g} needs {self.needed:,} queries. "
            f"Estimated from {self.of}, {self.spread:.2f}."
        )


def strength(tests: TestSet, runs: Sequence[Run]) -> Strength | None:
    """The power of a test set, estimated from runs, from the retrieved items, or for the largest possible spread."""
    defined = sum(any(gold.grade > 0 for gold in own) for own in tests.by_query)
    if defined < 2:
        return None
    spread, of = _spread(tests, runs)
    return Strength(defined, spread, of, detectable(spread, defined), needed(spread, _SMALL))


def _spread(tests: TestSet, runs: Sequence[Run]) -> tuple[float, str]:
    if len(runs) > 1:
        name = _metric([name for name in runs[0].mean if name in runs[1].mean])
        spread = None if name is None else _deviation(_differences(runs[0], runs[1], name))
        if spread is not None:
            return spread, f"the standard deviation of the differences in {name} between the first two runs"
    one = runs[0] if runs else _evaluated(tests)
    name = None if one is None else _metric(list(one.mean))
    spread = None if one is None or name is None else _deviation(one.scores[name])
    if spread is None:
        return _MAX_SPREAD, "the largest possible standard deviation of scores"
    return spread, f"the standard deviation of {name}"


def _metric(names: Sequence[str]) -> str | None:
    """The last recall, which has the largest cutoff; else the first metric."""
    recalls = [name for name in names if name.startswith("recall@")]
    return recalls[-1] if recalls else next(iter(names), None)


def _deviation(values: Floats) -> float | None:
    """The standard deviation of the defined values; None if it is 0 or undefined."""
    defined = values[~np.isnan(values)]
    return float(defined.std(ddof=1)) if len(defined) > 1 and defined.std() > 0 else None


def _differences(a: Run, b: Run, name: str) -> Floats:
    """The differences of a metric over the shared queries."""
    others = set(b.ids)
    ids = [query for query in a.ids if query in others]
    return b.scores[name][rows_of(b, ids)] - a.scores[name][rows_of(a, ids)]


def _evaluated(tests: TestSet) -> Run | None:
    """The retrieved items, evaluated; None if there are none that can be compared with the gold."""
    run = evaluate(tests.samples, "recall@5") if tests.comparable else None
    return run if run is not None and run.all_hits.depth.any() else None


def check_strength(runs: Sequence[Run], power: Strength | None) -> Iterator[Problem]:
    """Saturated metrics, and too few queries to detect a difference of 0.02."""
    names = [name for name in runs[0].mean if all(run.mean.get(name, 0) > _SATURATED for run in runs)] if runs else []
    if names:
        lowest = [f"{name}: {min(run.mean[name] for run in runs):.3f} at the lowest" for name in names]
        which = "every metric" if len(names) == len(runs[0].mean) else f"{len(names)} of {len(runs[0].mean)} metrics"
        text = f"Every run scores above {_SATURATED} in {which}: they no longer distinguish runs. Add harder queries."
        yield Problem("saturated", False, len(names), text, lowest)
    if power is not None and power.detectable > _SMALL:
        yield Problem("small", False, power.queries, power.text(), [])
