"""Labels of people from the file of `karat label`, as labels of the ranks of a run.

The file has the key of each item. The ranks at which the run has that item, or a copy of its text, get its label:
yes if the grade counts as relevant in the metric. Several people count as one, as in the gold from their labels.
Answers without a grade are no labels, nor are those that a person gave after seeing a model's opinion: an answer that
was changed then counts as it was before. The opinions in the file are not used, as the run has its judgements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike

import numpy as np

from karat._internal.arrays import is_relevant
from karat._internal.display import valid_utf8
from karat._internal.label_lines import by_item, decide, read_labels
from karat.analysis.calibrate.human_labels import Labels, read_table
from karat.errors import BadArgument, InputError
from karat.metrics.names import parse_stored
from karat.run import Run
from karat.run.item_keys import folded_text, item_key, item_name


def read_people(path: str | PathLike[str], run: Run, metrics: Sequence[str]) -> Labels:
    """The labels of the ranks of a run; items that it does not have are labels of rank 0, which match nothing."""
    standing = read_labels(path).standing()
    grades = {pair: decide(labels) for pair, labels in by_item(standing.unswayed()).items()}
    rel = _threshold(metrics)
    labelled: dict[str, dict[str, float]] = {}
    for (own, item), grade in grades.items():
        if grade is not None:
            labelled.setdefault(own, {})[item] = grade
    query, rank, label = [], [], []
    for own, place, grade in _ranks(run, labelled):
        query.append(own)
        rank.append(place)
        label.append(int(is_relevant(np.array(grade), rel)))
    if not query:
        if any(one.grade is not None for one in standing.latest.values()):
            problem = f"{path} has no grades that people gave without seeing a model's opinion: it cannot calibrate"
            raise InputError(problem, hint="karat label, without --show-model")
        raise InputError(f"{path} has no grades yet: it cannot calibrate a judge", hint="karat label")
    found = read_table({"query_id": query, "rank": rank, "label": label}, str(path), metrics)
    names = {"query": "query", "rank": "item", "value": "grade"}
    return found._replace(columns=names, blank=sum(grade is None for grade in grades.values()))


_NOWHERE = 2**31
"""A rank that no run has."""


def _threshold(metrics: Sequence[str]) -> float | None:
    """The least grade that counts as relevant, which must be the same for all metrics."""
    rels = {parse_stored(name).rel for name in metrics}
    if len(rels) > 1:
        problem = "the metrics of the run count different grades as relevant: choose one"
        raise BadArgument(problem, got=", ".join(metrics), hint=f'metric="{metrics[0]}", or --metric')
    return next(iter(rels), None)


def _ranks(run: Run, labelled: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, int, float]]:
    """The query, the rank and the grade of every labelled rank; a label of an item that the run lacks has no rank."""
    rows = {query: row for ids in (valid_utf8(run.ids), run.ids) for row, query in enumerate(ids)}
    for query, grades in labelled.items():
        unused = set(grades)
        for rank, keys in enumerate(_keys(run, rows[query]) if query in rows else (), 1):
            key = next((one for one in keys if one in grades), None)
            if key is not None:
                unused.discard(key)
                yield query, rank, grades[key]
        yield from ((query, _NOWHERE, grades[key]) for key in unused)


def _keys(run: Run, row: int) -> Iterator[list[str]]:
    """The keys under which the item at each rank may be labelled: its own, and those of copies of its text."""
    stored = run.stored_items
    if stored is None:
        hint = "karat eval SAMPLES -o run.parquet, with this version"
        raise BadArgument("the run stores no items, so the labels of karat label cannot be matched to it", hint=hint)
    items = stored.items(row).retrieved
    names = [item_name((one.id, one.text, one.doc, one.start, one.end), one.length) for one in items]
    texts = [folded_text(one.text, one.length) or name for one, name in zip(items, names, strict=True)]
    copies: dict[str, dict[str, None]] = {}
    for name, text in zip(names, texts, strict=True):
        copies.setdefault(text, {})[name] = None
    for one, name, text in zip(items, names, texts, strict=True):
        yield [item_key(own) for own in dict.fromkeys((f"{name}@{one.rank}", name, *copies[text]))]
