"""Checks of queries and gold: unknown fields, repeated and similar queries, conflicting, empty and repeated gold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, groupby
from string import punctuation

from karat._internal.display import cut_label, cut_name, plural, sanitize
from karat.analysis.diagnose.similar import NEAR_COPY
from karat.analysis.lint.test_set import EXAMPLES, GoldRow, Problem, TestSet, problems
from karat.errors import nearest as nearest_name
from karat.judges.fuzzy import similarities
from karat.judges.text import ALL, folder
from karat.samples.answerable import ANSWERABLE
from karat.samples.dialects import SIDE_NAMES
from karat.samples.notes import Tally

_SHOWN, _ID_SHOWN = 60, 20
_COMMON = 30
"""Three words that more queries have are a phrase, such as "what is the"."""
_MARKS = punctuation + "“”‘’«»…–—"
_MISSPELT = 0.7


def check_queries(tests: TestSet) -> Iterator[Problem]:
    """Empty gold, repeated and similar queries, conflicting gold, repeated gold items."""
    yield from _empty_gold(tests)
    yield from _same_queries(tests)
    yield from _similar_queries(tests)
    yield from _same_items(tests)


def check_fields(tests: TestSet) -> Iterator[Problem]:
    """Fields that are not used: probably misspelt, or not known."""
    samples, misspelt, unused = tests.samples, Tally(EXAMPLES), Tally(EXAMPLES)
    notes = [note for note in samples.reading.notes if note.kind in {"unknown_field", "unused_field"}]
    for note in notes:
        d = note.details
        where = f'"{cut_name(d["field"], _ID_SHOWN)}" in {plural(note.count, d["in"], d["in"] + "s")}'
        if note.kind == "unknown_field":
            misspelt.add(f'{where}: did you mean "{d["meant"]}"?')
        else:
            unused.add(where)
    for name in samples.meta:
        close = nearest_name(name, SIDE_NAMES["retrieved"], cutoff=_MISSPELT)
        if close and not tests.has_results:
            misspelt.add(f'"{cut_name(name, _ID_SHOWN)}" in the samples: did you mean "{close}"?')
    fields = plural(misspelt.count, "field has a name", "fields have names")
    text = f"{fields} that karat does not know, like one that it does: not used."
    yield from problems(misspelt, "misspelt fields", text, serious=False)
    text = f"{plural(unused.count, 'field of items is', 'fields of items are')} not used."
    yield from problems(unused, "unused fields", text, serious=False)


def _empty_gold(tests: TestSet) -> list[Problem]:
    tally = Tally(EXAMPLES)
    marks = tests.samples.meta.get(ANSWERABLE, [None] * len(tests))
    for query, own, mark in zip(tests.samples.ids, tests.by_query, marks, strict=True):
        if mark is not False and not any(gold.grade > 0 for gold in own):
            tally.add(f"{cut_name(query, _SHOWN)}{': every grade is 0 or less' if own else ''}")
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
        names = ", ".join(cut_name(tests.samples.ids[row], _ID_SHOWN) for row in rows[:4])
        gold = {frozenset((gold.key, gold.grade) for gold in tests.by_query[row]) for row in rows}
        (same if len(gold) == 1 else different).add(f'{names}: "{sanitize(queries[rows[0]] or "", _SHOWN)}"')
    conflicts = plural(different.count, "query occurs", "queries occur")
    text = f"{conflicts} more than once with different gold: no retriever can satisfy all of it."
    found = problems(different, "conflicting gold", text, serious=True)
    text = (
        f"{plural(same.count, 'query occurs', 'queries occur')} more than once with the same gold: counted each time."
    )
    return found + problems(same, "duplicate queries", text, serious=False)


def _similar_queries(tests: TestSet) -> list[Problem]:
    """Queries that are nearly equal, with the same names and numbers, but have different gold."""
    queries = tests.samples.query
    if queries is None:
        return []
    fold = folder(ALL)
    texts = [fold(text or "") for text in queries]
    pairs = [(a, b) for a, b in _candidates(texts) if texts[a] != texts[b] and _names(queries[a]) == _names(queries[b])]
    left, right = [texts[a] for a, _ in pairs], [texts[b] for _, b in pairs]
    alike = similarities(NEAR_COPY.scorer, left, right, NEAR_COPY.near) if pairs else ()
    tally = Tally(EXAMPLES)
    for (a, b), similarity in zip(pairs, alike, strict=True):
        gold = [{item.key for item in tests.by_query[row] if item.grade > 0} for row in (a, b)]
        if similarity >= NEAR_COPY.near and gold[0] != gold[1]:
            ids = ", ".join(cut_name(tests.samples.ids[row], _ID_SHOWN) for row in (a, b))
            tally.add(f'{ids}: "{sanitize(queries[a] or "", _SHOWN)}" and "{sanitize(queries[b] or "", _SHOWN)}"')
    count = plural(tally.count, "pair of queries is", "pairs of queries are")
    text = f"{count} nearly equal but with different gold: if they mean the same, the gold of one is incomplete."
    return problems(tally, "similar queries", text, serious=False)


def _candidates(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of texts that share three consecutive words that few others have."""
    rows: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        words = text.split()
        for trigram in {" ".join(words[i : i + 3]) for i in range(len(words) - 2)}:
            rows.setdefault(trigram, []).append(row)
    pairs = {pair for own in rows.values() if len(own) <= _COMMON for pair in combinations(own, 2)}
    return sorted(pairs)


def _names(query: str | None) -> set[str]:
    """The words with capital letters or digits, except for the first: queries about other things differ in these."""
    words = [word.strip(_MARKS) for word in (query or "").split()[1:]]
    return {word for word in words if word != word.lower() or any(map(str.isdigit, word))}


def _same_items(tests: TestSet) -> list[Problem]:
    """Items that occur twice in the gold of a query."""
    repeated, graded = Tally(EXAMPLES), Tally(EXAMPLES)
    for own in tests.by_query:
        by_key: dict[tuple[object, ...], list[GoldRow]] = {}
        for gold in own:
            by_key.setdefault(gold.key, []).append(gold)
        for first, *others in (rows for rows in by_key.values() if len(rows) > 1):
            where = f"{cut_name(first.query_id, _ID_SHOWN)}: {cut_label(first.name, _SHOWN)}"
            if any(gold.grade != first.grade for gold in others):
                graded.add(f"{where}, grades {', '.join(f'{gold.grade:g}' for gold in (first, *others))}")
            else:
                repeated.add(where)
    items = plural(graded.count, "gold item occurs", "gold items occur")
    text = f"{items} twice in a query with different grades: the highest counts."
    found = problems(graded, "conflicting gold", text, serious=True)
    text = f"{plural(repeated.count, 'gold item occurs', 'gold items occur')} twice in a query: counted once."
    return found + problems(repeated, "repeated gold", text, serious=False)
