"""Summaries beyond the mean: their values, intervals, differences, rules, and every form in which they are shown."""

from __future__ import annotations

import csv
import io
import json
from math import comb, exp, inf, isnan, log, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.cli import main
from karat.stats import paired_test, read_statistic, summarize
from karat.stats.paired_summary import _quantiles, paired_summary
from karat.stats.summary import least_queries, quantile_interval, worst_of_each

RANKS = [1, 2, 4, 5, 10, 1, 2, 2, 1, 1]
RR = [1, 1 / 2, 1 / 4, 1 / 5, 1 / 10, 1, 1 / 2, 1 / 2, 1, 1]
FAMILIES = ["a", "a", "b", "b", "c", "c", "c", None, None, "d"]
METRICS = "rr recall@1 full_rank"
_FEW = "10 queries are too few for the lower end of an interval of p10: it takes at least 36"


def samples(ranks, families=FAMILIES):
    """Queries whose one gold item is at these ranks."""
    return [
        {"id": f"q{i}", "retrieved": [*(f"x{j}" for j in range(rank - 1)), "g"], "gold": ["g"], "family": family}
        for i, (rank, family) in enumerate(zip(ranks, families, strict=True))
    ]


def run_of(ranks, families=None):
    return karat.evaluate(samples(ranks, families or [f"f{i // 3}" for i in range(len(ranks))]), METRICS)


@pytest.fixture(scope="module")
def run():
    return karat.evaluate(samples(RANKS), METRICS)


def test_values_by_hand(run):
    assert run.summary("median")["rr"].value == 0.5
    assert run.summary("p10")["rr"].value == pytest.approx(0.19)  # nine tenths of the way from 0.1 to 0.2
    assert run.summary("p90")["rr"].value == 1
    assert run.summary("gm")["rr"].value == pytest.approx(1600 ** (-1 / 10))  # one over the ranks
    # The lowest of a, b, c and d, and both queries without a family: 0.5, 0.2, 0.1, 1, and 0.5, 1.
    assert run.summary("worst", by="family")["rr"].value == pytest.approx(3.3 / 6)
    assert run.summary("worst(family)")["rr"].n == 6
    assert run.summary("worst(family)")["full_rank"].value == pytest.approx((2 + 5 + 10 + 1 + 2 + 1) / 6)
    assert run.summary("mean")["rr"][:3] == (run.mean["rr"], *run.interval()["rr"])
    assert run.summary("median")["mrr"] == run.summary("p50")["rr"]


def test_a_score_of_0_counts_as_the_floor_in_a_geometric_mean():
    run = karat.evaluate(retrieved=[["g"], ["x", "g"], ["x"]], gold=[["g"]] * 3, metrics="rr")
    assert run.summary("gm")["rr"].value == pytest.approx(exp((log(1) + log(0.5) + log(1e-5)) / 3))


def test_a_measure_that_is_never_reached(run):
    never = run.replace(scores={**run.columns, "full_rank": np.array([1.0, 2, 3, 4, 5, 6, 7, 8, inf, inf])})
    assert never.summary("p90")["full_rank"].value == inf
    assert never.summary("median")["full_rank"][:3] == (5.5, 2, inf)
    assert all(isnan(never.summary(name)["full_rank"].value) for name in ("mean", "gm", "worst(family)"))
    assert never.to_dict()["measures"]["full_rank"]["never"] == 2


def test_undefined_queries_and_families_are_left_out():
    values = np.array([nan, 0.5, nan, nan, 0.2])
    assert worst_of_each(values, np.array([0, 0, 1, 1, 2])).tolist()[::2] == [0.5, 0.2]
    assert summarize(values, read_statistic("median")).n == 2
    assert isnan(summarize(np.array([nan]), read_statistic("gm")).value)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=80), st.integers(1, 99))
def test_quantiles_are_those_of_numpy(values, percent):
    found = summarize(np.array(values), read_statistic(f"p{percent}"))
    assert found.value == pytest.approx(np.quantile(values, percent / 100), abs=1e-12)
    assert not found.low > found.value
    assert not found.high < found.value


