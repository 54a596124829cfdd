"""Hypothesis strategies: queries with arbitrary matches, and their hits."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from karat.conventions import STANDARD
from karat.hits import Gold, Hits
from karat.hits.aspects import Aspects
from karat.hits.totals import Totals
from support.twins import Case

ASPECTS = ["", "a", "b", "ab", "abc", "cd"]
GRADES = st.sampled_from([-1.0, 0.0, 1.0, 1.0, 2.0, 3.0])


@st.composite
def cases(draw, c=STANDARD, most=6, *, one_to_one=False):
    """One query; unless `one_to_one`, an item may match several gold items and a gold item several items."""
    grades = draw(st.lists(GRADES, max_size=most))
    items = list(range(most + 2))
    ranking = draw(st.lists(st.sampled_from(items), max_size=10))
    if one_to_one:
        satisfies = {item: {item} for item in items if item < len(grades)}
    else:
        some = st.sets(st.sampled_from(range(len(grades))), max_size=3) if grades else st.just(set())
        satisfies = {item: draw(some) for item in items}
    scores = None
    if draw(st.booleans()):
        scores = sorted(draw(st.lists(st.integers(-2, 3), min_size=len(ranking), max_size=len(ranking))), reverse=True)
    cited = draw(st.none() | st.lists(st.integers(0, most), max_size=4))
    aspects = [set(draw(st.sampled_from(ASPECTS))) for _ in grades]
    answerable = draw(st.sampled_from([True, True, False]))
    return Case(ranking, satisfies, grades, c, scores, cited, aspects, answerable=answerable)


def hits_of(queries):
    """The hits of some cases, as a judge would return them."""
    rows = []
    start = [0]
    for number, q in enumerate(queries):
        for rank, item in enumerate(q.ranking, 1):
            again = item in q.ranking[: rank - 1]
            rows += [(number, rank, start[-1] + gold, again) for gold in sorted(q.satisfies.get(item, ()))]
        start.append(start[-1] + len(q.grades))
    size = np.array([len(q.gold_text()) for q in queries], float)
    totals = Totals(np.array([len(q.ranking) for q in queries]), sizes={"gold": size})
    found = np.array([len(q.cited_gold()) for q in queries], float)
    cited = np.array([np.nan if q.cited is None else len(set(q.cited)) for q in queries], float)
    totals = totals.with_sizes({"cited": cited, "cited_relevant": found, "cited_gold": found})
    totals = totals.with_sizes({"different": np.array([len(set(q.ranking)) for q in queries], float)})
    tops = [(q, rank) for q in queries for rank in range(len(q.ranking))]
    gold = np.array([len((q.read(r + 1) - q.read(r)) & q.gold_text()) for q, r in tops], float)
    totals = totals.with_amounts("covered", gold).with_amounts("gold_read", gold)
    totals = totals.with_amounts("read", np.array([len(q.read(r + 1) - q.read(r)) for q, r in tops], float))
    totals = totals.with_amounts("used", np.array([q.used(rank + 1) for q, rank in tops], float))
    firsts = [float(q.counts(rank + 1)) for q, rank in tops]
    totals = totals.with_amounts("different", np.array(firsts, float))
    if any(q.scores is not None for q in queries):  # none: as many as there are ranks, falling to 1
        scores = [range(len(q.ranking), 0, -1) if q.scores is None else q.scores for q in queries]
        totals = totals.with_values("score", np.array([score for own in scores for score in own], float))
    raw = np.array([score for q in queries for score in q.raw_scores()], float)
    without = np.array([not q.answerable for q in queries])
    grades = np.array([grade for q in queries for grade in q.grades], float)
    columns = np.array(rows, np.int64).reshape(-1, 4)
    return Hits(
        columns[:, 0],
        columns[:, 1],
        columns[:, 2],
        depth=np.array([len(q.ranking) for q in queries], np.int64),
        gold_items=Gold(
            [str(i) for q in queries for i in range(len(q.grades))],
            np.array(start, np.int64),
            grades,
            aspects=Aspects.of(sorted(q.aspects_of(i)) for q in queries for i in range(len(q.grades))),
            unanswerable=without if without.any() else None,
        ),
        repeated=columns[:, 3].astype(bool),
        totals=totals.with_values("raw_score", raw),
    )
