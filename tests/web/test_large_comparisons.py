"""Large runs that are compared: repeats on one side or both, exact slices, and causes that need all rankings."""

from __future__ import annotations

import re

import pytest

import karat
from karat.web.view import compared_runs, run_facts
from support.run_pages import RunPages

QUERIES = 60


def rows(repeats, better=""):
    """Queries whose topics are in blocks; in one topic the gold is found at rank 1, in the other at rank 2."""
    for i in range(QUERIES):
        topic = "first" if i < QUERIES // 2 else "second"
        for repeat in range(1, repeats + 1):
            own = {"repeat": repeat} if repeats > 1 else {}
            found = ["g", "x"] if topic == better else ["x", "g"]
            yield {"id": f"q{i}", "retrieved": found, "gold": ["g", f"none{i}"], "topic": topic, **own}


def run(repeats, better=""):
    return karat.evaluate(list(rows(repeats, better)), "recall@1 rr", judge="ids")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    run(3).save(folder / "a.parquet")
    run(3, "first").save(folder / "b.parquet")
    run(1).save(folder / "plain.parquet")
    run(1, "first").save(folder / "new.parquet")
    return RunPages(folder)


@pytest.fixture(autouse=True)
def large(monkeypatch):
    kept = compared_runs._COMPARED, run_facts._FACTS, run_facts._PAIRS
    for module in (compared_runs, run_facts):
        monkeypatch.setattr(module, "LARGE", 50)
    for one in kept:
        one.clear()
    yield
    for one in kept:
        one.clear()


def compared(pages, part, *names, **more):
    runs = ",".join(map(pages.id, names))
    answer = pages.ask("view_compare_part", None, run_id="-", part=part, runs=runs, **more)
    assert answer.status == 200, answer.text
    return re.sub(r"\s+", " ", answer.text)


@pytest.mark.parametrize("names", [("a", "b"), ("plain", "b"), ("a", "new"), ("plain", "new")])
def test_slices_are_those_of_all_queries(pages, names):
    text = compared(pages, "slices", *names)
    assert "By " not in text  # the number of the repeat is no slice
    assert re.search(r"first 30 0\.000 0\.500 \+0\.500 .*30 / 0 / 0", text)
    assert re.search(r"second 30 0\.000 0\.000 \+?0\.000 .*0 / 30 / 0", text)


@pytest.mark.parametrize("names", [("a", "b"), ("plain", "b"), ("a", "new"), ("plain", "new")])
def test_differences_of_the_slices_of_a_run_are_exact(pages, names):
    baseline, own = names
    text = re.sub(r"<[^>]*>|\s+", " ", pages.part(own, "slices", baseline=pages.id(baseline)))
    whole = karat.compare(*(pages.folder / f"{name}.parquet" for name in names)).by("topic")["first"][0]
    assert re.search(r"first\s+30\s+0\.500", text)
    assert re.search(rf"\+{whole.low:.3f} to \+{whole.high:.3f}\s+this run", text)


def test_a_baseline_with_other_repeats_is_compared_query_by_query(pages):
    for baseline, own in (("plain", "b"), ("a", "new")):
        assert "recall@1" in pages.part(own, "baseline", baseline=pages.id(baseline))


def test_gold_that_no_ranking_has_is_nowhere_in_the_run(pages):
    text = compared(pages, "causes", "plain", "new")
    assert "nowhere in the run 30" in text


def test_a_large_baseline_of_other_gold_has_no_differences_and_says_so(pages):
    other = [{**row, "gold": ["g"]} for row in rows(1)][:-1]
    karat.evaluate(other, "recall@1 rr", judge="ids").save(pages.folder / "other.parquet")
    html = pages.part("new", "slices", baseline=pages.id("other"))
    assert "Without differences" in html