def chance(size, share, counts):
    return sum(comb(size, i) * share**i * (1 - share) ** (size - i) for i in counts)


@pytest.mark.parametrize("share", [0.03, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("size", [1, 5, 6, 35, 36, 60, 200])
def test_intervals_are_the_narrowest_with_2_5_percent_outside_each_end(size, share):
    """The quantile is below the i-th value if fewer than i values are below it."""
    low, high = quantile_interval(np.arange(1.0, size + 1), share)
    for end in {int(low)} if low == low else {0}:
        assert not end or chance(size, share, range(end)) <= 0.025
        assert chance(size, share, range(end + 1)) > 0.025
    for end in {int(high)} if high == high else {size + 1}:
        assert end > size or chance(size, share, range(end, size + 1)) <= 0.025
        assert chance(size, share, range(end - 1, size + 1)) > 0.025


def test_the_least_number_of_queries():
    assert [least_queries(share) for share in (0.5, 0.1, 0.9, 0.25)] == [6, 36, 36, 13]
    # 0.9^35 = 0.0250 (a little more), 0.9^36 = 0.0225; 0.1^2 = 0.01.
    assert [least_queries(0.1, end=end) for end in ("lower", "upper")] == [36, 2]
    few = summarize(np.linspace(0, 1, 20), read_statistic("p10"))
    assert isnan(few.low)
    assert few.high == pytest.approx(5 / 19)


@pytest.mark.parametrize(("name", "size"), [("p10", 40), ("median", 12), ("p90", 40), ("gm", 20)])
def test_coverage(name, size):
    """A seeded simulation: at least 95 % of the intervals contain the true value."""
    random, statistic = np.random.default_rng(3), read_statistic(name)
    population = np.where(random.random(200_001) < 0.1, 0.0, random.beta(2, 1, 200_001))
    true = summarize(population, statistic).value
    found = [summarize(random.choice(population, size), statistic) for _ in range(600)]
    assert np.mean([one.low <= true <= one.high for one in found]) >= 0.935


@pytest.mark.parametrize("name", ["p10", "median", "gm"])
def test_false_alarms(name):
    """Two runs that differ by chance alone are called different in at most 5 % of the cases."""
    random, statistic, alarms = np.random.default_rng(4), read_statistic(name), 0
    for _ in range(60):
        base = random.random(40)
        first, second = (np.clip(base + random.normal(0, 0.2, 40), 0, 1) for _ in range(2))
        alarms += paired_summary(first, second, statistic).p < 0.05
    assert alarms <= 7


@pytest.mark.parametrize("name", ["p10", "median", "gm", "worst(family)"])
def test_differences(name):
    random = np.random.default_rng(5)
    first, family = random.random(60), np.arange(60) % 12
    second = np.clip(first + 0.6 * random.random(60), 0, 1)
    second[7] = nan
    statistic = read_statistic(name)
    found = paired_summary(first, second, statistic, family)
    order = random.permutation(60)
    assert paired_summary(first[order], second[order], statistic, family[order]) == found
    both = [np.where(np.isnan(second), nan, values) for values in (first, second)]
    both = [worst_of_each(values, family) for values in both] if "worst" in name else both
    before, after = (summarize(values, statistic).value for values in both)
    assert found.difference == pytest.approx(after - before)
    assert found.n == (12 if "worst" in name else 59)
    assert found.low < found.difference < found.high
    assert found.low > 0 or name in {"gm", "worst(family)"}  # as nothing lost, one large loss is not excluded
    assert found.p < 0.01
    back = paired_summary(second, first, statistic, family)
    assert back.difference == pytest.approx(-found.difference)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low), abs=0.03 if "p10" in name else 0.02)


