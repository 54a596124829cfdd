"""The Run screen of runs of every kind: large ones, and those without items, texts, gold or queries."""

from __future__ import annotations

import re

import pytest

import karat
from karat.run.lazy_run import LazyRun
from karat.run.stored_items import Extent, StoredItems
from karat.web.view import run_facts
from karat.web.view.chosen_queries import changes_from
from karat.web.view.run_sections import PARTS
from support import example
from support.run_pages import LINK, RunPages, added, many, repeated

HOSTILE = "<script>alert(1)</script>"


def _rows(count, **more):
    return [{"id": f"q{i}", "retrieved": [f"d{i}", "d0"], "gold": ["d0"], **more} for i in range(count)]


def _unanswerable():
    scored = [{"id": "a", "score": 0.9}, {"id": "b", "score": 0.2}]
    rows = [
        {"id": f"q{i}", "retrieved": scored, "gold": ["a"][: i % 3], "answerable": i % 3 > 0, "topic": "xy"[i % 2]}
        for i in range(30)
    ]
    return karat.evaluate(rows, "recall@1,5 rr false_alarm@5", judge="ids")


def _hostile():
    fields = {f"a=b&{HOSTILE}": HOSTILE, "q": "?x=1&y", "sort": "z"}
    rows = [{**row, "query": HOSTILE * 100, **fields} for row in _rows(4)]
    rows += [{**row, "id": f"{HOSTILE}#/../{i}"} for i, row in enumerate(_rows(4))]
    return karat.evaluate(rows, "recall@1,5", judge="ids")


KINDS = {
    "no queries": lambda: example.run().take([]),
    "one query": lambda: example.run().take([3]),
    "no texts": lambda: karat.evaluate(_rows(6), "recall@1,5 rr"),
    "no items": lambda: karat.evaluate(retrieved={"q": {"a": 1.0}}, gold={"q": {"a": 1}}, metrics="recall@5"),
    "no gold": lambda: karat.evaluate([{"id": "x", "retrieved": ["a"], "gold": []}], "recall@5", judge="ids"),
    "failed": lambda: karat.evaluate(
        [*_rows(3), {"id": "y", "retrieved": None, "error": "timeout", "gold": ["a"]}], "recall@5 rr", judge="ids"
    ),
    "repeats": repeated,
    "unanswerable": _unanswerable,
    "levels": lambda: karat.evaluate(_rows(6), "iprec@0,0.25,0.5,0.75,1 ap"),
    "hostile": _hostile,
}


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_opens(tmp_path, monkeypatch, kind, sampled):
    """Also when it is so large that sections are made from a sample."""
    if sampled:
        monkeypatch.setattr(run_facts, "LARGE", 3)
    KINDS[kind]().save(tmp_path / "run.parquet")
    screen = RunPages(tmp_path)
    shown = [screen.page("run"), screen.queries("run").html, *(screen.part("run", part) for part in PARTS)]
    shown += [screen.page("run", show=part) for part in (*PARTS, "chooser")]
    rows = re.findall(r"/opened/(\d+)", shown[1])
    assert len(rows) == min(len(karat.load(tmp_path / "run.parquet")), 50)
    shown += [screen.ask("view_opened", "run", row=row).html for row in rows[:3]]
    shown += [screen.queries("run", sort=f"{sign}{by}").html for by in ("id", "found", "recall@5") for sign in ("", "-")
              if by in ("id", "found") or kind != "levels"]  # fmt: skip
    assert not any(HOSTILE in html for html in shown)
    for adds in {adds for html in shown for adds in LINK.findall(html)}:
        assert screen.queries("run", **added(adds)).count > 0, adds


def test_sections_of_a_large_run_come_from_a_sample_and_say_so(tmp_path, monkeypatch):
    run = many(500)
    run.save(tmp_path / "run.parquet")
    monkeypatch.setattr(run_facts, "LARGE", 100)
    screen = RunPages(tmp_path)
    sentence = "From a random sample of 100 of the 500 queries."
    for part in ("misses", "curves"):
        assert sentence in screen.part("run", part)
    page, slices = screen.page("run"), screen.part("run", "slices")
    assert sentence not in page
    assert "Remarks that need the gold or the rankings of every query are left out" in page
    assert sentence not in slices
    assert f"{run.mean['recall@5']:.3f}" in page
    rows = re.findall(r'data-adds="([^"]*)".*?</th><td[^>]*>([\d,]+)</td><td[^>]*>([\d.]+)</td>', slices)
    topics = run.by("topic")
    exact = {f"field.topic={value}": (str(len(part)), f"{part.mean['recall@5']:.3f}") for value, part in topics.items()}
    assert {adds: own for adds, *own in rows if "topic" in adds} == {adds: [*own] for adds, own in exact.items()}


