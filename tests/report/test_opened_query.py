"""A query opened shows its gold, its ranking, and the ranking of the baseline."""

from __future__ import annotations

import re

import pytest

import karat
from karat.report.html.markup import Pool, h, pack, write
from karat.report.html.opened_query import Bodies
from karat.report.html.queries import Queries
from karat.report.html.ranking_entries import Matched, Ranking
from support import example
from support.two_hops import TWO_HOPS


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


def body_of(run, row=0, causes=(), baseline=None):
    return write(Bodies(run, dict(causes), baseline).of(row, run.gold(run.ids[row])))


def test_line_after_the_last_rank_that_counts():
    samples = [{"retrieved": list("abcdef"), "gold": ["b"]}]
    shown = re.findall(r'class="cutoff">([^<]+)<|class="rank">(\d)<', body_of(karat.evaluate(samples, "rr recall@1,4")))
    assert [k or rank for k, rank in shown] == ["1", "2", "3", "4", "k = 4", "5", "6"]
    assert "cutoff" not in body_of(karat.evaluate(samples, "rr"))
    assert "cutoff" not in body_of(karat.evaluate(samples, "recall@6"))
    long = karat.evaluate([{"retrieved": [f"d{i}" for i in range(60)], "gold": ["d2"]}], "recall@20")
    assert re.search(r'<li class="cutoff">k = 20</li></ol><p class="note">40 more', body_of(long))


def test_ranges_and_scores_have_labels():
    chunk = {"doc": "guide.md", "start": 1200, "end": 3400, "text": "Closed on Mondays", "score": 0.83333}
    gold = {"doc": "guide.md", "start": 1210, "end": 1220}
    body = body_of(karat.evaluate([{"retrieved": [chunk], "gold": [gold]}], "rr", judge="spans"))
    assert "characters 1,200–3,400 of <bdi>guide.md</bdi>" in body
    assert "characters 1,210–1,220 of <bdi>guide.md</bdi>" in body
    assert ">score 0.8333<" in body


def test_reason_why_an_item_is_relevant():
    run = karat.evaluate([{"retrieved": ["x", "a"], "gold": ["a"]}], "rr", judge="ids")
    assert '<p class="why">relevant: <bdi>same id</bdi></p>' in body_of(run)
    run = karat.evaluate([{"retrieved": [{"id": "x", "text": "an apple"}], "gold": ["apple"]}], "rr", judge="contains")
    assert re.search(r'<p class="why">relevant: <bdi>[^<]*</bdi> · <bdi>apple</bdi></p>', body_of(run))


def test_baseline_is_beside_the_ranking():
    this, before = (
        karat.evaluate([{"id": "q", "retrieved": list(items), "gold": ["c"]}], "recall@2") for items in ("cabx", "abcd")
    )
    body, _, old = body_of(this, baseline=before).partition("<h3>Baseline</h3>")
    moves = re.findall(r'class="rank">(\d)</span>.*?</li>', body)
    assert moves == ["1", "2", "3", "4"]
    assert re.findall(r'class="moved( \w+)?">([^<]+)<', body) == [
        (" up", "3 → 1"),
        ("", "1 → 2"),
        ("", "2 → 3"),
        ("", "new"),
    ]
    assert re.findall(r'class="id">(\w)</bdi>(?:</mark>)? (?:<span class="moved">(\w+))?', old) == [
        ("a", ""), ("b", ""), ("c", ""), ("d", "gone")
    ]  # fmt: skip
    assert "k = 2" in old
    named = write(Bodies(this, {}, before, "main").of(0, this.gold("q")))
    assert "<h3>Baseline: <bdi>main</bdi></h3>" in named


def test_baseline_without_the_query():
    this, before = (karat.evaluate([{"id": own, "retrieved": ["a"], "gold": ["a"]}], "rr") for own in ("q", "other"))
    assert "Baseline" not in body_of(this, baseline=before)


def test_items_below_what_the_baseline_stores_are_not_new():
    long = [f"d{i}" for i in range(60)]
    before = karat.evaluate([{"id": "q", "retrieved": long, "gold": ["d1"]}], "recall@5")
    this = karat.evaluate([{"id": "q", "retrieved": long[50:], "gold": ["d1"]}], "recall@5")
    body = body_of(this, baseline=before)
    assert "below rank 20 before" in body
    assert ">new<" not in body


