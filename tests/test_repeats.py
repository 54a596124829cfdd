"""Repeats: several rows per query of a nondeterministic retriever, with the query as the unit of every statistic."""

import json
from math import sqrt

import numpy as np
import pytest

import karat
from karat.errors import BadArgument, InputError
from karat.run.repeats import Repeats
from karat.scale.memory import MemoryLimits
from karat.stats import intervals

SMALL = MemoryLimits(3000, fewest_rows=7, item_bytes=0)
"""So little memory that a small file is read in pieces."""

RANKINGS = {"q1": (["a", "b"], ["b", "a"]), "q2": (["x", "y"], ["x", "z"])}
"""The reciprocal rank of a is 1 and 0.5 in q1, 0 in q2: the means are 0.75 and 0."""


def rows(rankings=RANKINGS, **more):
    return [
        {"id": query, "query": f"what is {query}?", "retrieved": list(items), "gold": ["a"], "repeat": number, **more}
        for query, each in rankings.items()
        for number, items in enumerate(each, 1)
    ]


def many(queries=30, repeats=3, seed=0):
    rng = np.random.default_rng(seed)
    chance = rng.random(queries)
    drawn = {
        f"q{i}": [["a", "b"] if rng.random() < chance[i] else ["b", "a"] for _ in range(repeats)]
        for i in range(queries)
    }
    return [{**row, "latency": float(rng.lognormal(4, 0.5)), "topic": "xy"[i % 2]} for i, row in enumerate(rows(drawn))]


def test_the_query_is_the_unit_of_the_mean():
    run = karat.evaluate(rows(), "rr")
    assert run.ids == ["q1 #1", "q1 #2", "q2 #1", "q2 #2"]
    assert run.queries == ["q1", "q2"]
    assert run.scores["rr"].tolist() == [1, 0.5, 0, 0]
    assert run.mean["rr"] == 0.375
    assert run.defined["rr"] == 2
    uneven = karat.evaluate(rows(RANKINGS | {"q1": (*RANKINGS["q1"], ["b", "a"], ["b", "a"])}), "rr")
    assert uneven.mean["rr"] == (2.5 / 4 + 0) / 2


def test_the_spread_between_repeats_can_be_checked_by_hand():
    of = karat.evaluate(rows(), "rr").spread["rr"]
    assert of.within == pytest.approx(0.25)  # squares 0.0625 + 0.0625 + 0 + 0, with two degrees of freedom
    assert of.share == pytest.approx(1 / 9)  # 0.0625 / 2 of the variance of 0.75 and 0, which is 0.28125
    assert of.width(float("inf")) == pytest.approx(sqrt(8 / 9))
    assert of.width(2) == pytest.approx(1)
    assert of.as_good_as == pytest.approx(2.25)


def test_the_interval_is_that_of_the_means_of_the_queries():
    run = karat.evaluate(many(), "rr")
    means = run.scores["rr"].reshape(30, 3).mean(axis=1)
    assert run.interval()["rr"] == pytest.approx(intervals({"rr": means})["rr"])
    assert run.summary("p50")["rr"].value == pytest.approx(np.median(means))
    assert run.interval()["rr"] == pytest.approx(run.averaged().interval()["rr"])


def coverage(seed, queries=100, repeats=5, sets=400):
    """The share of 95 % intervals that contain the true mean 0.5: over queries, and over rows as if independent."""
    rng = np.random.default_rng(seed)
    of = Repeats([str(i) for i in range(queries)], np.repeat(np.arange(queries), repeats))
    covered = np.zeros(2)
    for _ in range(sets):
        values = rng.binomial(1, np.repeat(rng.beta(0.5, 0.5, queries), repeats)).astype(float)
        found = intervals({"queries": of.average(values), "rows": values})
        covered += [found[name].low <= 0.5 <= found[name].high for name in ("queries", "rows")]
    return covered / sets


def test_intervals_over_queries_cover_and_intervals_over_rows_do_not():
    over_queries, over_rows = coverage(seed=1)
    assert 0.93 <= over_queries <= 0.975
    assert over_rows < 0.85


def test_the_share_of_the_repeats_is_estimated_without_bias():
    rng, queries, repeats = np.random.default_rng(2), 60, 4
    of = Repeats([str(i) for i in range(queries)], np.repeat(np.arange(queries), repeats))
    drawn = [np.repeat(rng.normal(0, 1, queries), repeats) + rng.normal(0, 2, queries * repeats) for _ in range(300)]
    found = np.mean([(of.spread(values).within, of.spread(values).share) for values in drawn], axis=0)
    assert found == pytest.approx([2, 0.5], abs=0.02)  # W/R = 4/4 of B + W/R = 1 + 1