def test_the_worst_of_each_family_is_tested_as_a_mean_over_families():
    first, second = np.array([0.1, 0.9, 0.5, 0.4, 0.3, 0.2]), np.array([0.3, 0.2, 0.6, 0.7, 0.9, 0.1])
    found = paired_summary(first, second, read_statistic("worst(f)"), np.array([0, 0, 1, 1, 2, 2]))
    assert found == paired_test([0.1, 0.4, 0.2], [0.2, 0.6, 0.1])


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=12), st.integers(1, 99))
@settings(max_examples=50)
def test_the_quantile_of_a_resample(drawn, percent):
    """Values with the number of times that each is drawn, which are as many as there are values."""
    values, times = np.sort([value for value, _ in drawn]), np.zeros(len(drawn), np.int64)
    for place, (_, offset) in enumerate(drawn):
        times[(place + offset) % len(drawn)] += 1
    expected = np.quantile(np.repeat(values, times), percent / 100)
    assert _quantiles(times[None, :], values, percent / 100)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("queries", [6, 7, 10])
def test_few_queries_have_no_smaller_p_than_a_sign_test(queries):
    found = paired_summary(np.ones(queries), np.zeros(queries), read_statistic("median"))
    assert 2 * 0.5**queries <= found.p < 0.05
    assert (found.low, found.high) == (-1, -1)


@pytest.mark.parametrize("queries", [6, 7, 8, 13])
def test_false_alarms_of_few_queries(queries):
    """A second run that is as often above as below the first; without the exchanges 12 % differ at 7."""
    random, statistic = np.random.default_rng(6), read_statistic("median")
    first = np.full(queries, 0.5)
    found = [paired_summary(first, random.choice([0.4, 0.6], queries), statistic) for _ in range(200)]
    assert sum(one.p < 0.05 for one in found) <= 14
    assert all(one.low <= 0 <= one.high for one in found if one.p >= 0.05)


def test_means_are_rounded_as_in_the_run():
    samples = [{"id": str(i), "retrieved": ["a", "b"], "gold": ["ab"[i % 3 > 0]]} for i in range(3)]
    run = karat.evaluate(samples, "recall@1", convention="beir")
    assert run.summary("mean")["recall@1"].value == run.mean["recall@1"] == 0.33333


def test_too_few_queries_have_no_difference_of_a_quantile():
    found = paired_summary(np.linspace(0, 1, 35), np.linspace(0, 0.9, 35), read_statistic("p10"))
    assert found.difference < 0
    assert isnan(found.low)
    assert isnan(found.p)


def test_after_saving_merging_and_in_processes(run, tmp_path):
    path = tmp_path / "run.parquet"
    run.save(path)
    parts = karat.merge([run.take([0, 1, 2]), run.take(range(3, 10))])
    source = tmp_path / "samples.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in samples(RANKS)))
    both = karat.evaluate(source, METRICS, jobs=2)
    for name in ("p10", "median", "gm", "worst(family)"):
        for other in (karat.load(path), parts, both):
            assert str(other.summary(name)) == str(run.summary(name))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("P50", "median"), ("p5", "p5"), ("worst( family )", "worst(family)"), ("worst(by=family)", "worst(family)")],
)
def test_names(text, canonical):
    assert str(read_statistic(text)) == canonical
    assert read_statistic(canonical) == read_statistic(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("p0",), "p1 to p99"),
        (("p100",), "p1 to p99"),
        (("p101",), "p1 to p99"),
        (("medain",), "Did you mean median"),
        (("worst",), "worst takes one field"),
        (("worst(a, b)",), "worst takes one field"),
        (("median", "family"), "only worst takes a field"),
        (("worst(famly)",), "Did you mean family"),
        ((3,), "a summary is a name"),
        (("p10 gm",), "no summary"),
    ],
)
def test_bad_names(run, arguments, message):
    with pytest.raises(karat.KaratError, match=message):
        run.summary(*arguments)


