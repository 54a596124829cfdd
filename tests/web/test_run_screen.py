"""The Run screen, by its tasks: filters that show as many queries as they say, pages, sorts, odd and large runs."""

from __future__ import annotations

import re
from datetime import datetime
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

import karat
from karat.report.html.histogram import bars
from karat.web.view.run_address import ScoreRange
from support import example
from support.run_pages import LINK, RunPages, added, many, repeated

COMMIT = "0123456789" * 4
WORDS = [
    {
        "id": f"q-{one}",
        "query": f"Question {one}asked",
        "gold": [{"id": f"{one}#wanted", "text": f"Gold {one}proof"}],
        "retrieved": [
            {"id": f"{one}#chunk", "text": f"Retrieved {one}passage"},
            {"id": f"{one}#wanted", "text": "Gold"},
        ],
    }
    for one in ("red", "blue")
]
"""Two queries; every text and every id has a word of its own."""


@pytest.fixture(scope="module")
def screen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("karat.run.run.current_commit", lambda: COMMIT)
        example.run().save(folder / "bm25.parquet")
    example.run("first-words").save(folder / "first-words.parquet")
    many(300).save(folder / "many.parquet")
    repeated().save(folder / "repeats.parquet")
    karat.evaluate(WORDS, "rr", judge="ids").save(folder / "words.parquet")
    (folder / "damaged.parquet").write_bytes((folder / "many.parquet").read_bytes()[:5000])
    return RunPages(folder)


RUNS = pytest.mark.parametrize("run", ["bm25", "many", "repeats"])


def test_the_time_and_the_commit_are_at_the_top(screen):
    head = screen.page("bm25").partition("<nav aria-label")[0].partition("</h1>")[2]
    file = screen.folder / "bm25.parquet"
    time = datetime.fromtimestamp(file.stat().st_mtime).astimezone()
    assert f"{time.day} {time:%b %Y, %H:%M}</time> · commit <code>{COMMIT[:7]}</code>" in head


@RUNS
def test_a_bar_shows_the_queries_that_it_counts(screen, run):
    page = screen.page(run)
    section = page[page.index('id="scores"') : page.index('id="queries"')]
    links = re.findall(r'aria-label="(?:Show the queries: )?([^"]*): ([\d,]+) quer[^"]*" data-adds="([^"]*)"', section)
    assert len(links) == len(LINK.findall(section)) > 3
    for _, count, adds in links:
        assert screen.queries(run, **added(adds)).count == int(count.replace(",", "")), adds


@RUNS
def test_a_slice_shows_the_queries_that_it_counts(screen, run):
    section = screen.part(run, "slices")
    rows = re.findall(r'data-adds="([^"]*)".*?</th><td[^>]*>([\d,]+)(?:, [\d,]+ scored)?</td>', section)
    assert len(rows) == len(LINK.findall(section)) >= 4
    for adds, count in rows:
        assert screen.queries(run, **added(adds)).count == int(count), adds


@pytest.mark.parametrize("run", ["bm25", "many"])
def test_a_cause_shows_the_queries_that_miss_gold_for_it(screen, run):
    found = karat.diagnose(screen.folder / f"{run}.parquet")
    wanted = {cause: {miss.query_id for miss in found.misses if miss.cause == cause} for cause in found.causes}
    links = {added(adds)["cause"] for adds in LINK.findall(screen.part(run, "misses"))}
    assert links == wanted.keys()
    for cause, ids in wanted.items():
        shown = screen.queries(run, cause=cause, size="100")
        assert shown.count == len(ids)
        items = found.causes[cause]
        assert f"They miss {items} gold item{'s' * (items > 1)} with the cause “{cause}”." in shown.html
        assert {*shown.ids} == ids or len(ids) > 30


def test_the_range_of_a_filter_is_that_of_its_bar():
    random = np.random.default_rng(1)
    tenths = np.arange(11) / 10
    near = np.concatenate([np.nextafter(tenths, way) for way in (-1, 2)])
    edges = np.concatenate([tenths, near, random.random(40)])
    outside = random.normal(3, 40, 5000).clip(-100, 100), np.array([-3.0, 2, 7, 7, np.nan]), random.random(900) * 1.2
    for scores in (random.random(5000), edges, np.array([0, 1 / 3, 1, np.nan]), *outside):
        found = bars(scores)
        ranges = [ScoreRange.read(str(ScoreRange(bar.low, bar.high)), "recall") for bar in found]
        assert [int(own.flags(scores).sum()) for own in ranges] == [bar.size for bar in found]
        assert (sum(own.flags(scores) for own in ranges) == ~np.isnan(scores)).all()