def test_repeats_are_compared_with_their_query_in_the_baseline():
    rows = [{"id": "q", "repeat": n, "retrieved": ["b", "a"], "gold": ["a"]} for n in (1, 2)]
    before = karat.evaluate([{"id": "q", "retrieved": ["a", "b"], "gold": ["a"]}], "rr")
    assert "1 → 2" in body_of(karat.evaluate(rows, "rr"), 1, baseline=before)


def test_items_without_ids_are_matched_by_text():
    first, second = ({"id": "1", "text": "One."}, {"id": "2", "text": "Two."})
    ids = karat.evaluate([{"id": "q", "retrieved": [first, second], "gold": ["One."]}], "rr", judge="exact")
    texts = karat.evaluate([{"id": "q", "retrieved": ["Two.", "One."], "gold": ["One."]}], "rr", judge="exact")
    rankings = [Ranking(run, 0) for run in (ids, texts)]
    matched = Matched(rankings)
    assert [matched.rank(1, key) for key in matched.keys[0]] == [2, 1]


def test_copies_in_a_ranking_are_matched_in_turn():
    runs = [karat.evaluate([{"id": "q", "retrieved": list(items), "gold": ["a"]}], "rr") for items in ("aba", "baa")]
    matched = Matched([Ranking(run, 0) for run in runs])
    assert [matched.rank(1, key) for key in matched.keys[0]] == [2, 1, 3]


def test_fields_of_the_sample():
    row = {
        "retrieved": ["a"],
        "gold": ["a"],
        "topic": "billing",
        "latency": 1234.5,
        "usage": {"total": 7},
        "live": True,
    }
    body = body_of(karat.evaluate([row, {**row, "topic": None}], "rr"))
    fields = dict(re.findall(r"<dt><bdi>(.*?)</bdi></dt><dd><bdi>(.*?)</bdi></dd>", body))
    assert fields == {"topic": "billing", "latency": "1.23 s", "usage.total": "7", "live": "yes"}


def test_steps_and_hops():
    run = karat.evaluate(TWO_HOPS, "recall@1,5")
    body = body_of(run)
    assert "<b>Step 1: <bdi>first</bdi></b> <bdi>birthplace of Kafka</bdi>" in body
    assert "3 items, 1 of them returned before, 400 ms" in body
    assert ">step 2, rank 2<" in body
    assert ">hop 2<" in body


def test_query_that_could_not_be_judged():
    rows = [{"id": "q", "retrieved": ["a"], "gold": ["a"]}, {"id": "bad", "error": "timeout", "gold": ["a"]}]
    run = karat.evaluate(rows, "rr")
    assert "This query could not be judged: <bdi>retrieval failed: timeout" in body_of(run, 1)
    assert "could not be judged" not in body_of(run)


def test_long_texts_can_be_expanded():
    text = "word " * 300 + "needle " + "word " * 300
    run = karat.evaluate([{"retrieved": [text], "gold": ["needle"]}], "rr", judge="contains(gold_in_chunk)")
    body = body_of(run)
    short, whole = re.search(r'<details class="long"><summary>(.*?)</summary>(.*?)</details>', body).groups()
    assert "<mark>needle</mark>" in short
    assert "… word" in re.sub("<[^>]+>", "", short)
    assert re.search(r"word…", short)
    assert re.sub("<[^>]+>", "", whole).strip() == text.strip()


def test_expanding_ends_before_texts_do():
    """Half of the room of a page is for whole texts; then texts are cut, and at last omitted."""
    rows = [{"retrieved": [f"{i} " + "word " * 400], "gold": ["x"]} for i in range(15)]
    run = karat.evaluate(rows, "rr", judge="exact")
    bodies = Bodies(run, {}, room=10_000)
    written = [write(bodies.of(row, run.gold(query))) for row, query in enumerate(run.ids)]
    kinds = ["long" if 'class="long"' in body else "cut" if "word" in body else "none" for body in written]
    assert kinds == ["long"] + ["cut"] * 10 + ["none"] * 4
    assert bodies.without == 4


def test_packed_rows_keep_their_attributes():
    packed = pack(h("div.wanted", "x", tabindex=0), tags := Pool(), Pool())
    assert (packed, list(tags)) == ([0, {"tabindex": "0"}, "x"], ["div.wanted"])
