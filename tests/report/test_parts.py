"""The parts of the page say what the run says."""

from __future__ import annotations

import re

import numpy as np
import pytest

import karat
from karat._internal.display import signed
from karat.conventions import CONVENTIONS
from karat.report.html.curves import curves, cutoffs, deepest, measured, requested
from karat.report.html.histogram import ABOVE, bars, histogram
from karat.report.html.markup import write
from karat.report.html.queries import Queries
from karat.report.html.scores import few, headline, slices, strip
from karat.report.html.sections import against
from support import example


@pytest.fixture(scope="module")
def run():
    return example.run()


def test_one_name_stands_for_each_metric(run):
    assert headline(run) == ["recall@5", "precision@5", "ndcg@10", "rr"]
    many = karat.evaluate(
        retrieved=[["a"]], gold=[["a"]], metrics="hit@1,20,100 recall@500t f@3 rr ap ndcg", judge="exact"
    )
    assert headline(many) == ["hit@1", "recall@500t", "f@3", "rr", "ap"]


def test_curves_go_through_the_means(run):
    ks = cutoffs(deepest(run), requested(run))
    found = measured(run, ks)
    for k in (1, 3, 5, 10):
        value, ends = found["recall"][k]
        assert value == run.mean[f"recall@{k}"]
        assert ends == run.interval()[f"recall@{k}"]
    assert found["precision"][5][0] == run.mean["precision@5"]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_curves_follow_the_convention(convention):
    retrieved = {"1": {"a": 3, "b": 2, "c": 1}, "2": {"b": 1}, "4": {"d": 2, "e": 1}}
    gold = {"1": {"b": 1, "x": 1}, "2": {"b": 1}, "3": {"c": 1}, "4": {"d": 0}}
    run = karat.evaluate(retrieved=retrieved, gold=gold, metrics="recall@1,3 precision@1,3", convention=convention)
    found = measured(run, [1, 3])
    for name in ("recall", "precision"):
        for k in (1, 3):
            assert found[name][k][0] == pytest.approx(run.mean[f"{name}@{k}"], abs=1e-4, nan_ok=True)
    write(curves(run))


def test_curves_have_the_settings_of_the_run():
    graded = [{"retrieved": ["a", "b"], "gold": {"a": 1, "b": 2}}] * 3
    run = karat.evaluate(graded, "recall(rel=2)@1,2")
    assert measured(run, [1, 2])["recall"][1][0] == run.mean["recall(rel=2)@1"] == 0


def test_how_deep_curves_go():
    deep = [{"retrieved": [f"d{i}" for i in range(1000)], "gold": ["d2"]}] * 2
    assert deepest(karat.evaluate(deep, "rr")) == 3
    assert deepest(karat.evaluate(deep, "recall@50")) == 50
    assert deepest(karat.evaluate(deep, "recall@5000")) == 5000
    assert curves(karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="rr")) is None
    assert cutoffs(6) == [1, 2, 3, 4, 5, 6]
    far = cutoffs(1000)
    assert far[:5] == [1, 2, 3, 4, 5]
    assert far[-1] == 1000
    assert len(far) <= 16
    assert {10, 33, 100} <= {*cutoffs(1000, {10, 33, 100, 2000})}
    assert 2000 not in cutoffs(1000, {2000})


def test_nothing_is_drawn_outside(run):
    drawn = write(curves(run, example.run("first-words")))
    points = [tuple(map(float, p.split(","))) for line in re.findall(r'points="([^"]+)"', drawn) for p in line.split()]
    assert points
    assert all(0 <= x <= 1000 and 0 <= y <= 250 for x, y in points)
    assert "before" in drawn


def test_the_curve_has_a_dot_and_its_values_at_every_requested_cutoff():
    rows = [{"retrieved": [f"d{i}" for i in range(200)], "gold": [f"d{k}", "x"]} for k in (2, 9, 33, 150) * 5]
    run = karat.evaluate(rows, "recall@10,77 precision@3 ndcg@20")
    drawn = write(curves(run, run))
    for k in (3, 10, 20, 77):
        assert f"<title>k = {k}\n" in drawn
    assert f"<title>k = 10\nrecall {run.mean['recall@10']:.3f} [" in drawn
    stops = re.findall(r'data-at="([^"]+)"', drawn)
    assert drawn.count("<circle") == 2 * len(stops)
    assert [f'cx="{place}"' for place in stops if f'cx="{place}"' not in drawn] == []


def test_no_curve_if_nothing_was_judged():
    failed = {"retrieved": None, "error": "timeout", "gold": ["a"]}
    assert curves(karat.evaluate([failed] * 3, "recall@5", judge="ids")) is None


def test_every_query_is_in_one_bar():
    values = np.array([0, 0, 0.05, 0.1, 0.55, 0.999, 1, np.nan, *np.linspace(0.301, 0.399, 50)])
    found = bars(values)
    assert [(bar.low, bar.high, bar.size) for bar in found] == [
        (0, 0, 2), (ABOVE, 0.1, 1), (0.1, 0.2, 1), (0.3, 0.4, 50), (0.5, 0.6, 1), (0.9, 1, 1), (1, 1, 1),
    ]  # fmt: skip
    assert "0.5 to 0.6: 1 query<" in write(histogram(values, "rr"))
    assert "undefined for every query" in write(histogram(np.array([np.nan]), "rr"))


