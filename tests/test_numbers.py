"""Numbers beside the scores: latency and other numeric fields of the samples, in runs, comparisons, gates and files."""

import json
from math import nan

import numpy as np
import pytest

import karat
from karat._internal.display import quantity, quantity_span
from karat.errors import BadArgument, InputError, UnknownName
from karat.run.numbers import read_fields
from karat.scale.memory import MemoryLimits

SMALL = MemoryLimits(3000, fewest_rows=7, item_bytes=0)
"""So little memory that a small file is read in pieces."""

LATENCIES = [10.0, 20.0, 30.0, 40.0, 1000.0]
"""p50 30, p95 40 + 0.8 · 960 = 808, mean 220."""


def samples(latencies=LATENCIES, **fields):
    rows = []
    for i, latency in enumerate(latencies):
        more = {name: values[i] for name, values in fields.items()}
        rows.append(
            {"id": f"q{i}", "retrieved": ["a", "b"], "gold": ["a" if i % 2 else "b"], "latency": latency, **more}
        )
    return rows


def test_latency_is_summarised_without_being_named():
    run = karat.evaluate(samples(), "rr")
    assert run.numbers["latency"].tolist() == LATENCIES
    assert run.summary("p50")["latency"].value == 30
    assert run.summary("p95")["latency"].value == pytest.approx(808)
    assert run.summary("mean")["latency"].value == 220
    assert "30 ms" in str(run)
    assert "808 ms" in str(run)
    assert "220 ms" in str(run)
    assert list(run.mean) == ["rr"]


def test_other_fields_are_summarised_on_request():
    rows = samples(
        cost=[0.001, 0.002, 0.003, 0.004, 0.005], usage=[{"total": i, "at": {"end": 2 * i}} for i in range(5)]
    )
    assert list(karat.evaluate(rows, "rr").numbers) == ["latency"]
    run = karat.evaluate(rows, "rr", also="cost, usage.total")
    assert list(run.numbers) == ["latency", "cost", "usage.total"]
    assert run.summary("mean")["cost"].value == pytest.approx(0.003)
    assert run.summary("p50")["usage.total"].value == 2
    assert karat.evaluate(rows, "rr", also=["usage.at.end"]).summary("p50")["usage.at.end"].value == 4
    assert karat.evaluate(rows, "rr").also("cost").also("usage.total").numbers.keys() == run.numbers.keys()


def test_an_interval_of_a_quantile_is_between_two_of_the_values():
    values = [float(i) for i in range(1, 11)]
    found = karat.evaluate(samples(values), "rr").summary("p50")["latency"]
    assert (found.low, found.high) == (2, 9)  # of ten values: P(at most one below the median) = 11 / 1024


def test_missing_values_and_failures_are_undefined():
    rows = samples([1.0, None, float("nan"), "", "12.5"])
    run = karat.evaluate(rows, "rr")
    assert np.isnan(run.numbers["latency"]).tolist() == [False, True, True, True, False]
    assert run.summary("mean")["latency"].value == 6.75
    assert run.to_dict()["numbers"]["latency"]["undefined"] == 3
    assert "latency: 3 of 5 queries without a number." in str(run)


def test_the_number_of_a_failed_query_is_not_counted():
    run = karat.evaluate(samples(), "rr")
    failed = run.replace(hits=run.all_hits.replace(failed={4: "timeout"}), scores={"rr": np.array([1.0, 1, 1, 1, nan])})
    assert failed.summary("mean")["latency"].value == 25
    assert failed.to_dict()["numbers"]["latency"]["undefined"] == 1


@pytest.mark.parametrize("bad", [True, "fast", "1_000", "12ms", [1], float("inf"), "1e999"])
def test_what_is_no_number_is_refused_with_its_query(bad):
    with pytest.raises(InputError, match=r'query "q1": field "cost"'):
        karat.evaluate(samples(cost=[1, bad, 2, 3, 4]), "rr", also="cost")
    assert "latency" not in karat.evaluate(samples([1, bad, 2, 3, 4]), "rr").numbers