@pytest.mark.parametrize(
    ("rule", "passed", "text"),
    [
        ("rr p10 >= 0.19", True, "0.190 [–, 0.50]"),
        ("rr p10 > 0.19", False, "0.190 [–, 0.50]"),
        ("rr p10 lower >= 0.05", False, f"0.190: {_FEW}"),
        ("full_rank p90 upper <= 5.5", False, _FEW.replace("lower", "upper").replace("p10", "p90")),
        ("full_rank mean upper <= 5.5", False, "the mean of a measure has no interval"),
        ("rr p10 upper <= 0.50", True, "0.190 [–, 0.50]"),
        ("rr median >= 0.50", True, "0.500 [0.20, 1.00]"),
        ("rr median lower >= 0.21", False, "0.500 [0.20, 1.00]"),
        ("rr gm >= 0.30", True, "0.478 [0.02, 0.73]"),
        ("rr worst(family) >= 0.60", False, "0.550 [0.24, 0.85]"),
        ("full_rank p90 <= 5.5", True, "5.5"),
        ("full_rank worst(family) <= 3.5", True, "3.5"),
        ("full_rank median upper <= 5", True, "5"),
    ],
)
def test_rules(run, rule, passed, text):
    (check,) = karat.gate(run, rule).checks
    assert (check.rule, check.passed, check.text) == (rule, passed, text)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("rr p10 no-drop", "no-drop compares means"),
        ("rr never >= 0.3", "never is for measures"),
        ("rr p0 >= 0.3", "p1 to p99"),
        ("rr worst >= 0.3", "worst takes one field"),
        ("rr worst(other) >= 0.3", 'no field "other"'),
        ("full_rank never lower <= 0.3", "never has no interval"),
        ("rr p10 lowre >= 0.8", r'after p10 only lower or upper may follow(.|\n)*"rr p10 lower >= 0.8"'),
        ("rr p10 median >= 0.8", "after p10 only lower or upper may follow"),
        (
            "fullrank median <= 5",
            r'no metric in this run "fullrank". Did you mean full_rank\?(.|\n)*recall@1, full_rank',
        ),
    ],
)
def test_rules_that_make_no_sense(run, rule, message):
    with pytest.raises(karat.KaratError, match=message):
        karat.gate(run, rule)


def test_remarks_name_the_metrics_they_are_about():
    rows = [{"answerable": False, "retrieved": ["x"], "gold": []}] * 6 + samples(RANKS * 4, FAMILIES * 4)
    rows = [{**row, "id": str(i)} for i, row in enumerate(rows)]
    run = karat.evaluate(rows, "recall@1 false_alarm@5 full_rank")
    text = " ".join(run._render("terminal", summary=["p10"]).split())
    few = "6 queries are too few for both ends of an interval of p10 of false_alarm@5: it takes at least 36."
    assert text.count("too few") == 1
    assert few in text
    assert "Less is better in false_alarm@5 and full_rank: p90 is their worst tenth." in text
    assert "Less is better" not in run._render("terminal", summary=["p90"])
    compared = karat.compare(run, run, summary="p25", metrics="recall@1 false_alarm@5")
    assert "Less is better in false_alarm@5: p75 is its worst quarter." in str(compared)
    assert "6 queries are too few for a comparison of p25 of false_alarm@5: it takes at least 13." in str(compared)
    assert "Less is better" not in str(karat.compare(run, run, summary="p25", metrics="recall@1"))


def test_a_gate_on_p10_does_not_confuse_its_interval_with_that_of_the_mean():
    gate = karat.gate(run_of([1, 2, 3]), "rr p10 lower >= 0.1")
    assert gate.checks[0].text.endswith(
        "3 queries are too few for the lower end of an interval of p10: it takes at least 36"
    )
    assert "3 queries are too few for an interval of the mean: it takes at least 5." in gate.remarks()