def test_scores_that_are_not_from_0_to_1_have_an_axis_of_their_own():
    drawn = write(histogram(np.array([-3, -3, 2, 7, np.nan]), "points"))
    assert "-3: 2 queries, 2: 1 query, 7: 1 query" in drawn
    assert re.findall(r'text-anchor="middle">(-?[\d.]+)<', drawn) == ["-5", "0", "5", "10"]
    found = bars(np.linspace(0, 40, 401))
    assert (found[0].low, found[-1].low, sum(bar.size for bar in found)) == (0, 40, 401)
    assert all(bar.high - bar.low == found[0].high for bar in found)


def test_large_scores_have_no_powers_of_ten():
    drawn = write(histogram(np.array([1_234_567.0, 3_000_000.0]), "points"))
    assert "1,234,567: 1 query, 3,000,000: 1 query" in drawn
    assert "e+" not in drawn


def test_undefined_scores_are_last_also_if_scores_are_above_two():
    run = example.run("bm25").take(range(4))
    name = run.headline[0]
    scores = {**run.scores, **dict.fromkeys(run.headline, np.array([40.0, np.nan, -7.0, 3.0]))}
    assert run.replace(scores=scores).worst_rows().tolist() == [2, 3, 0, 1], name


def test_few_scores_have_bars_at_their_values():
    found = bars(np.array([0, 1 / 3, 1 / 3, 0.5, 1]))
    assert [(bar.low, bar.size) for bar in found] == [(0, 1), (0.333333, 2), (0.5, 1), (1, 1)]
    assert all(bar.is_exact for bar in found)
    drawn = write(histogram(np.array([0, 0.5, 0.5, 1]), "recall@5"))
    middles = [float(x) + float(width) / 2 for x, width in re.findall(r' x="([\d.]+)" width="([\d.]+)"', drawn)]
    ticks = dict(re.findall(r'<text x="([\d.]+)"[^>]*>([\d.]+)<', drawn))
    assert middles == [float(x) for x, value in ticks.items() if value in {"0", "0.5", "1"}]


def test_bars_that_would_touch_are_parts_instead():
    found = bars(np.array([0.4, 0.401, 0.402, 0.9]))
    assert [(bar.low, bar.high, bar.size) for bar in found] == [(0.4, 0.5, 3), (0.9, 1, 1)]


def test_a_part_is_between_its_limits():
    drawn = write(histogram(np.linspace(0.401, 0.499, 40), "ndcg"))
    ((x, width),) = re.findall(r' x="([\d.]+)" width="([\d.]+)"', drawn)
    tick = {float(value): float(place) for place, value in re.findall(r'<text x="([\d.]+)"[^>]*>([\d.]+)<', drawn)}
    low, high = (tick[0] + share * (tick[1] - tick[0]) for share in (0.4, 0.5))
    assert low <= float(x) < float(x) + float(width) <= high


def test_bars_can_be_links():
    drawn = write(histogram(np.array([0, 0.5, 1]), "rr", lambda low, high: f"/x?{low}" if low else None))
    assert re.findall(r'href="([^"]+)"', drawn) == ["/x?0.5", "/x?1.0"]
    assert 'role="group"' in drawn


def test_numbers_are_written():
    assert strip(float("nan"), 0, 1) is None
    assert "mean 0.50, on" in write(strip(0.5, float("nan"), float("nan")))


def test_slices_are_of_fields_with_few_values(run):
    assert few(["a", "b", "a", None, "b", "b"])
    assert few([True, False, True, True])
    assert not few(["a", "a", "a"])
    assert not few(["a", "b", "c", "d"])
    assert not few([[1], [2], [1], [2]])
    written = write(slices(run))
    assert "recall@5 by topic, worst first" in written
    assert written.index(">admin<") < written.index(">api<")
    assert slices(karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="rr")) is None


def test_slices_are_compared_with_the_baseline(run):
    comparison = karat.compare(example.run("first-words"), run)
    row = next(row for row in comparison.by("length")["short"] if row.metric == "recall@5")
    written = write(slices(run, comparison))
    change = rf"{signed(row.difference)}</span></td><td[^>]*>{signed(row.low)} to {signed(row.high)}</td>"
    assert re.search(change.replace("+", "\\+"), written)
    verdict = f'data-label="winner"><span class="none"><bdi>{row.verdict}</bdi>'
    assert row.verdict == "cannot tell"
    assert verdict in written.partition(">short<")[2].partition("</tr>")[0]


def test_the_page_and_compare_list_the_same_moves(run):
    comparison = karat.compare(example.run("first-words"), run)
    moved = [one.query_id for one in comparison.moved(metric="recall@5")]
    written = write(against(comparison, {query: row for row, query in enumerate(run.ids)}))
    assert re.findall(r'href="#row-\d+"><bdi class="id">(\w+)', written) == moved
    assert "recall@5" in written.partition("moved most")[2]


def test_the_worst_come_first_and_the_undefined_last():
    run = karat.evaluate(
        retrieved=[["a"], ["x", "b"], ["x"], ["y"]], gold=[["a"], ["b"], [], ["z"]], metrics="recall@1 rr"
    )
    assert run.worst_rows().tolist() == [3, 1, 0, 2]


def test_long_texts_do_not_fill_the_page():
    long = "word " * 20_000
    rows = [{"query": long, "retrieved": [long], "gold": [long], "note": long}]
    section, held = Queries(karat.evaluate(rows, "rr", judge="exact"), {}).section()
    assert len(write(section)) + len(str(held)) < 20_000