def test_negative_numbers_are_allowed_except_in_latencies():
    assert karat.evaluate(samples(gain=[-1, -2, 0, 1, 2]), "rr", also="gain").summary("mean")["gain"].value == 0
    assert not karat.evaluate(samples([1, -1, 2, 3, 4]), "rr").numbers
    with pytest.raises(InputError, match=r'query "q1": latency is -1'):
        karat.evaluate(samples([1, -1, 2, 3, 4]), "rr", also="latency")


def test_unknown_fields_and_metrics_are_refused():
    with pytest.raises(UnknownName, match="costs") as caught:
        karat.evaluate(samples(cost=[1] * 5), "rr", also="costs")
    assert "cost" in caught.value.hint
    with pytest.raises(BadArgument, match="rr is a metric"):
        karat.evaluate(samples(rr=[1] * 5), "rr", also="rr")
    for wrong in ("", "cost,", "cost(most)", [3]):
        with pytest.raises(BadArgument):
            read_fields(wrong)


def test_less_is_better_unless_the_caller_says_otherwise():
    assert [str(field) for field in read_fields("cost, clicks(more), x(less)")] == ["cost", "clicks(more)", "x"]
    few, many = ([{**row, "clicks": i + add} for i, row in enumerate(samples([1.0] * 20))] for add in (0, 5))
    runs = [karat.evaluate(rows, "rr") for rows in (few, many)]
    verdicts = {name: karat.compare(*runs, also=name).numbers[-1].verdict for name in ("clicks", "clicks(more)")}
    assert verdicts == {"clicks": "worse", "clicks(more)": "better"}


def test_numbers_survive_files_merging_and_taking(tmp_path):
    run = karat.evaluate(samples(cost=[1, 2, 3, 4, 5]), "rr", also="cost(more)")
    run.save(tmp_path / "run.parquet")
    loaded = karat.load(tmp_path / "run.parquet")
    assert loaded.number_fields == run.number_fields
    assert loaded.to_dict()["numbers"] == run.to_dict()["numbers"]
    assert "cost" not in loaded.columns
    parts = [run.take([0, 1]), run.take([2, 3, 4])]
    assert karat.merge(parts).to_dict()["numbers"] == run.to_dict()["numbers"]
    assert run.take([4]).numbers["latency"].tolist() == [1000.0]
    assert (
        karat.evaluate(samples(topic=["x", "x", "y", "y", "y"]), "rr").by("topic")["x"].summary("mean")["latency"].value
        == 15
    )


def test_numbers_are_the_same_in_processes_and_batches(tmp_path):
    rows = [{**row, "cost": 0.5} for row in samples([float(i) for i in range(60)])]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    whole = karat.evaluate(rows, "rr", also="cost").to_dict()["numbers"]
    assert karat.evaluate(tmp_path / "rows.jsonl", "rr", also="cost", memory=SMALL).to_dict()["numbers"] == whole
    assert karat.evaluate(rows, "rr", also="cost", judge="text", jobs=2).to_dict()["numbers"] == whole


def test_the_table_of_a_run_has_each_number_once():
    run = karat.evaluate(samples(cost=[1, 2, 3, 4, 5], topic=["x"] * 5), "rr", also="cost")
    assert run.table.columns == ["query_id", "rr", "latency", "cost"]
    assert run.to_polars(fields=True).columns == ["query_id", "topic", "rr", "latency", "cost"]


def paired(before, after, **options):
    return karat.compare(karat.evaluate(samples(before), "rr"), karat.evaluate(samples(after), "rr"), **options)


def test_a_comparison_has_the_difference_of_each_summary():
    before = [float(i) for i in range(1, 101)]
    found = {row.statistic: row for row in paired(before, [value + 10 for value in before]).numbers}
    assert list(found) == ["p50", "p95", "mean"]
    assert all(row.pairs[0].difference == pytest.approx(10) for row in found.values())
    assert all(row.verdict == "worse" and row.pairs[0].worse == 100 for row in found.values())
    assert all(row.pairs[0].low <= 10 <= row.pairs[0].high for row in found.values())


