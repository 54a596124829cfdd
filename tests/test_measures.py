"""Measures, which have a unit: their values, summaries, tests and rules, and every form in which they are shown."""

from __future__ import annotations

import json
from math import inf, isnan, nan
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.analysis.measures import compare_measures
from karat.conventions import STANDARD
from karat.hits.combine import take
from karat.metrics import MEASURES, METRICS, parse
from karat.scale.memory import MemoryLimits
from karat.stats import sign_test, summarize_measure
from karat.stats.summary import quantile
from support.strategies import cases, hits_of

METRIC_NAMES = "recall@2 full_rank first_rank"
RETRIEVED = [["a", "b", "c"], ["c", "d"], ["x"], ["a", "q"], ["m", "n", "o", "p"]]
GOLD = [["a", "c"], ["d"], ["y"], [], ["p"]]
several = st.lists(cases(), min_size=1, max_size=5)


@pytest.fixture
def run():
    return karat.evaluate(retrieved=RETRIEVED, gold=GOLD, metrics=METRIC_NAMES)


def first_rank(q, rel=None):
    return min(q.ranks(rel), default=inf)


def full_rank(q, rel=None):
    found = q.items(rel)
    return max((rank for rank, _, _ in found), default=inf) if len(found) == q.size(rel) else inf


TWINS = {"first_rank": first_rank, "full_rank": full_rank}


def test_every_measure_of_ranks_has_a_twin():
    assert set(TWINS) == {name for name, own in MEASURES.items() if own.unit == "ranks"}
    assert not MEASURES.keys() & METRICS.keys()


@pytest.mark.parametrize("name", TWINS)
@settings(max_examples=60, deadline=None)
@given(queries=several)
def test_equals_its_twin(name, queries):
    for rel in (None, 2.0):
        metric = parse(name if rel is None else f"{name}(rel=2)")
        wanted = [TWINS[name](q, rel) if q.size(rel) and q.answerable else nan for q in queries]
        (values,) = metric.scores(hits_of(queries), STANDARD).values()
        np.testing.assert_array_equal(values, wanted)


@pytest.mark.parametrize("name", TWINS)
@settings(max_examples=40, deadline=None)
@given(queries=several, data=st.data())
def test_laws(name, queries, data):
    """At least 1, and the same alone, in a batch and in any order; the first rank is never below the full one."""
    (values,) = parse(name).scores(hits_of(queries), STANDARD).values()
    assert (np.isnan(values) | (values >= 1)).all()
    order = data.draw(st.permutations(range(len(queries))))
    (taken,) = parse(name).scores(take(hits_of(queries), np.array(order)), STANDARD).values()
    np.testing.assert_array_equal(taken, values[list(order)])
    first = parse("first_rank").scores(hits_of(queries), STANDARD)["first_rank"]
    full = parse("full_rank").scores(hits_of(queries), STANDARD)["full_rank"]
    assert (np.isnan(first) | (first <= full)).all()


def test_measures_are_no_scores(run):
    assert list(run.scores) == list(run.mean) == ["recall@2"]
    assert [str(measure) for measure in run.measures] == ["full_rank", "first_rank"]
    np.testing.assert_array_equal(run.measured["full_rank"], [3, 2, inf, nan, 4])
    np.testing.assert_array_equal(run.measured["first_rank"], [1, 2, inf, nan, 4])
    summary = run.measure_summary["full_rank"]
    assert (summary.median, summary.never, summary.defined) == (3.5, 1, 4)
    assert isnan(summary.mean), "a mean over the queries that reach it would hide the one that does not"
    assert summary.p90 == inf
    assert karat.score("full_rank", ["a", "b"], ["b"]) == 2


def test_conventions_leave_measures_undefined_without_gold():
    run = karat.evaluate(retrieved=[["a"], []], gold=[[], []], metrics="recall full_rank", convention="remem")
    assert np.isnan(run.measured["full_rank"]).all()


def test_a_query_that_could_not_be_judged_is_undefined():
    class Broken(karat.Judge):
        name = "broken"

        def __call__(self, samples, convention):
            return karat.judges.find_judge("ids")(samples, convention).replace(failed={1: "down"})

    run = karat.evaluate(retrieved=[["a"], ["b"]], gold=[["a"], ["b"]], metrics="recall full_rank", judge=Broken())
    np.testing.assert_array_equal(run.measured["full_rank"], [1, nan])
    assert run.measure_summary["full_rank"].defined == 1


