"""A query opened shows its gold, its ranking, and the ranking of the baseline."""

from __future__ import annotations

import pytest

import karat
from karat.report.html.markup import write
from karat.report.html.opened_query import Bodies
from karat.report.html.queries import Queries
from support import example


@pytest.fixture(scope="module")
def run():
    return example.run()


def test_a_query_opened(run):
    row = run.ids.index("q06")
    body = write(Bodies(run, {("q06", 0): "at rank 8, below 5"}).of(row, run.gold("q06")))
    assert "<mark>Adjust the seat count under Settings &gt; Billing &gt; Seats.</mark>" in body
    assert "at rank 8, below 5" in body
    assert "contains 100 %" in body
    assert body.count("<li") == 2 + 15 + body.count("k = 5") == 18


def test_texts_are_left_out_when_the_page_is_full(run):
    bodies = Bodies(run, {}, room=5000)
    written = [write(bodies.of(row, run.gold(query))) for row, query in enumerate(run.ids)]
    assert 0 < bodies.without < len(run)
    assert 'bdi class="text"' in written[0]
    assert "plans-and-pricing#1" in written[-1]
    assert 'bdi class="text"' not in written[-1].partition("Retrieved")[2]


@pytest.mark.parametrize(
    ("judge", "gold", "marked"),
    [
        ("ids", [{"id": "a"}], "All of it, and more."),
        ("ids(at=doc)", [{"doc": "d"}], "All of it, and more."),
        ("exact", ["All of it, and more."], "All of it, and more."),
        ("contains", ["All of it"], "All of it"),
        ("fuzzy(0.5)", ["All of it, and none."], "All of it, and "),
    ],
)
def test_marks_depend_on_what_the_judge_compares(judge, gold, marked):
    chunk = {"id": "a", "doc": "d", "text": "All of it, and more."}
    run = karat.evaluate([{"retrieved": [chunk], "gold": gold}], "rr", judge=judge)
    assert f"<mark>{marked}</mark>" in write(Bodies(run, {}).of(0, run.gold(1)))


def test_items_matched_by_id_are_marked_as_wholes():
    run = karat.evaluate([{"retrieved": [{"id": "a", "text": "All of it."}], "gold": ["a"]}], "rr", judge="ids")
    body = write(Bodies(run, {}).of(0, run.gold(1)))
    assert '<mark><bdi class="id">a</bdi></mark>' in body
    assert "<mark>All of it.</mark>" in body


def test_rest_of_a_ranking_is_counted():
    long = [{"retrieved": [f"d{i}" for i in range(50)], "gold": ["d1"]}, {"retrieved": [], "gold": ["d1"]}]
    run = karat.evaluate(long, "rr")
    assert "30 more were retrieved." in write(Bodies(run, {}).of(0, run.gold(1)))
    assert "Nothing was retrieved." in write(Bodies(run, {}).of(1, run.gold(2)))


def test_what_is_judged_and_irrelevant_is_neither_gold_nor_a_match():
    run = karat.evaluate(retrieved={"1": {"a": 2, "b": 1}}, gold={"1": {"a": 0, "b": 1, "c": 0}}, metrics="rr")
    body = write(Bodies(run, {}).of(0, run.gold(1)))
    assert body.count('class="hit"') == 1
    assert "2 items of grade 0, not relevant." in body
    assert "not retrieved" not in body
    section, held = Queries(run, {}).section()
    assert "1 of 1" in write(section)
    assert held["keys"][0][0] == ["1", "", "b"]


def test_gold_without_end_is_cut():
    gold = [f"g{i}" for i in range(500)]
    run = karat.evaluate(retrieved=[["g1"]], gold=[gold], metrics="rr")
    assert "480 more." in write(Bodies(run, {}).of(0, run.gold(1)))


def test_run_without_stored_items():
    run = karat.evaluate(retrieved=[["x", "a"]], gold=[["a"]], metrics="rr")
    run = run.replace(items=None)  # as in files of karat 0.1
    body = write(Bodies(run, {}).of(0, run.gold(1)))
    assert "only the matches are known" in body
    assert "same id" in body