def test_the_unit_of_a_number_changes_no_verdict():
    rng = np.random.default_rng(1)
    before, noise = rng.lognormal(4, 0.5, 40), rng.normal(2, 5, 40)
    figures = []
    for scale in (1e-6, 1.0, 1e6):
        rows = paired((before * scale).tolist(), ((before + noise).clip(0) * scale).tolist()).numbers
        pair = rows[-1].pairs[0]
        figures.append([pair.difference / scale, pair.low / scale, pair.high / scale, pair.p])
    assert figures[0] == pytest.approx(figures[1], rel=1e-6)
    assert figures[2] == pytest.approx(figures[1], rel=1e-6)


def test_few_queries_give_no_false_alarm():
    rows = paired([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 3.0, 4.0, 5.0, 6.0]).numbers
    assert [row.verdict for row in rows] == ["cannot tell"] * 3
    assert np.isnan([row.pairs[0].p for row in rows[:2]]).all()
    alarms = 0
    rng = np.random.default_rng(5)
    for _ in range(60):
        both = rng.lognormal(4, 1, (2, 10))
        alarms += any(row.verdict != "cannot tell" for row in paired(*both.tolist()).numbers)
    assert alarms <= 6


def test_equal_numbers_are_the_same():
    found = paired(LATENCIES * 4, LATENCIES * 4).numbers
    assert {row.verdict for row in found} == {"same"}
    assert found[-1].pairs[0][2:6] == (0, 0, 0, 1)


def test_three_runs_are_compared_in_pairs():
    runs = [karat.evaluate(samples([value + add for value in range(1, 31)]), "rr") for add in (0, 5, 10)]
    found = karat.compare(*runs)
    assert [len(row.pairs) for row in found.numbers] == [3, 3, 3]
    assert "latency p95" in str(found)
    assert "latency p95" in found.to_markdown()
    assert "latency p95" in found.to_latex()


def test_a_comparison_shows_numbers_in_every_form(tmp_path):
    found = paired([float(i) for i in range(1, 81)], [2.0 * i for i in range(1, 81)])
    assert "+40.5 ms" in str(found)
    for form in (found.to_markdown(), found.to_latex(), found._repr_html_()):
        assert "latency p50" in form
    data = found.to_dict()["numbers"][0]
    assert (data["field"], data["summary"], data["values"], data["verdict"]) == (
        "latency", "p50", {"A": 40.5, "B": 81.0}, "worse",
    )  # fmt: skip
    found.runs[1].report(tmp_path / "page.html", baseline=found.runs[0])
    page = (tmp_path / "page.html").read_text()
    assert "Numbers of both runs" in page
    assert "Numbers of the samples" in page
    assert "Numbers of the samples" not in _page(karat.evaluate(samples([None] * 5), "rr"), tmp_path)


def _page(run, folder):
    run.report(folder / "other.html")
    return (folder / "other.html").read_text()


@pytest.mark.parametrize(
    ("rule", "passed"),
    [
        ("latency p95 <= 808ms", True),
        ("latency p95 <= 807.9ms", False),
        ("latency p95 <= 0.809s", True),
        ("latency p95 <= 0.0134 min", False),
        ("latency p50 <= 30", True),
        ("latency p50 < 30000us", False),
        ("latency median >= 29", True),
        ("latency mean upper <= 1s", False),
        ("cost mean <= 0.003", True),
        ("cost mean < 0.003", False),
        ("usage.total mean <= 2", True),
        ("gain p50 >= -1", True),
    ],
)
def test_a_gate_limits_numbers(rule, passed):
    fields = {"cost": [0.001, 0.002, 0.003, 0.004, 0.005], "usage": [{"total": i} for i in range(5)], "gain": [-1] * 5}
    found = karat.gate(karat.evaluate(samples(**fields), "rr"), rule)
    assert found.passed is passed, str(found)