def test_saved_merged_and_taken(run, tmp_path):
    run.save(tmp_path / "run.parquet")
    loaded = karat.load(tmp_path / "run.parquet")
    assert loaded.to_dict() == run.to_dict()
    assert loaded.table.equals(run.table)
    assert str(loaded.measure_summary) == str(run.measure_summary)
    merged = karat.merge([run.take([0, 1]), run.take([2, 3, 4])])
    np.testing.assert_array_equal(merged.measured["full_rank"], run.measured["full_rank"])
    assert run.take([0, 1]).measure_summary["full_rank"].median == 2.5
    assert str(run.replace(ids=run.ids).measure_summary) == str(run.measure_summary)


def test_in_pieces_and_in_processes(tmp_path):
    rows = [{"id": f"q{i}", "retrieved": r, "gold": g} for i, (r, g) in enumerate(zip(RETRIEVED, GOLD, strict=True))]
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = karat.evaluate(path, METRIC_NAMES)
    tiny = MemoryLimits(3000, fewest_rows=7, item_bytes=0)
    for other in (karat.evaluate(path, METRIC_NAMES, jobs=2), karat.evaluate(path, METRIC_NAMES, memory=tiny)):
        np.testing.assert_array_equal(other.measured["full_rank"], whole.measured["full_rank"])


@pytest.mark.parametrize("value", [-1.0, 1e9])
def test_a_run_file_with_another_value_is_refused_or_read(run, tmp_path, value):
    changed = run.replace(scores={**run.columns, "full_rank": np.full(5, value)})
    changed.save(tmp_path / "run.parquet")
    if value < 0:
        with pytest.raises(karat.KaratError, match="full_rank of query"):
            karat.load(tmp_path / "run.parquet")
    else:
        assert karat.load(tmp_path / "run.parquet").measure_summary["full_rank"].median == value


def test_measures_alone_are_refused():
    with pytest.raises(karat.KaratError, match="at least one metric"):
        karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="full_rank")
    with pytest.raises(karat.KaratError, match="takes no cutoff"):
        karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="full_rank@5")
    with pytest.raises(karat.KaratError, match="same in every library"):
        karat.rosetta(metrics="full_rank")


def test_every_form_shows_them(run):
    shown = str(run)
    assert "full_rank      3.5" in shown
    assert "1 of 4" in shown
    assert "worse than any number" in shown
    assert "| `full_rank` | 3.5 |" in run.to_markdown()
    assert "<td>3.5</td>" in run._repr_html_()
    assert run.to_dict()["measures"]["full_rank"] == {
        "unit": "ranks", "median": 3.5, "interval": [None, None], "p90": None, "mean": None, "never": 1, "undefined": 1,
    }  # fmt: skip


def test_report(run, tmp_path):
    run.report(tmp_path / "run.html", baseline=run)
    page = (tmp_path / "run.html").read_text("utf-8")
    assert "Every measure</caption>" in page
    assert "Every measure of both runs" in page


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.sampled_from([1.0, 2.0, 3.0, 7.0, inf]), min_size=1, max_size=12))
def test_quantiles(values):
    ordered = np.sort(np.array(values))
    middle = median(sorted(values))
    assert quantile(ordered, 0.5) == middle
    for share in (0.0, 0.25, 0.9, 1.0):
        value = quantile(ordered, share)
        assert (ordered <= value).mean() >= share - 1 / len(values)
        if np.isfinite(ordered).all():
            assert value == pytest.approx(np.quantile(ordered, share))


def test_interval_of_the_median_covers_it():
    """In at least 95 % of samples, as the binomial distribution promises; with 5 queries there is none."""
    random = np.random.default_rng(5)
    for size, least in ((6, 0.95), (25, 0.95), (1500, 0.93)):
        covered = [
            low <= 0.5 <= high
            for low, high in (
                summarize_measure(random.random(size)).interval for _ in range(2000 if size < 100 else 400)
            )
        ]
        assert np.mean(covered) >= least - 0.015, size
        assert np.mean(covered) < 1
    assert isnan(summarize_measure(random.random(5)).interval.low)


