"""Queries that stand twice, and gold that contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from karat.judges.folding import ALL, folder
from karat.linting.problem import Found, Problem
from karat.linting.testset import Entry, TestSet
from karat.tables import clean, many

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
            found.add(f"{clean(query, _SHOWN)}{': every grade is 0 or less' if own else ''}")
    if found.count == len(tests):
        yield from found.problem("no gold", "No query has relevant gold: nothing can be measured.", serious=True)
        return
    queries = many(found.count, "query has", "queries have")
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
        names = ", ".join(clean(tests.samples.ids[row], 20) for row in rows[:4])
        asked = f'{names}: "{clean(tests.samples.query[rows[0]] or "", _SHOWN)}"'
        wanted = {frozenset((entry.key, entry.grade) for entry in gold[row]) for row in rows}
        (same if len(wanted) == 1 else different).add(asked)
    queries = many(different.count, "query is", "queries are")
    yield from different.problem(
        "conflicting gold",
        f"{queries} asked more than once, with different gold: no retriever can be right.",
        serious=True,
    )
    queries = many(same.count, "query is", "queries are")
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
            where = f"{clean(entries[0].query_id, 20)}: {clean(entries[0].name, _SHOWN)}"
            grades = [entry.grade for entry in entries]
            if len(set(grades)) > 1:
                graded.add(f"{where}, grades {', '.join(f'{grade:g}' for grade in grades)}")
            elif len(grades) > 1:
                again.add(where)
    items = many(graded.count, "gold item stands", "gold items stand")
    yield from graded.problem(
        "conflicting gold", f"{items} twice in a query, with different grades: the best counts.", serious=True
    )
    items = many(again.count, "gold item stands", "gold items stand")
    yield from again.problem("repeated gold", f"{items} twice in a query: it counts once.", serious=False)