def test_filters_combine_and_each_can_be_removed(screen):
    run = karat.load(screen.folder / "many.parquet")
    wanted = {
        one
        for one, topic, part, score in zip(run.ids, run.meta["topic"], run.meta["part"], run.scores["rr"], strict=True)
        if topic == "t1" and part == "a" and score == 0.5
    }
    state = {"field.topic": "t1", "field.part": "a", "rr": "0.5"}
    shown = screen.queries("many", **state)
    assert {*shown.ids} == wanted
    assert shown.matches == f"{len(wanted)} queries of 300"
    chips = re.findall(r'<li class="chip"><bdi>(.*?)</bdi> <a href="([^"]*)"', shown.html)
    assert [words for words, _ in chips] == ["topic: t1", "part: a", "rr: 0.5"]
    for (_, href), key in zip(chips, state, strict=True):
        left = dict(parse_qsl(urlsplit(unescape(href)).query))
        assert left == {name: value for name, value in state.items() if name != key}
    assert "All filters off" in shown.html
    assert screen.queries("many", **{"field.part": "(none)"}).count == 150


def test_pages_show_every_query_once(screen):
    shown = [screen.queries("many", page=str(page)) for page in range(1, 7)]
    ids = [one for page in shown for one in page.ids]
    assert len(ids) == len({*ids}) == 300
    run = karat.load(screen.folder / "many.parquet")
    scores = dict(zip(run.ids, run.scores["recall@5"].tolist(), strict=True))
    assert [scores[one] for one in ids] == sorted(scores.values())
    assert re.search(r'aria-current="page"[^>]*>3<', shown[2].html)
    assert screen.queries("many", page="1000000000").ids == shown[-1].ids
    assert len(screen.queries("many", size="100").ids) == 100


@pytest.mark.parametrize("column", ["recall@5", "rr", "found", "id"])
def test_sorts_go_both_ways(screen, column):
    run = karat.load(screen.folder / "bm25.parquet")
    keys = {
        "id": {one: int(one[1:]) for one in run.ids},
        "found": {one: sum((item.rank is not None) - 1 for item in run.gold(one) if item.grade > 0) for one in run.ids},
    }
    keys |= {name: dict(zip(run.ids, values.tolist(), strict=True)) for name, values in run.scores.items()}
    for sort, sign in ((column, 1), (f"-{column}", -1)):
        shown = screen.queries("bm25", sort=sort)
        values = [sign * keys[column][one] for one in shown.ids]
        defined = [value for value in values if value == value]
        assert defined == sorted(defined)
        assert all(value != value for value in values[len(defined) :])
        assert f'aria-sort="{"ascending" if sign > 0 else "descending"}"' in shown.html


def test_ids_are_sorted_by_their_numbers(screen):
    assert screen.queries("many", sort="id").ids == [f"q{i}" for i in range(50)]
    assert screen.queries("many", sort="-id").ids[:2] == ["q299", "q298"]


def test_links_of_sections_keep_the_filters_and_the_order(screen):
    state = {"field.part": "a", "sort": "-rr", "size": "100"}
    for section in (screen.page("many", **state), screen.part("many", "slices", **state)):
        links = re.findall(r'<a (?=[^>]*data-adds="([^"]*)")[^>]*href="([^"]*)"', section)
        links += [(adds, href) for href, adds in re.findall(r'<a [^>]*href="([^"]*)"[^>]*data-adds="([^"]*)"', section)]
        assert links
        for adds, href in links:
            given = dict(parse_qsl(urlsplit(unescape(href)).query))
            assert given == state | added(adds), href


@pytest.mark.parametrize("text", ["q-red", "REDasked", "redproof", "red#wanted", "redpassage", "red#chunk"])
def test_search_reaches_ids_and_texts_of_queries_gold_and_retrieved_items(screen, text):
    assert screen.queries("words", q=text).ids == ["q-red"]
    assert screen.queries("words", q=f"{text} retrieved").ids == ["q-red"]
    assert screen.queries("words", q=f"{text} blueasked").matches == "No query matches."


def test_search_and_filters_together(screen):
    assert screen.queries("bm25", q="q06").ids == ["q06"]
    assert screen.queries("bm25", q="q06", **{"field.length": "short"}).count in (0, 1)


def test_a_row_opens_and_leads_to_its_own_page(screen):
    html = screen.queries("bm25", q="q06").html
    row = re.search(r"/opened/(\d+)", html)[1]
    assert f"/query?runs={screen.id('bm25')}&amp;query=q06" in html
    opened = screen.ask("view_opened", "bm25", row=row)
    assert opened.status == 200
    assert karat.load(screen.folder / "bm25.parquet").items("q06").retrieved[0].id in opened.text
    assert screen.ask("view_opened", "bm25", row="32").status == 404