def test_what_is_shown(tmp_path):
    run = karat.evaluate(many(), "rr")
    shown = str(run)
    assert "30 queries × 3 repeats" in shown
    assert "SD of repeats" in shown
    assert "95 % intervals over 30 queries" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if "SD of" in line)
    assert run.table.columns[:2] == ["query_id", "repeat"]
    assert run.table["query_id"].to_list()[:4] == ["q0", "q0", "q0", "q1"]
    assert run.table["repeat"].to_list()[:4] == [1, 2, 3, 1]
    data = run.to_dict()
    assert (data["queries"], data["rows"], data["repeats"]["most"]) == (30, 90, 3)
    assert "SD of repeats" in run.to_markdown()
    assert "SD of repeats" in run._repr_html_()
    run.report(tmp_path / "page.html", baseline=karat.evaluate(many(seed=1), "rr"))
    page = (tmp_path / "page.html").read_text()
    assert "30 queries × 3 repeats" in page
    assert "q0 #2" in page
    uneven = karat.evaluate(rows()[:3], "rr")
    assert "2 queries × 1 to 2 repeats" in str(uneven)


def test_repeats_survive_files_merging_and_taking(tmp_path):
    run = karat.evaluate(many(), "rr")
    run.save(tmp_path / "run.parquet")
    loaded = karat.load(tmp_path / "run.parquet")
    assert loaded.to_dict()["interval"] == run.to_dict()["interval"]
    assert loaded.spread == run.spread
    first, others = (run.take([i for i in range(90) if (i % 3 == 0) is whole]) for whole in (True, False))
    merged = karat.merge([first, others])
    assert merged.mean["rr"] == pytest.approx(run.mean["rr"])
    assert merged.interval()["rr"] == pytest.approx(run.interval()["rr"])
    assert merged.spread["rr"] == pytest.approx(run.spread["rr"])
    assert run.by("topic").queries == {"queries": [30, 30]}
    assert [len(part.queries) for part in run.by("repeat").values()] == [30, 30, 30]


def test_repeats_are_the_same_in_processes_and_batches(tmp_path):
    given = many()
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, given)))
    whole = karat.evaluate(given, "rr").to_dict()
    for run in (
        karat.evaluate(tmp_path / "rows.jsonl", "rr", memory=SMALL),
        karat.evaluate(given, "rr", jobs=2, judge="text"),
    ):
        assert {name: run.to_dict()[name] for name in ("mean", "interval", "repeats")} == {
            name: whole[name] for name in ("mean", "interval", "repeats")
        }


def test_repeats_from_csv_are_numbers(tmp_path):
    lines = ["id,retrieved,gold,repeat,latency", 'q1,"[""a""]","[""a""]",1,12.5', 'q1,"[""b""]","[""a""]",2,13.5']
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    run = karat.evaluate(tmp_path / "rows.csv", "rr")
    assert run.ids == ["q1 #1", "q1 #2"]
    assert run.summary("mean")["latency"].value == 13


def test_results_with_repeats_join_gold_without_them():
    results = [{name: row[name] for name in ("id", "retrieved", "repeat")} for row in rows()]
    gold = [{"id": query, "gold": ["a"], "topic": "t"} for query in ("q2", "q1", "q3")]
    run = karat.evaluate(retrieved=results, gold=gold, metrics="rr")
    assert run.ids == ["q2 #1", "q2 #2", "q1 #1", "q1 #2", "q3"]
    assert run.mean["rr"] == pytest.approx((0.75 + 0 + 0) / 3)
    assert run.provenance.missing == 1


def test_a_query_is_a_failure_if_all_its_repeats_are():
    run = karat.evaluate(rows(), "rr")
    failed = {1: "timeout", 2: "timeout", 3: "timeout"}
    scores = np.where([False, True, True, True], np.nan, run.scores["rr"])
    some = run.replace(hits=run.all_hits.replace(failed=failed), scores={"rr": scores})
    assert some.mean["rr"] == 1
    assert list(some.failures) == ["q1 #2", "q2 #1", "q2 #2"]
    assert some.averaged().failures == {"q2": "timeout"}
    assert some.undefined["rr"] == 1
    assert some.bounds()["rr"] == some.averaged().bounds()["rr"] == (0.25, 1.0)  # q1: 1 and 0 or 1; q2: 0 or 1