def test_the_causes_of_a_large_run_are_those_of_its_sample(tmp_path, monkeypatch):
    many(500).save(tmp_path / "run.parquet")
    monkeypatch.setattr(run_facts, "LARGE", 100)
    screen = RunPages(tmp_path)
    found = karat.diagnose(LazyRun.open(tmp_path / "run.parquet").sample(100))
    for cause in found.causes:
        ids = {miss.query_id for miss in found.misses if miss.cause == cause}
        shown = screen.queries("run", cause=cause, size="100")
        assert {*shown.ids} == ids
        assert "Causes are known for a random sample of 100 of the 500 queries; only these are listed." in shown.html


def test_a_slice_tells_how_many_of_its_queries_a_metric_is_about(tmp_path):
    _unanswerable().save(tmp_path / "run.parquet")
    screen = RunPages(tmp_path)
    row = re.compile(r'data-adds="(field.topic=[^"]*)".*?</th><td[^>]*>15, ([\d,]+) scored</td>')
    rows = row.findall(screen.part("run", "slices"))
    assert [count for _, count in rows] == ["10", "10"]
    for adds, count in rows:
        shown = screen.queries("run", **added(adds))
        assert shown.count == 15
        assert f"recall@5 is about {count} of these queries." in shown.html


def test_a_large_run_has_a_baseline(tmp_path, monkeypatch):
    many(300).save(tmp_path / "run.parquet")
    many(300, seed=0).take(range(300)).save(tmp_path / "same.parquet")
    other = many(300)
    other.replace(scores={name: values / 2 for name, values in other.scores.items()}).save(tmp_path / "half.parquet")
    monkeypatch.setattr(run_facts, "LARGE", 100)
    screen = RunPages(tmp_path)
    before = screen.id("same")
    mean = float(karat.load(tmp_path / "run.parquet").mean["recall@5"])
    shown = screen.ask("view_run", "run", baseline=screen.id("half")).text
    assert f"+{mean / 2:.3f} from half" in " ".join(shown.split())
    assert "sample" not in screen.part("run", "slices", baseline=before)
    assert "From a random sample of 100 of the 300 queries." in screen.part("run", "baseline", baseline=before)
    assert screen.queries("run", baseline=before, sort="-change").html.count('<td class="n">0.000</td>') >= 50
    for part in PARTS:
        screen.part("run", part, baseline=before)


def test_the_change_of_a_query_is_found_by_its_id(tmp_path):
    run = many(60)
    run.save(tmp_path / "run.parquet")
    other = many(60, seed=0).take([*range(59, -1, -1)])
    scores = {name: values * 0.5 for name, values in other.scores.items()}
    other.replace(scores=scores).take(range(40)).save(tmp_path / "other.parquet")
    repeated().save(tmp_path / "repeats.parquet")
    files = [LazyRun.open(tmp_path / f"{name}.parquet") for name in ("run", "other", "repeats")]
    found = dict(zip(run.ids, changes_from(files[0], files[1], "rr").tolist(), strict=True))
    half = dict(zip(run.ids, (run.scores["rr"] / 2).tolist(), strict=True))
    assert {one: change for one, change in found.items() if change == change} == {
        one: half[one] for one in other.ids[:40]
    }
    assert not changes_from(files[2], files[2], "rr").any()


def test_a_cause_of_a_sample_tells_what_holds_for_the_whole_run(tmp_path, monkeypatch):
    """Each gold item is retrieved for another query, most of them outside of the sample."""
    rows = [{"id": f"q{i}", "retrieved": [f"d{i}"], "gold": [f"d{(i + 1) % 90}"]} for i in range(90)]
    rows.append({"id": "last", "retrieved": ["d0"], "gold": ["lost"]})
    run = karat.evaluate(rows, "recall@5", judge="ids")
    items = run.stored_items
    gold = {name: column for name, column in items.gold.items() if name != "seen"}
    unsearched = StoredItems(items.given, items.start, gold, items.gold_start, Extent(10, whole=False))
    run.replace(items=lambda: unsearched).save(tmp_path / "run.parquet")
    file = LazyRun.open(tmp_path / "run.parquet")
    assert file.retrieved_anywhere(["d7", "lost", None, "d89"], "id").tolist() == [True, False, False, True]
    assert not file.retrieved_anywhere(["d7"], "doc").any()
    monkeypatch.setattr(run_facts, "LARGE", 20)
    shown = RunPages(tmp_path).part("run", "misses")
    assert "not retrieved" in shown
    assert ("nowhere in the run" in shown) == ("last" in file.sample(20).ids)