def test_sections_are_those_of_the_report(screen, tmp_path):
    karat.load(screen.folder / "bm25.parquet").report(tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text()
    for name in ("curves", "tokens"):
        assert screen.part("bm25", name) in report
    page = screen.page("bm25")
    for name in ("slices", "misses", "curves"):
        assert f'data-part="/run/{screen.id("bm25")}/part/{name}"' in page
        assert screen.part("bm25", name)[:500] in screen.page("bm25", show=name)
    assert re.findall(r"<tr>.*?</tr>", screen.part("bm25", "misses"))[-1].count("/query?runs=") == 1


def test_a_cause_of_no_query_is_not_counted(screen):
    cause = next(iter(karat.diagnose(screen.folder / "bm25.parquet").causes))
    html = screen.queries("bm25", cause=cause, q="no such words anywhere").html
    assert "No query matches." in html
    assert "They miss" not in html


def test_a_baseline(screen):
    before = screen.id("first-words")
    page = screen.page("bm25", baseline=before)
    assert re.search(r"Compared with <strong><bdi>first-words", page)
    chooser = screen.part("bm25", "chooser")
    assert re.findall(r'<option value="([^"]*)"', chooser) == ["", before]
    assert "Queries that moved most" in screen.part("bm25", "baseline", baseline=before)
    assert "winner" in screen.part("bm25", "slices", baseline=before)
    shown = screen.queries("bm25", baseline=before, sort="change")
    runs = [karat.load(screen.folder / f"{name}.parquet") for name in ("bm25", "first-words")]
    change = dict(zip(runs[0].ids, runs[0].scores["recall@5"] - runs[1].scores["recall@5"], strict=True))
    values = [change[one] for one in shown.ids if change[one] == change[one]]
    assert values == sorted(values)
    assert f"query?runs={before},{screen.id('bm25')}" in shown.html
    assert "Change: in recall@5, from <span><bdi>first-words</bdi>.</span>" in shown.html
    assert "Dashed: <bdi>first-words</bdi>." in screen.part("bm25", "curves", baseline=before)
    row = re.search(r"/opened/(\d+)\?baseline=", shown.html)[1]
    opened = screen.ask("view_opened", "bm25", row=row, baseline=before).text
    assert re.search(r"Baseline:\s+first-words", opened)
    assert "is no baseline for this run" in screen.ask("view_run", "bm25", baseline=screen.id("many")).text


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        ({"recall@5": "half"}, 400, "this is not a range of recall@5"),
        ({"recall@5": "0.5..x"}, 400, "this is not a range of recall@5"),
        ({"cause": "bad luck"}, 400, "there is no such cause"),
        ({"sort": "colour"}, 400, "there is no such column"),
        ({"page": "-1"}, 400, "page is a whole number from 1"),
        ({"page": "²"}, 400, "page is a whole number from 1"),
        ({"baseline": "0" * 24}, 404, "the baseline cannot be shown: there is no such run"),
        ({"run_id": "0" * 24}, 404, "there is no such run"),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_shown_says_why(screen, state, status, words):
    answer = screen.ask("view_run", "many", **state)
    assert answer.status == status
    assert words in answer.text


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("recall@99", "0.5", "This run has no metric “recall@99”, so that filter is left out."),
        ("rrr", "0..0.5", "This run has no metric “rrr”, so that filter is left out."),
        ("metric.page", "1", "This run has no metric “page”, so that filter is left out."),
        ("field.colour", "red", "This run has no field “colour”, so that filter is left out."),
        ("utm_source", "slack", ""),
        ("fbclid", "IwAR0", ""),
    ],
)
def test_a_filter_about_nothing_in_the_run_is_left_out_and_said(screen, key, value, words):
    shown = screen.queries("many", **{key: value, "recall@5": "1"})
    assert re.findall(r'<p class="note">(This run has no [^<]*)', shown.html) == ([words] if words else [])
    assert shown.ids == screen.queries("many", **{"recall@5": "1"}).ids
    assert f"{key}=" not in shown.html


def test_a_damaged_file_is_a_page_with_its_error(screen):
    answer = screen.ask("view_run", "damaged")
    assert answer.status == 422
    assert "damaged.parquet" in answer.text
    assert str(screen.folder) not in answer.text


def test_a_part_of_another_version_is_refused(screen, tmp_path):
    own = RunPages(tmp_path)
    many(30).save(tmp_path / "run.parquet")
    version = re.search(r'data-version="([^"]*)"', own.page("run"))[1]
    assert own.ask("view_run_part", "run", part="queries", version=version).status == 200
    many(40, seed=1).save(tmp_path / "run.parquet")
    assert own.ask("view_run_part", "run", part="queries", version=version).status == 409
    assert own.ask("view_opened", "run", row="0", version=version).status == 409
    assert own.queries("run").count == 40
    many(40, seed=1).save(tmp_path / "base.parquet")
    state = {"baseline": own.id("base")}
    state["version"] = re.search(r'data-version="([^"]*)"', own.page("run", **state))[1]
    assert own.ask("view_run_part", "run", part="baseline", **state).status == 200
    assert own.ask("view_opened", "run", row="0", **state).status == 200
    many(40, seed=1).replace(query=["?"] * 40).save(tmp_path / "base.parquet")
    assert own.ask("view_run_part", "run", part="baseline", **state).status == 409
    assert own.ask("view_opened", "run", row="0", **state).status == 409