def test_failed_repeats_are_seen_by_gates_and_comparisons():
    given = many()
    for row in given[::3]:
        row |= {"error": "503"}
        del row["retrieved"]
    run = karat.evaluate(given, "rr")
    assert (run.judged, run.judged_rows, run.averaged().failures) == (30, 60, {})
    failed = karat.gate(run, "rr >= 0.1", min_judged=0.95)
    assert not failed.passed
    assert failed.checks[0].text == "60 of 90 repeats were judged: the rules were not checked"
    found = karat.gate(run, "rr >= 0.1", min_judged=0.6)
    assert found.passed
    assert "Not judged: q0 #1, q1 #1" in " ".join(found.remarks())
    once = karat.evaluate([row for row in many() if row["repeat"] == 1], "rr")
    assert "B: 60 of 90 repeats were judged." in karat.compare(once, run).remarks()
    low, high = run.bounds()["rr"]
    assert (low, high) == pytest.approx((run.mean["rr"] * 2 / 3, run.mean["rr"] * 2 / 3 + 1 / 3))


def test_a_comparison_pairs_the_means_of_the_queries():
    once = [{**row, "repeat": None} for row in many() if row["repeat"] == 1]
    first, second = karat.evaluate(once, "rr"), karat.evaluate(many(), "rr")
    found = karat.compare(first, second)
    assert len(found) == 30
    means = second.scores["rr"].reshape(30, 3).mean(axis=1)
    assert found.rows[0].difference == pytest.approx(means.mean() - first.scores["rr"].mean())
    assert found.rows[0].won == int((means > first.scores["rr"]).sum())
    assert "Repeats in B" in str(found)
    assert len(found.by("topic")) == 2
    assert found.moved(3)[0].query_id in second.queries
    assert karat.compare(second, second).rows[0].verdict == "same"
    assert {row.verdict for row in karat.compare(second, second).numbers} == {"same"}


def test_a_gate_is_over_queries():
    run = karat.evaluate(many(), "rr")
    found = karat.gate(run, "rr >= 0.5", "rr no-drop", "latency p95 <= 1s", baseline=run)
    assert found.passed
    assert found.checks[0].figures["queries"] == 30
    assert found.checks[2].figures["queries"] == 30


def test_latency_is_that_of_all_calls():
    run = karat.evaluate(many(), "rr")
    calls = run.numbers["latency"]
    assert len(calls) == 90
    assert run.summary("p95")["latency"].value == pytest.approx(np.quantile(calls, 0.95))
    assert run.summary("mean")["latency"].n == 30


def test_bounds_are_means_over_the_repeats():
    graded = [{**row, "gold": {"a": 1, "n": 0}} for row in rows()]
    run = karat.evaluate(graded, "precision@2")
    low, high = run.bounds()["precision@2"]
    assert low == run.mean["precision@2"] == 0.25
    assert high == 1
    assert run.averaged().bounds() == run.bounds()


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "first", [1]])
def test_wrong_numbers_are_refused(bad):
    with pytest.raises(InputError, match='field "repeat"'):
        karat.evaluate([{**rows()[0], "repeat": bad}], "rr")


def test_the_same_repeat_twice_is_refused():
    with pytest.raises(InputError, match='the same id "q1 #1"'):
        karat.evaluate([rows()[0], rows()[0]], "rr")


def test_repeats_need_ids():
    with pytest.raises(InputError, match='need an "id"'):
        karat.evaluate([{name: value for name, value in row.items() if name != "id"} for row in rows()], "rr")


def test_an_id_with_the_ending_of_a_repeat_is_an_id():
    given = [{**rows()[0], "id": "q #2", "repeat": 1}, {**rows()[1], "id": "q #2", "repeat": 2}]
    assert karat.evaluate(given, "rr").queries == ["q #2"]
    alone = [{name: value for name, value in row.items() if name != "repeat"} for row in given[:1]]
    assert karat.evaluate(alone, "rr").repeats is None