def test_a_rule_is_shown_in_the_unit_of_its_field():
    found = karat.gate(karat.evaluate(samples(), "rr"), "latency p95 <= 0.9s", "latency mean <= 10ms")
    assert [check.rule for check in found.checks] == ["latency p95 <= 900ms", "latency mean <= 10ms"]
    assert found.checks[0].text == "808 ms [40, –]"
    assert "latency p95 &lt;= 900ms" in found.to_junit()
    assert found.checks[1].figures["mean"] == 220


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("latency <= 300ms", "limits its p50, p95 or mean"),
        ("latency never <= 0.1", "limits its p50, p95 or mean"),
        ("latency p95 <= 300kg", "its units are us"),
        ("latency p95 <= 300MS", "its units are us"),
        ("latency p95 <= fast", "compared with a number"),
        ("latency p95 <= 1.2.3", "compared with a number"),
        ("cost mean <= 3ms", "cost has no unit"),
        ("latency no-rise 10%", "needs a summary"),
        ("latency p95 no-rise", "needs a tolerance"),
        ("latency p95 no-drop 10%", "less is better in latency: a drop is no loss"),
        ("latency p95 no-rise 10kg", "its units are us"),
        ("latency p95 no-rise -5%", "a tolerance must be a number from 0"),
        ("latency p95 no-rise much", "compared with a number"),
        ("latency gm no-rise 10%", "the change of gm is not compared"),
        ("price mean <= 3", "no metric in this run"),
    ],
)
def test_wrong_rules_about_numbers_are_refused(rule, problem):
    with pytest.raises(karat.KaratError, match=problem):
        karat.gate(karat.evaluate(samples(cost=[1] * 5), "rr"), rule)


def test_an_end_that_too_few_queries_have_fails_with_the_reason():
    found = karat.gate(karat.evaluate(samples(), "rr"), "latency p95 upper <= 2000ms")
    assert found.verdict == "failed"
    assert "5 queries are too few for the upper end of an interval of p95: it takes at least 72" in found.checks[0].text
    found = karat.gate(karat.evaluate(samples([1.0, 2.0]), "rr"), "latency mean upper <= 2000ms")
    assert "2 queries are too few" in found.checks[0].text


@pytest.mark.parametrize(("given", "meant"), [("10S", "10s"), ("5k", "5000ms"), ("3 weeks", "300ms")])
def test_the_suggested_limit_is_of_the_same_size_or_only_an_example(given, meant):
    with pytest.raises(BadArgument) as caught:
        karat.gate(karat.evaluate(samples(), "rr"), f"latency p95 <= {given}")
    assert caught.value.hint == f'"latency p95 <= {meant}"'


def test_summaries_show_the_numbers_with_their_unit():
    shown = str(karat.evaluate(samples(), "rr"))
    assert "latency: 5 queries are too few for both ends of an interval: p50 takes 6, p95 takes 72." in shown
    run = karat.evaluate(samples(topic=["x", "x", "y", "y", "y"]), "rr")
    assert run.summary("worst(topic)")["latency"].value == (20 + 1000) / 2
    assert run._render("terminal", summary=["p10"]).count("14 ms") == 1
    assert "Less is better in latency" in run._render("terminal", summary=["p10"])


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (42.0, "ms", "42 ms"), (42.13, "ms", "42.1 ms"), (1200.0, "ms", "1.2 s"), (999.4, "ms", "999 ms"),
        (0.25, "ms", "0.25 ms"), (999.9, "ms", "1 s"), (123456.0, "ms", "123 s"), (0.00192, "", "0.00192"),
        (12345.6, "", "12,346"), (0.0, "", "0"), (1e-9, "", "1e-09"), (nan, "ms", "–"), (-3.14159, "", "-3.14"),
    ],
)  # fmt: skip
def test_a_quantity_has_three_digits_and_its_unit(value, unit, shown):
    assert quantity(value, unit) == shown


def test_an_interval_has_the_unit_of_its_value():
    assert quantity_span(900, 1400, 1200, "ms") == "[0.9, 1.4]"
    assert quantity_span(40, nan, 42, "ms") == "[40, –]"
    assert quantity_span(nan, nan, 42, "ms") == ""
    assert quantity_span(-0.0, 0.0, -0.0, "ms", "+") == "[0, 0]"