def test_a_rule_for_each_cutoff_and_the_old_forms(run):
    rules = karat.gate(run, "rr mean >= 0.1", "rr lower >= 0.1", "recall@1 median <= 1").checks
    assert [check.rule for check in rules] == ["rr >= 0.10", "rr lower >= 0.10", "recall@1 median <= 1.00"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("summaries"), np.random.default_rng(6)
    before = random.integers(1, 9, 60)
    for name, ranks in (("main", before), ("branch", np.maximum(before - 3, 1)), ("other", before + 1)):
        run_of(ranks.tolist()).save(folder / f"{name}.parquet")
    return folder


def test_compare(files):
    main_run, branch = (karat.load(files / f"{name}.parquet") for name in ("main", "branch"))
    found = karat.compare(main_run, branch, metrics="rr", summary="p10")
    row = found.rows[0]
    assert row.means == tuple(one.summary("p10")["rr"].value for one in (main_run, branch))
    assert row.verdict == "better"
    assert row.low > 0
    families = karat.compare(main_run, branch, metrics="rr", summary="worst(family)")
    assert families.rows[0].n == 20
    assert not any("undefined" in remark for remark in families.remarks())
    assert karat.compare(main_run, branch, summary="mean").summary is None
    few = karat.compare(main_run.take(range(20)), branch.take(range(20)), metrics="rr", summary="p10")
    assert few.rows[0].verdict == "cannot tell"
    assert "20 queries are too few for a comparison of p10: it takes at least 36." in str(few)
    assert "at least 5" not in str(karat.compare(main_run.take(range(4)), branch.take(range(4)), summary="p10"))
    with pytest.raises(karat.KaratError, match="compare takes one summary"):
        karat.compare(main_run, branch, summary="p10,median")
    with pytest.raises(karat.KaratError, match="no field"):
        karat.compare(main_run, branch, summary="worst(other)")
    assert set(found.by("family")) == {f"f{i}" for i in range(20)}


def test_compare_on_the_command_line(files, capsys):
    paths = [str(files / f"{name}.parquet") for name in ("main", "branch", "other")]

    def shown(*arguments):
        assert main(["compare", *arguments]) == 0
        return capsys.readouterr().out

    text = shown(*paths[:2], "--metrics", "rr", "--summary", "worst(family)")
    assert text.splitlines()[2].split()[:3] == ["worst(family)", "main", "branch"]
    assert "the mean of the worst score in each family, over 20 families." in text
    matrix = shown(*paths, "--metrics", "rr", "--summary", "median")
    assert "(paired bootstrap, p < 0.05" in matrix
    values = json.loads(shown(*paths[:2], "--metrics", "rr", "--summary", "p10", "--format", "json"))
    assert values["summary"] == "p10"
    assert list(values["rows"][0]["values"]) == ["main", "branch"]
    (line,) = csv.DictReader(io.StringIO(shown(*paths[:2], "--metrics", "rr", "--summary", "gm", "--format", "csv")))
    assert line["summary"] == "gm"
    assert float(line["second_value"]) > float(line["first_value"])
    assert "| median |" in shown(*paths[:2], "--metrics", "rr", "--summary", "median", "--format", "markdown")


def test_show_and_report_on_the_command_line(files, capsys):
    path = str(files / "main.parquet")

    def shown(*arguments):
        assert main(["show", path, *arguments]) == 0
        return capsys.readouterr().out

    text = shown("--summary", "p10,gm", "--summary", "worst(family)")
    assert "p10" in text
    assert "10 % of the queries are at or below it." in text
    found = karat.load(path).summary("p10")["rr"]
    assert f"{found.value:.3f} [{found.low:.2f}, {found.high:.2f}]" in text
    values = json.loads(shown("--summary", "p10", "--format", "json"))["summaries"]
    assert values["p10"]["rr"] == found._asdict()
    lines = list(csv.DictReader(io.StringIO(shown("--summary", "p10,median", "--format", "csv"))))
    assert [line["summary"] for line in lines] == ["p10"] * 3 + ["median"] * 3
    assert "| p10 | 95 % interval |" in shown("--summary", "p10", "--format", "markdown")
    assert main(["show", path, "--summary", "p10", "--by", "family", "--format", "csv"]) == 2
    capsys.readouterr()
    assert main(["show", path, "--summary", "p10", "--bounds", "--format", "csv"]) == 2
    assert "either slices, or summaries, or bounds" in capsys.readouterr().err
    assert main(["show", path, "--summary", "worse"]) == 2
    page = files / "report.html"
    baseline = str(files / "other.parquet")
    assert main(["report", path, "--baseline", baseline, "--summary", "p10,mean", "-o", str(page)]) == 0
    capsys.readouterr()
    assert 'id="summaries"' in page.read_text()
    assert "p10 of both runs" in page.read_text()
    karat.load(path).report(page)
    assert 'id="summaries"' not in page.read_text()
