"""Labels of people from the file of `karat label`, as labels of the ranks of a run.

The file has the key of each item. The ranks at which the run has that item, or a copy of its text, get its label: yes
if the grade counts as relevant in the metric. Several people count as one, as in the gold that is made of their labels.
Answers without a grade are no labels; the opinions of a model in the file are not used, as the run has its judgements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from os import PathLike

import numpy as np

from karat._internal.arrays import is_relevant
from karat.analysis.calibrate.human_labels import Labels, read_table
from karat.errors import BadArgument, InputError
from karat.metrics.names import parse_stored
from karat.run import Run
from karat.run.item_keys import folded_text, item_key, item_name
from karat.samples.label_lines import by_item, decide, read_labels


def read_people(path: str | PathLike[str], run: Run, metrics: Sequence[str]) -> Labels:
    """The labels of the ranks of a run; items that it does not have are labels of rank 0, which match nothing."""
    standing = read_labels(path).standing().latest
    grades = {pair: decide(labels) for pair, labels in by_item(standing).items()}
    rel, places = _threshold(metrics), dict(_places(run))
    query, rank, label = [], [], []
    blank = 0
    for (own, item), grade in grades.items():
        blank += grade is None
        if grade is None:
            continue
        for place in places.get((own, item), [_NOWHERE]):
            query.append(own)
            rank.append(place)
            label.append(int(is_relevant(np.array(grade), rel)))
    if not query:
        raise InputError(f"{path} has no grades yet: it cannot calibrate a judge", hint="karat label")
    found = read_table({"query_id": query, "rank": rank, "label": label}, str(path), metrics)
    names = {"query": "query", "rank": "item", "value": "grade"}
    return found._replace(columns=names, blank=blank)


_NOWHERE = 2**31
"""A rank that no run has."""


def _threshold(metrics: Sequence[str]) -> float | None:
    """The least grade that counts as relevant, which must be the same for all metrics."""
    rels = {parse_stored(name).rel for name in metrics}
    if len(rels) > 1:
        problem = "the metrics of the run count different grades as relevant: choose one"
        raise BadArgument(problem, got=", ".join(metrics), hint=f'metric="{metrics[0]}", or --metric')
    return next(iter(rels), None)


def _places(run: Run) -> Iterator[tuple[tuple[str, str], list[int]]]:
    """The ranks of every item of the run, by query and key; those of copies of a text are together."""
    stored = run.stored_items
    if stored is None:
        hint = "karat eval SAMPLES -o run.parquet, with this version"
        raise BadArgument("the run stores no items, so the labels of karat label cannot be matched to it", hint=hint)
    nothing = [None] * int(stored.start[-1])
    columns = [stored.retrieved.get(field, nothing) for field in ("id", "text", "doc", "start", "end", "length")]
    for row, (begin, end) in enumerate(pairwise(stored.start.tolist())):
        ranks: dict[str, list[int]] = {}
        keys: dict[str, set[str]] = {}
        for place in range(begin, end):
            own, text, doc, start, to, length = (column[place] for column in columns)
            name = item_name(own, text, doc, start, to, length)
            copy = folded_text(text, length) or name
            ranks.setdefault(copy, []).append(place - begin + 1)
            keys.setdefault(copy, set()).add(item_key(name))
        for copy, several in keys.items():
            for key in several:
                yield (run.ids[row], key), ranks[copy]
