"""The work of a pool, and the estimate from its labels: computed outside the server process, with NumPy and Polars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import isnan
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from karat._internal.arrays import Floats
from karat._internal.label_lines import decide
from karat.errors import BadArgument
from karat.gold.agreement_of_labels import agreement_of_labels
from karat.gold.choice import Design, design
from karat.gold.label_estimate import DifferenceEstimate, estimates
from karat.gold.labels import SETTLED, Label
from karat.gold.pool import Pool
from karat.gold.pool_file import read_pool
from karat.web.label.label_work import Chosen, Labelled, Work, WorkItem, WorkQuery

Opinions = Mapping[tuple[str, str], float]
"""The grade that a model gave, by the id of the query and the key of the item."""


class Opinion(msgspec.Struct, frozen=True):
    """A line of the file of opinions."""

    query: str
    item: str
    model: float


def opinions_path(gold: Path) -> Path:
    """The path of the model's opinions: `gold.opinions.jsonl` for `gold.jsonl`."""
    return gold.with_name(f"{gold.stem}.opinions.jsonl")


def read_opinions(path: Path) -> dict[tuple[str, str], float]:
    """The opinions of a file; none if there is no file."""
    if not path.exists():
        return {}
    try:
        lines = [msgspec.json.decode(line, type=Opinion) for line in path.read_bytes().splitlines() if line.strip()]
    except msgspec.MsgspecError as error:
        hint = f"delete {path.name}: the answers of the model are cached"
        raise BadArgument(f"{path} is no file of opinions: {error}", hint=hint) from error
    return {(line.query, line.item): line.model for line in lines}


def work_of(pool: Pool, opinions: Opinions, metric: str | None = None, highest: float = 3.0) -> Work:
    """The work: the unjudged items, in the order for a metric if there is one."""
    queries: list[WorkQuery] = []
    places: dict[int, tuple[int, int]] = {}
    pair = 0
    for asked in pool.queries:
        items: list[WorkItem] = []
        for item in asked.items:
            if item.judged is None:
                places[pair] = (len(queries), len(items))
                model = opinions.get((asked.id, item.key), item.model)
                items.append(WorkItem(item.key, pair, item.text, item.id, item.doc, item.length, model))
            pair += 1
        if items:
            queries.append(WorkQuery(asked.id, asked.text, tuple(items)))
    order: list[Chosen] = []
    order_id = ""
    if metric is not None:
        made = design_of(pool, opinions, metric, highest)
        chance, order_id = made.probability, made.order_id
        order = [Chosen(*places[one], float(chance[one])) for one in made.order().tolist()]
    return Work(tuple(queries), digest(pool), metric, tuple(order), order_id, pool.judged)


def digest(pool: Pool) -> str:
    """A digest of the queries and items of a pool."""
    found = blake2b(digest_size=16)
    for query in pool.queries:
        found.update(repr((query.id, [item.key for item in query.items])).encode())
    return found.hexdigest()


def design_of(pool: Pool, opinions: Opinions, metric: str, highest: float = 3.0) -> Design:
    """The design of the labels for a metric."""
    if len(pool.runs) < 2:
        hint = "karat pool a.parquet b.parquet -o pool.parquet"
        raise BadArgument("--for orders the work by how runs differ: the pool must have two or more", hint=hint)
    pairs = [(query.id, item) for query in pool.queries for item in query.items]
    judged = np.array([np.nan if item.judged is None else item.judged for _, item in pairs], float)
    opinion = np.array([_opinion(opinions.get((query, item.key), item.model)) for query, item in pairs], float)
    number = np.repeat(np.arange(len(pool)), [len(query.items) for query in pool.queries])
    ranks = pool.ranks.T
    return design(
        metric, *ranks, query=number, queries=len(pool), opinion=opinion, known=judged, highest=highest
    )  # fmt: skip


def _opinion(given: float | None) -> float:
    return np.nan if given is None else given


@lru_cache(maxsize=2)
def opened_design(pool: str, opinions: str, metric: str, highest: float) -> tuple[Design, tuple[str, ...]]:
    """The design of the files of a server, and the names of its runs; both are read once."""
    found = read_pool(pool)
    return design_of(found, read_opinions(Path(opinions)), metric, highest), tuple(found.runs)


def estimated(made: Design, given: Labelled) -> tuple[DifferenceEstimate, ...]:
    """The difference of each run from the first, by the labels so far.

    Labels that were drawn are a sample, and those from before the first of them are known. Items that somebody chose
    later count when the order comes to them: only what was not drawn can be chosen, so they are no facts like others.
    """
    grades, drawn = _decided(given)
    before = {*given.before}
    chosen = [one for one, grade in grades.items() if one not in drawn and grade is not None and one in before]
    if chosen:
        made = made.with_known(np.array(chosen), np.array([grades[one] for one in chosen], float))
    asked = [one for one in grades if one in drawn]
    answers: Floats = np.array([_opinion(grades[one]) for one in asked], float)
    later = {one: _opinion(grade) for one, grade in grades.items() if one not in drawn and one not in {*chosen}}
    early = np.array([*later], np.int64), np.array([*later.values()], float)
    return estimates(made, np.array(asked, np.int64), answers, early=early)


def _decided(given: Labelled) -> tuple[dict[int, float | None], set[int]]:
    """The grade of each item, as in the gold; and the items that were drawn."""
    each: dict[int, dict[str, Label]] = {}
    drawn = set()
    for pair, person, grade, was_drawn in given.labels:
        by = SETTLED if person < 0 else given.people[person]
        each.setdefault(pair, {})[by] = Label("", "", "cannot tell" if grade is None else "grade", grade)
        if was_drawn:
            drawn.add(pair)
    return {pair: decide(own) for pair, own in each.items()}, drawn


def agreement(given: Labelled) -> dict[str, Any]:
    """The agreement of the people: alpha of all, and kappa of each two of them."""
    labels = {
        (str(pair), "", SETTLED if person < 0 else given.people[person]): Label(str(pair), "", grade=grade)
        for pair, person, grade, _ in given.labels
    }
    found = agreement_of_labels(labels)
    counts = Counter(by for (*_, by), label in labels.items() if label.grade is not None)
    return {
        "people": [{"name": name, "labels": counts[name]} for name in given.people],
        "items": found.items, "differ": found.disagreements, "unsettled": found.unsettled,
        "alpha": _or_none(found.alpha),
        "kappas": [
            {"first": one.first, "second": one.second, "items": one.items, "kappa": _or_none(one.kappa)}
            for one in found.pairs
        ],
    }  # fmt: skip


def _or_none(value: float) -> float | None:
    return None if isnan(value) else value


def in_words(found: Sequence[DifferenceEstimate]) -> dict[str, Any]:
    """The progress of the comparison, without a word on who leads: labels missing, and the reason to stop."""
    reasons = {one.stop for one in found}
    weakest = next((one for one in (None, "queries") if one in reasons), "several")
    return {
        "more": max((one.more for one in found), default=0),
        "left": max((one.left for one in found), default=0),
        "stop": next(iter(reasons)) if len(reasons) == 1 else weakest,
    }