def test_sign_test_against_scipy():
    scipy_stats = pytest.importorskip("scipy.stats")
    for better, worse in ((0, 0), (5, 0), (6, 1), (3, 3), (20, 40), (900, 800)):
        wanted = scipy_stats.binomtest(better, better + worse).pvalue if better + worse else 1.0
        assert sign_test(better, worse) == pytest.approx(wanted, rel=0.01)
        assert sign_test(better, worse) == sign_test(worse, better)


def two_runs():
    """The second finds the gold of eight of ten queries one rank earlier; one is never found, one stays."""
    before = [["x", "y", "g"]] * 8 + [["x"], ["g"]]
    after = [["x", "g", "y"]] * 8 + [["x"], ["g"]]
    return [karat.evaluate(retrieved=own, gold=[["g"]] * 10, metrics="recall@1 full_rank") for own in (before, after)]


def test_compared():
    first, second = two_runs()
    (row,) = karat.compare(first, second).measures
    assert (row.measure, row.unit, row.verdict) == ("full_rank", "ranks", "better")
    assert (row.pairs[0].better, row.pairs[0].same, row.pairs[0].worse) == (8, 2, 0)
    assert row.pairs[0].p == pytest.approx(2 / 2**8)
    assert [own.median for own in row.summaries] == [3, 2]
    assert karat.compare(second, first).measures[0].verdict == "worse"
    assert karat.compare(first, first).measures[0].verdict == "same"
    assert not compare_measures([first.take([0]), first.take([0])], [np.array([0])] * 2)[0].pairs[0].better
    three = karat.compare(first, second, first)
    assert three.measures[0].pairs[0].p == pytest.approx(3 * 2 / 2**8)
    for comparison in (karat.compare(first, second), three):
        for form in (str(comparison), comparison.to_markdown(), comparison.to_latex(), comparison._repr_html_()):
            assert "full" in form
    assert karat.compare(first, second).to_dict()["measures"][0]["medians"] == {"A": 3, "B": 2}
    assert "full_rank  3 (1 never)  2 (1 never)  B       0.008" in str(karat.compare(first, second))


def test_a_measure_of_one_run_only_is_not_compared():
    first, second = two_runs()
    other = karat.evaluate(retrieved=[["g"]] * 10, gold=[["g"]] * 10, metrics="recall@1")
    assert karat.compare(first, other, allow_mismatch=True).measures == []
    assert second.measures


@pytest.mark.parametrize(
    ("rule", "passed", "text"),
    [
        ("full_rank median <= 3", True, "3: never reached in 1 of 10 queries"),
        ("full_rank median < 3", False, "3: never reached in 1 of 10 queries"),
        ("full_rank p90 <= 10", True, "3: never reached in 1 of 10 queries"),
        ("full_rank never <= 0.1", True, "10 %: never reached in 1 of 10 queries"),
        ("full_rank never < 0.1", False, "10 %: never reached in 1 of 10 queries"),
        ("full_rank mean <= 100", False, "never reached in 1 of 10 queries"),
    ],
)
def test_rules(rule, passed, text):
    first, _ = two_runs()
    first = first.replace(scores={**first.columns, "full_rank": np.array([3.0] * 9 + [inf])})
    if "p90" in rule:
        first = first.replace(scores={**first.columns, "full_rank": np.array([3.0] * 19 + [inf])[-10:]})
        text = text if first.measure_summary["full_rank"].p90 == 3 else "never: never reached in 1 of 10 queries"
        passed = first.measure_summary["full_rank"].p90 == 3
    (check,) = karat.gate(first, rule).checks
    assert (check.passed, check.text) == (passed, text)
    assert check.rule == rule


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("full_rank <= 5", "full_rank is a measure"),
        ("full_rank no-drop", "full_rank is a measure"),
        ("full_rank median <= x", "a number from 0 on"),
        ("full_rank never <= 5", "a share from 0 to 1"),
        ("first_rank median <= 5", "no measure in this run"),
    ],
)
def test_rules_that_make_no_sense(rule, message):
    with pytest.raises(karat.KaratError, match=message):
        karat.gate(two_runs()[0], rule)


def test_must_pass_needs_a_metric():
    first, second = two_runs()
    with pytest.raises(karat.KaratError, match="need a rule about a metric"):
        karat.gate(first, "full_rank median <= 5", must_pass=["1"])
    rules = ("recall@1 >= 0", "full_rank median <= 5")
    assert karat.gate(second, *rules, baseline=first, must_pass=["1"]).passed
    assert karat.gate(second, *rules, baseline=first).worst() == []
