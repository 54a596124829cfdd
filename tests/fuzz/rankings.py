"""Hostile rankings and gold: a sentence, or the scores of a slow twin. Random data sets: those of pytrec_eval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from math import inf, isnan, log2, nan
from numbers import Integral, Real
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import karat
from fuzz.frame import Fault, fuzzer

METRICS = "recall@1,3 rr ndcg@3 ndcg"
NAMES = ("recall@1", "recall@3", "rr", "ndcg@3", "ndcg")
JUDGES = ("ids", "exact", "text", "contains", "fuzzy", "spans")
_GOOD = (
    "a",
    "b",
    "c",
    "d-1",
    "é",
    "e\u0301",
    "1",
    "2",
    "007",
    "",
    " ",
    "the cat",
    "The  cat.",
    "\ud800",
    "\0",
    "x | y",
)
_WHOLE = (1, 2, -3, 10**30, 1.0, 2.0, np.int64(1), np.int8(2), np.float32(2), np.str_("a"), Fraction(2, 1))
_HOSTILE = (
    None, True, False, np.True_, nan, inf, 1.5, np.float64(nan), 1j, b"a", (), ("a",), ("a", 1.0), ["a"], {"id": "a"},
    {"text": "a"}, {"id": None}, {"id": 1.5}, {"id": "a", "score": "x"}, {"doc": "d", "start": 3, "end": 1},
    object(), 10**5000, Fraction(10**400), Decimal(1), set(), range(2), np.array(["a"]), len,
)  # fmt: skip
_NUMBERS = (
    0,
    1,
    2,
    3,
    0.5,
    -1.0,
    1e-9,
    0.1 + 0.2,
    0.3,
    1e39,
    1e308,
    inf,
    -inf,
    np.float32(0.3),
    np.int64(2),
    Decimal("0.5"),
)
_NOT_NUMBERS = (None, True, np.False_, nan, "12", "x", b"1", 1j, 10**400, [1.0], {}, object())


def _key(item: object) -> str | None:
    """The id of an item; None if it can be none."""
    if isinstance(item, str):
        return str.__str__(item)
    if isinstance(item, bool | np.bool_) or not isinstance(item, Real):
        return None
    if isinstance(item, Integral):
        return str(int(item)) if abs(int(item)) < 10**4000 else None
    try:
        return str(int(float(item))) if float(item).is_integer() else None
    except OverflowError:
        return None


def _number(value: Any) -> float | None:
    if isinstance(value, bool | np.bool_ | complex | np.complexfloating) or not isinstance(value, Real | Decimal):
        return None
    try:
        return None if isnan(float(value)) else float(value)
    except OverflowError:
        return None


def _items(random: Random, hostile: float) -> list[Any]:
    items = random.choices(_GOOD, k=random.randrange(6))
    if random.random() < 0.3:
        items += random.choices(_WHOLE, k=random.randrange(3))
        random.shuffle(items)
    if random.random() < hostile:
        items.insert(random.randrange(len(items) + 1), random.choice(_HOSTILE))
    return items


def _scores(random: Random, items: list[Any], hostile: float, good: tuple[Any, ...] = _NUMBERS) -> dict[Any, Any]:
    numbers = (*good, *_NOT_NUMBERS) if random.random() < hostile else good
    scores: dict[Any, Any] = {}
    for item in items:
        with suppress(TypeError):  # not hashable, or not comparable with another item of the same hash
            scores[item] = random.choice(numbers)
    return scores


def _ranked(given: Any) -> list[str] | None:
    """The ids of a ranking, best first; None if karat must refuse it."""
    keys = [key for item in given if (key := _key(item)) is not None]
    if len(keys) < len(given):
        return None
    if not isinstance(given, Mapping):
        return keys
    scores = [number for score in given.values() if (number := _number(score)) is not None]
    if len(scores) < len(keys):
        return None
    with np.errstate(over="ignore"):
        single = [float(np.float32(score)) for score in scores]
    by_id = sorted(zip(keys, single, strict=True), reverse=True)
    return [key for key, _ in sorted(by_id, key=lambda pair: -pair[1])]


def _oracle(ranking: list[str], gold: dict[str, float]) -> list[float]:
    """The metrics of one query, from their definitions."""
    relevant = {key for key, grade in gold.items() if grade > 0}
    if not relevant:
        return [nan] * len(NAMES)
    seen: set[str] = set()
    gains = []
    for item in ranking:
        gains.append(max(gold.get(item, 0.0), 0.0) if item not in seen else 0.0)
        seen.add(item)
    first = next((rank for rank, gain in enumerate(gains, 1) if gain > 0), inf)
    best = sorted((grade for grade in gold.values() if grade > 0), reverse=True)

    def dcg(values: list[float], k: int) -> float:
        return sum(value / log2(rank + 1) for rank, value in enumerate(values[:k], 1))

    recall = [len(relevant & set(ranking[:k])) / len(relevant) for k in (1, 3)]
    return [*recall, 1 / first, *(dcg(gains, k) / dcg(best, k) for k in (3, 10**9))]


def _refused_or(call: Callable[[], karat.Run]) -> karat.Run | None:
    try:
        return call()
    except karat.KaratError as error:
        if not error.problem or "Traceback" in str(error):
            raise Fault(f"no sentence: {error!r}") from error
        return None


@fuzzer(
    "rankings",
    "Any ranking and any gold give a sentence or a result with every judge; with ids, the scores of a slow twin.",
    short=250,
    long=40_000,
)
def rankings(random: Random, folder: Path) -> str:
    hostile = random.choice((0.0, 0.0, 0.15, 0.6))
    layout = random.choice(("lists", "dicts"))
    queries = random.randrange(1, 5)
    retrieved: list[Any] = [_items(random, hostile) for _ in range(queries)]
    if layout == "dicts":
        retrieved = [_scores(random, items, hostile) for items in retrieved]
    gold: list[Any] = [_items(random, hostile / 3) for _ in range(queries)]
    if random.random() < 0.3:
        gold = [_scores(random, own, 0, (0, 1, 2, 0.5, -1)) for own in gold]
    judge = random.choice(JUDGES)
    run = _refused_or(lambda: karat.evaluate(retrieved=retrieved, gold=gold, metrics=METRICS, judge=judge))
    if run is not None and run.stored_items is None:
        raise Fault("no items are stored")
    if judge != "ids":
        return "refused" if run is None else "judged"
    expected = [_ranked(own) for own in retrieved]
    wanted = [_graded(own) for own in gold]
    if None in expected or None in wanted or _same_id_twice(retrieved, wanted):
        return _must_be_refused(run, retrieved, gold)
    if run is None:
        raise Fault(f"refused, though every item is an id: {retrieved!r} {gold!r}")
    for row, (ranking, own) in enumerate(zip(expected, wanted, strict=True)):
        assert ranking is not None
        assert own is not None
        found = [run.scores[name][row] for name in NAMES]
        if not np.allclose(found, _oracle(ranking, own), rtol=0, atol=1e-9, equal_nan=True):
            raise Fault(f"{found} instead of {_oracle(ranking, own)}: {retrieved[row]!r} {gold[row]!r}")
    return "equal"


def _same_id_twice(retrieved: list[Any], wanted: list[Any]) -> bool:
    """True if a dict has a gold item twice, as 1 and as "1"."""
    pairs = [(own, gold) for own, gold in zip(retrieved, wanted, strict=True) if isinstance(own, Mapping)]
    return any(sum(_key(item) == key for item in own) > 1 for own, gold in pairs for key in gold)


def _graded(gold: Any) -> dict[str, float] | None:
    """The grade of each gold item; None if karat must refuse it."""
    grades = gold.values() if isinstance(gold, Mapping) else [1.0] * len(gold)
    found: dict[str, float] = {}
    for item, grade in zip(gold, grades, strict=True):
        key = _key(item)
        if key is None:
            return None
        found[key] = max(found.get(key, -inf), grade)
    return found


def _must_be_refused(run: karat.Run | None, retrieved: list[Any], gold: list[Any]) -> str:
    """Records and pairs are items, too: whether they are well formed is not for the twin to say."""
    for item in (item for own in (*retrieved, *gold) for item in own):
        if isinstance(item, Mapping | tuple):
            return "refused" if run is None else "records"
    if run is not None:
        raise Fault(f"accepted: {retrieved!r} {gold!r}")
    return "refused"


MEASURES = {
    "recall@5": "recall_5", "precision@5": "P_5", "ndcg@5": "ndcg_cut_5",
    "ndcg": "ndcg", "ap": "map", "rr": "recip_rank",
}  # fmt: skip


@fuzzer("pytrec_eval", "Random data sets have the scores of pytrec_eval, query by query.", short=120, long=20_000)
def against_pytrec_eval(random: Random, folder: Path) -> str:
    import pytrec_eval

    docs = [random.choice(("d{}", "{}", "文{}", "{:04d}")).format(number) for number in range(random.randrange(2, 60))]
    values = random.choice(
        ([0.0, 0.5, 1.0], [random.uniform(-1, 1) for _ in range(50)], [1.0, 1.0 + 1e-9, 1e38, -1e38])
    )
    retrieved, gold = {}, {}
    for query in map(str, range(random.randrange(1, 8))):
        some = random.sample(docs, random.randrange(1, len(docs) + 1))
        retrieved[query] = {doc: float(random.choice(values)) for doc in some}
        judged = random.sample(docs, random.randrange(1, min(len(docs), 9) + 1))
        gold[query] = {doc: random.choice((0, 1, 1, 2, 3)) for doc in judged} | {judged[0]: 1}
    theirs = pytrec_eval.RelevanceEvaluator(gold, set(MEASURES.values())).evaluate(retrieved)
    run = karat.evaluate(retrieved=retrieved, gold=gold, metrics=list(MEASURES), judge="ids")
    for row, query in enumerate(run.ids):
        for ours, name in MEASURES.items():
            if abs(run.scores[ours][row] - theirs[query][name]) > 1e-6:
                raise Fault(
                    f"{ours} {run.scores[ours][row]}, {name} {theirs[query][name]}: {retrieved[query]} {gold[query]}"
                )
    return "equal"