def test_a_custom_metric_of_the_same_name_comes_first():
    run = karat.evaluate(samples(), "rr")
    named = run.replace(
        metrics=(*run.metrics, karat.Metric("latency")), scores={**run.scores, "latency": run.scores["rr"]}
    )
    assert not named.numbers


def test_a_number_that_only_one_run_has_is_not_compared():
    with_it, without = karat.evaluate(samples(), "rr"), karat.evaluate(samples([None] * 5), "rr")
    assert karat.compare(with_it, without).numbers == []
    assert karat.compare(without, with_it).numbers == []
    first, second = (karat.evaluate(samples(each), "rr") for each in ([1, 2, None, None, None], [None, None, 1, 2, 3]))
    assert karat.compare(first, second).numbers == []
    assert karat.compare(with_it, with_it, metrics="rr").numbers == ()


@pytest.mark.parametrize(
    ("rule", "passed"),
    [
        ("latency p50 no-rise 10ms", True),
        ("latency p50 no-rise 9.9ms", False),
        ("latency p50 no-rise 0.01s", True),
        ("latency mean no-rise 5%", True),
        ("latency mean no-rise 4%", False),
        ("cost mean no-rise 0", True),
        ("clicks mean no-drop 0%", False),
        ("clicks mean no-drop 50%", True),
    ],
)
def test_a_gate_limits_the_change_from_the_baseline(rule, passed):
    before = karat.evaluate(samples(cost=[1] * 5, clicks=[2] * 5), "rr", also="clicks(more)")
    slower = samples([value + 10 for value in LATENCIES], cost=[1] * 5, clicks=[1] * 5)
    found = karat.gate(karat.evaluate(slower, "rr", also="clicks(more)"), rule, baseline=before)
    assert found.passed is passed, str(found)
    assert found.checks[0].rule == rule.replace("0.01s", "10ms")


def test_a_change_needs_a_baseline_with_the_field():
    run = karat.evaluate(samples(), "rr")
    assert karat.gate(run, "latency p95 no-rise 10%").verdict == "undecided"
    for latencies in ([None] * 5, ["?"] * 5):
        with pytest.raises(karat.KaratError, match="latency"):
            karat.gate(run, "latency p95 no-rise 10%", baseline=karat.evaluate(samples(latencies), "rr"))
    found = karat.gate(run, "latency p50 no-rise 10%", baseline=karat.evaluate(samples([20.0] * 5), "rr"))
    assert found.checks[0].text == "20 ms → 30 ms (+10 ms, 5 queries)"
    assert found.exit_code == 1


def test_a_latency_that_is_no_number_is_said():
    given = [{"retrieved": ["a"], "gold": ["a"], "latency": value} for value in ("12ms", 3, -1)]
    run = karat.evaluate(given, "rr")
    assert not run.numbers
    assert "latency is not shown: 2 of 3 values are not a number from 0, such as '12ms'." in str(run)
    assert "latency" not in str(karat.evaluate([{**row, "latency": None} for row in given], "rr"))


def test_a_number_of_one_run_alone_is_said():
    first = karat.evaluate(samples(cost=[1] * 5), "rr", also="cost")
    found = karat.compare(first, karat.evaluate(samples(), "rr"))
    assert "Not in every run and not compared: cost of A." in found.remarks()
    assert {row.field.name for row in found.numbers} == {"latency"}


def test_many_runs_have_summaries_of_numbers_and_no_tests(monkeypatch):
    runs = [karat.evaluate(samples([value + i for value in LATENCIES]), "rr") for i in range(4)]
    monkeypatch.setattr("karat.analysis.number_tests.paired_calls", None)
    found = karat.compare(*runs)
    assert [of.value for of in found.numbers[0].summaries] == [30, 31, 32, 33]
    assert {(row.pairs, row.verdict) for row in found.numbers} == {((), "not tested")}
    for shown in (str(found), found.to_markdown(), found.to_latex(), found._repr_html_(), str(found.to_dict())):
        assert "by a bootstrap" not in shown