def test_analyses_of_rows_refuse_repeats(tmp_path):
    run = karat.evaluate(rows(), "rr")
    with pytest.raises(BadArgument, match="calibrate takes one row per query"):
        karat.calibrate(run, [{"query_id": "q1", "score": 1.0}])
    with pytest.raises(BadArgument, match="stages takes one row per query"):
        karat.stages({"a": run, "b": run})
    staged = [{**row, "stages": {"a": row["retrieved"], "b": ["a"]}} for row in rows()]
    for row in staged:
        del row["retrieved"]
    assert karat.stages(staged, "rr").comparison[0].rows[0].n == 2  # queries, not rows
    assert karat.stages(staged[::2], "rr").runs["b"].ids == ["q1 #1", "q2 #1"]
    for results in (run, rows()):
        with pytest.raises(BadArgument, match="a comparison without gold takes one row per query"):
            karat.overlap(results, results)
    with pytest.raises(BadArgument, match="a comparison with bounds takes one row per query"):
        karat.compare(run, run).bounds  # noqa: B018
    with pytest.raises(BadArgument, match="fuse takes one row per query"):
        karat.fuse(run, run)
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(json.dumps({k: row[k] for k in ("id", "retrieved", "repeat")}) for row in many()))
    with pytest.raises(InputError, match="need more memory"):
        karat.evaluate(
            retrieved=path, gold=[{"id": f"q{i}", "gold": ["a"]} for i in range(30)], metrics="rr", memory=SMALL
        )


def test_steps_and_stages_are_repeated_with_their_query():
    asked = [("q1", 1, "a"), ("q1", 2, "x"), ("q2", None, "a")]
    steps = [
        {"id": i, "repeat": n, "steps": [[found], ["a"]], "gold": ["a"], "trace_id": f"t{n}"} for i, n, found in asked
    ]
    run = karat.evaluate(steps, "rr", at="step")
    assert run.ids == ["q1#1 #1", "q1#2 #1", "q1#1 #2", "q1#2 #2", "q2#1", "q2#2"]
    assert run.queries == ["q1#1", "q1#2", "q2#1", "q2#2"]
    assert run.mean["rr"] == (0.5 + 1 + 1 + 1) / 4
    stages = [{"id": i, "repeat": n, "stages": {"one": ["x"], "two": [found]}, "gold": ["a"]} for i, n, found in asked]
    compared = karat.stages(stages, "rr")
    found = compared.runs["two"]
    assert len(compared) == 2
    assert (found.queries, found.mean["rr"]) == (["q1", "q2"], (0.5 + 1) / 2)


def test_one_repeat_of_each_query_is_as_without_repeats():
    run = karat.evaluate([row for row in many() if row["repeat"] == 2], "rr")
    assert run.spread == {}
    assert "SD of repeats" not in str(run)
    assert run.averaged().ids == [f"q{i}" for i in range(30)]


def test_the_worst_of_each_family_is_over_queries():
    given = [{**row, "family": "f"} for row in rows()]
    assert karat.evaluate(given, "rr").summary("worst(family)")["rr"].value == 0
    assert karat.evaluate(given[:2], "rr").summary("worst(family)")["rr"].value == 0.75


def test_rows_without_a_number_are_queries_of_their_own():
    given = [*rows()[:2], {"id": "q2", "retrieved": ["a"], "gold": ["a"], "repeat": ""}]
    run = karat.evaluate(given, "rr")
    assert run.ids == ["q1 #1", "q1 #2", "q2"]
    assert run.mean["rr"] == (0.75 + 1) / 2


def test_gold_with_repeats_of_its_own_is_joined_row_by_row():
    results = [{name: row[name] for name in ("id", "retrieved", "repeat")} for row in rows()]
    gold = [{"id": row["id"], "repeat": row["repeat"], "gold": ["b"]} for row in rows()]
    assert karat.evaluate(retrieved=results, gold=gold, metrics="rr").mean["rr"] == (0.75 + 0) / 2


def test_single_rows_have_no_spread():
    of = Repeats(["a", "b"], np.array([0, 1]))
    assert np.isnan(of.spread(np.array([0.0, 1.0]))[:2]).all()
    assert np.isnan(Repeats(["a"], np.array([0, 0])).spread(np.array([0.0, 1.0])).share)
    assert Repeats(["a", "b"], np.array([0, 0, 1, 1])).spread(np.ones(4)).share == 0


def test_spark_refuses_repeats():
    tables = pytest.importorskip("karat.scale.spark.tables")

    class Table:
        columns = ("id", "retrieved", "gold", "repeat")

        def mapInArrow(self):  # noqa: N802
            """Only its name matters."""

    with pytest.raises(BadArgument, match="not supported on Spark"):
        tables.prepare(Table(), None)


def test_a_sample_has_its_repeat_and_latency_in_meta():
    given = [
        karat.Sample(id="q1", retrieved=["a"] if n == 1 else ["b"], gold=["a"], meta={"repeat": n, "latency": 10 * n})
        for n in (1, 2)
    ]
    run = karat.evaluate(given, "rr")
    assert run.ids == ["q1 #1", "q1 #2"]
    assert run.mean["rr"] == 0.5
    assert run.summary("mean")["latency"].value == 15
