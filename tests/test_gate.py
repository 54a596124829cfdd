"""karat.gate: what passes, what fails, and what cannot be decided."""

from __future__ import annotations

import math
import re

import pytest

import karat
from karat._internal.display import color
from karat.analysis.rules import read_rules


def made(scores, metrics="recall@1 rr", **fields):
    """A run whose queries find their gold at rank 1, or at rank 2 (a number below 1), or not at all."""
    ranks = {1: ["g", "x"], 0.5: ["x", "g"], 0: ["x"], None: []}
    rows = [
        {"id": f"q{i}", "query": f"what is {i}?", "retrieved": ranks[score], "gold": ["g"]}
        | {name: values[i] for name, values in fields.items()}
        for i, score in enumerate(scores)
    ]
    return karat.evaluate(rows, metrics)


GOOD = made([1] * 40)


def check(gate, rule, slice_=None):
    (one,) = [c for c in gate.checks if (c.rule, c.slice) == (rule, slice_)]
    return one


def test_a_baseline_from_a_file_has_its_name(tmp_path):
    path = tmp_path / "main.v2.parquet"
    GOOD.save(path)
    named = {
        given: karat.gate(GOOD, "rr no-drop", baseline=run).to_dict()["baseline"]
        for given, run in {"path": path, "loaded": karat.load(path), "run": GOOD}.items()
    }
    assert named == {"path": "main.v2", "loaded": "main.v2", "run": "the baseline"}


@pytest.mark.parametrize(
    ("rule", "passed"),
    [
        ("recall@1 >= 0.75", True),
        ("recall@1 > 0.75", False),
        ("recall@1 <= 0.75", True),
        ("recall@1 < 0.75", False),
        ("recall@1>0.74", True),
        ("recall@1 ≥ .76", False),
        ("mrr >= 0.8", False),
        ("recall@1 lower >= 0.75", False),
        ("recall@1 lower >= 0.5", True),
    ],
)
def test_limits(rule, passed):
    run = made([1, 1, 1, 0] * 10)
    gate = karat.gate(run, rule)
    assert gate.passed is passed
    assert gate.exit_code == (0 if passed else 1)
    assert gate.checks[0].text.startswith("0.75")


def test_rounding_does_not_fail_a_limit():
    mean = made([1, 1, 0]).mean["recall@1"]
    for limit in (mean, math.nextafter(mean, 1)):
        assert karat.gate(made([1, 1, 0]), f"recall@1 >= {limit!r}").passed
        assert not karat.gate(made([1, 1, 0]), f"recall@1 > {math.nextafter(limit, 0)!r}").passed


def test_a_mean_close_to_the_limit_is_shown_with_enough_decimal_places():
    gate = karat.gate(made([1] * 7999 + [0] * 2001), "recall@1 >= 0.8")
    assert gate.checks[0].text.startswith("0.7999 ")
    assert not gate.passed


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("recall@1", 'expected "METRIC >= NUMBER"'),
        ("recall@1 == 0.8", 'expected "METRIC >= NUMBER"'),
        ("recall@1 >= high", "compared with a number"),
        ("recall@1 >= nan", "compared with a number"),
        ("recall@1 >= 80%", "recall@1 >= 0.80"),
        ("recall@1 >= 80", "recall@1 >= 0.80"),
        ("recall@1 no-drop 2", "from 0 to 1"),
        ("recall@7 >= 0.8", 'no metric in this run "recall@7"'),
        ("recal@1 >= 0.8", "Did you mean recall@1?"),
        ("recall1 >= 0.8", "Did you mean recall@1?\n  try  recall@1"),
        ("recall 1 no-drop", "Did you mean recall@1?"),
        ("recall@1 => 0.8", "expected >=, <=, > or <\n  got  'recall@1 => 0.8'\n  try  \"recall@1 >= 0.8\""),
        ("recall@1 == 0.8", "(or >, <=, <)"),
        (5, "a rule is a string"),
    ],
)
def test_bad_rules(rule, said):
    with pytest.raises(karat.KaratError, check=lambda error: said in str(error)):
        karat.gate(GOOD, rule)


def test_no_rules():
    with pytest.raises(karat.BadArgument, match="at least one rule"):
        karat.gate(GOOD)


def test_rules_round_trip():
    texts = ["recall@1 >= 0.80", "rr lower > 0.125", "rr no-drop", "recall@1 no-drop 0.01"]
    assert [str(rule) for rule in read_rules(texts, GOOD)] == texts
    assert [str(rule) for rule in read_rules(["mrr no_drop", "rr no-drop"], GOOD)] == ["rr no-drop"]


def test_several_cutoffs_are_several_rules():
    run = made([1] * 10, "recall@1,5")
    assert [c.rule for c in karat.gate(run, "recall@1,5 >= 0.5").checks] == ["recall@1 >= 0.50", "recall@5 >= 0.50"]


def test_a_significant_drop_fails():
    assert not karat.gate(made([0] * 8 + [1] * 32), "recall@1 no-drop", baseline=GOOD).passed
    assert karat.gate(made([0] * 3 + [1] * 37), "recall@1 no-drop", baseline=GOOD).passed
    assert karat.gate(GOOD, "recall@1 no-drop", baseline=made([0] * 20 + [1] * 20)).passed


def test_one_sided_p_of_a_few_changed_queries_is_exact():
    gate = karat.gate(made([0] * 4 + [1] * 36), "recall@1 no-drop", baseline=GOOD)
    assert gate.checks[0].figures["p"] == 1 / 16
    assert gate.checks[0].text == "1.000 → 0.900  (-0.100 [-0.24, +0.02], p = 0.062, 40 queries)"


def test_a_drop_that_only_the_correction_makes_insignificant_is_named():
    topic = [str(i // 30) for i in range(300)]
    run = made([0 if i % 30 < 6 else 1 for i in range(300)], topic=topic)
    gate = karat.gate(run, "recall@1 no-drop", baseline=made([1] * 300, topic=topic), by="topic")
    one = check(gate, "recall@1 no-drop", "3")
    assert one.passed
    assert one.figures["high"] < 0
    assert one.figures["p"] > 0.05
    assert one.text.endswith("30 queries): not significant; a tolerance would decide")


def test_tolerances():
    worse = made([0] * 2 + [1] * 38)  # a drop of 0.05, which could be chance
    assert karat.gate(worse, "recall@1 no-drop", baseline=GOOD).passed
    assert karat.gate(worse, "recall@1 no-drop", baseline=GOOD, tolerance=0.05).passed
    failed = karat.gate(worse, "recall@1 no-drop", baseline=GOOD, tolerance=0.04)
    assert not failed.passed
    assert "more than the 0.04 allowed" in failed.checks[0].text
    assert karat.gate(worse, "recall@1 no-drop 0.06", baseline=GOOD, tolerance=0.04).passed
    assert not karat.gate(worse, "recall@1 no-drop 0", baseline=GOOD).passed
    with pytest.raises(karat.BadArgument, match="from 0 to 1"):
        karat.gate(worse, "recall@1 no-drop", baseline=GOOD, tolerance=5)


def test_the_baseline_may_have_another_order():
    scores = [0] * 8 + [1] * 32
    base = made(scores)
    assert karat.gate(base.take(range(39, -1, -1)), "recall@1 no-drop 0", baseline=base, must_pass=base.ids).passed


def test_the_collapse_of_one_slice_is_not_hidden():
    topic = ["billing"] * 10 + ["sharing"] * 190
    base = made([1] * 10 + [1, 0] * 95, topic=topic)
    run = made([0] * 10 + [1] * 20 + [1, 0] * 85, topic=topic)
    assert karat.gate(run, "recall@1 no-drop", baseline=base).passed
    gate = karat.gate(run, "recall@1 no-drop", baseline=base, by="topic")
    assert not gate.passed
    assert check(gate, "recall@1 no-drop").passed
    assert not check(gate, "recall@1 no-drop", "billing").passed
    assert check(gate, "recall@1 no-drop", "sharing").passed
    assert "FAIL  recall@1 no-drop, topic: billing  1.000 → 0.000 (-1.000 [-1.00, -0.38], p" in repr(gate)


def test_a_small_slice_is_reported():
    topic = ["rare"] * 3 + ["often"] * 37
    run = made([0] * 3 + [1] * 37, topic=topic)
    gate = karat.gate(run, "recall@1 no-drop", baseline=made([1] * 40, topic=topic), by="topic")
    rare = check(gate, "recall@1 no-drop", "rare")
    assert rare.verdict == "undecided"
    assert not rare.passed
    assert gate.passed
    assert "UNDECIDED  recall@1 no-drop, topic: rare" in repr(gate)
    assert repr(gate).endswith("  2 passed, 1 undecided, 0 failed of 3 checks (1 rule, 2 slices) · exit 0")
    strict = karat.gate(run, "recall@1 no-drop", baseline=made([1] * 40, topic=topic), by="topic", fail_undecided=True)
    assert (strict.verdict, strict.exit_code) == ("failed", 1)
    assert "0 failed of 3 checks (1 rule, 2 slices); undecided checks fail · exit 1" in repr(strict)
    told = karat.gate(run, "recall@1 no-drop", baseline=made([1] * 40, topic=topic), by="topic", slice_tolerance=0.5)
    assert not check(told, "recall@1 no-drop", "rare").passed


def test_a_slice_without_any_score():
    rows = [{"id": f"q{i}", "retrieved": ["g"], "gold": ["g"] * (i > 0), "topic": "abc"[min(i, 2)]} for i in range(20)]
    run = karat.evaluate(rows, "recall@1")
    gate = karat.gate(run, "recall@1 no-drop", baseline=run, by="topic")
    assert check(gate, "recall@1 no-drop", "a").text == "undefined for all of its queries"
    assert [line for line in gate.remarks() if "undefined" in line] == [
        "1 query is undefined: no relevant gold, not in the mean (q0)."
    ]


def test_too_few_queries_to_decide():
    few, all_ = made([0] * 4), made([1] * 4)
    undecided = karat.gate(few, "recall@1 no-drop", baseline=all_)
    assert (undecided.verdict, undecided.passed, undecided.exit_code) == ("undecided", False, 2)
    assert "4 queries, too few for an interval): too few queries to detect a drop" in undecided.checks[0].text
    assert "4 queries are too few to detect a drop in recall@1." in undecided.remarks()
    assert karat.gate(few, "recall@1 no-drop", "recall@1 <= 0.5", baseline=all_).passed
    assert not karat.gate(made([0] * 4), "recall@1 no-drop 0.1", baseline=made([1] * 4)).passed
    assert not karat.gate(made([0] * 5), "recall@1 no-drop", baseline=made([1] * 5)).passed


def test_gates_that_cannot_be_decided():
    other = karat.evaluate([{"id": f"q{i}", "retrieved": ["g"], "gold": ["h"]} for i in range(40)], "recall@1")
    with pytest.raises(karat.BadArgument, match="their gold differs") as caught:
        karat.gate(GOOD, "recall@1 no-drop", baseline=other)
    assert "karat eval on the main branch" in str(caught.value)
    with pytest.raises(karat.BadArgument, match="the baseline has no rr"):
        karat.gate(GOOD, "rr no-drop", baseline=made([1] * 40, "recall@1"))
    with pytest.raises(karat.BadArgument, match="defined for 0 queries of 1"):
        karat.gate(karat.evaluate(retrieved=[["a"]], gold=[[]], metrics="recall@1"), "recall@1 >= 0.5")
    with pytest.raises(karat.BadArgument, match="defined for 40 queries of 40; expected at least 41"):
        karat.gate(GOOD, "recall@1 >= 0.5", min_defined=41)
    with pytest.raises(karat.UnknownName, match="topic"):
        karat.gate(GOOD, "recall@1 no-drop", baseline=GOOD, by="topic")
    with pytest.raises(karat.BadArgument, match="501 values"):
        karat.gate(made([1] * 501, n=range(501)), "recall@1 >= 0", by="n")
    with pytest.raises(karat.BadArgument, match="expected a run"):
        karat.gate({"recall@1": 1}, "recall@1 >= 0")
    with pytest.raises(karat.BadArgument, match="alpha"):
        karat.gate(GOOD, "recall@1 no-drop", baseline=GOOD, alpha=5)


def test_a_lower_end_that_is_unknown_fails():
    (one,) = karat.gate(made([1]), "recall@1 lower >= 0.5").checks
    assert (one.verdict, one.text) == ("failed", "1.000: 1 query is too few for an interval: it takes at least 5")


def test_without_a_baseline_the_other_rules_are_checked(tmp_path):
    path = tmp_path / "baseline.parquet"
    rules = ("recall@1 >= 0.5", "rr no-drop", "recall@1 no-drop 0.1")
    gate = karat.gate(GOOD, *rules, baseline=path, must_pass=["q0"])
    assert [check.verdict for check in gate.checks] == ["passed", *["undecided"] * 3]
    assert gate.passed
    said = repr(gate)
    assert f"There is no baseline yet: {path} does not exist." in said
    assert f"karat eval FILE -o {path}" in said
    assert "baseline: none" in said
    assert karat.gate(made([0] * 40), *rules, baseline=path).exit_code == 1
    given = karat.gate(GOOD, "rr no-drop")
    assert given.exit_code == 2
    assert "No baseline was given. No-drop rules are undecided." in repr(given)
    assert not karat.gate(GOOD, *rules, baseline=path, fail_undecided=True).passed
    GOOD.save(path)
    assert karat.gate(GOOD, *rules, baseline=path, must_pass=["q0"]).counts == {
        "passed": 4, "failed": 0, "undecided": 0,
    }  # fmt: skip


def test_counts_add_up():
    topic = ["rare"] * 3 + ["often"] * 37
    base, run = made([1] * 40, topic=topic), made([1] * 20 + [0] * 20, topic=topic)
    gate = karat.gate(run, "rr no-drop", "recall@1 >= 0.1", baseline=base, by="topic", must_pass=["q0", "q39"])
    assert gate.counts == {"passed": 2, "failed": 3, "undecided": 1}
    assert "2 passed, 1 undecided, 3 failed of 6 checks (2 rules, 2 slices, 2 must-pass queries)" in repr(gate)
    assert gate.to_dict()["counts"] == gate.counts


def test_slices_by_several_fields():
    fields = {"topic": ["a", "b"] * 20, "lang": ["en"] * 30 + ["de"] * 10}
    base, run = made([1] * 40, **fields), made([1] * 30 + [0] * 10, **fields)
    gate = karat.gate(run, "rr no-drop", baseline=base, by=["topic", "topic,lang"])
    found = {(check.by, check.slice): check.verdict for check in gate.checks}
    assert found["topic · lang", "a · de"] == "undecided"
    assert found["topic", "a"] == "passed"
    assert found["topic · lang", "b · en"] == "passed"
    assert len(found) == 7
    assert "UNDECIDED  rr no-drop, topic · lang: a · de" in repr(gate)
    assert re.search("PASS +rr no-drop +2 other slices by topic · lang", repr(gate))


def test_the_header(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    GOOD.save(tmp_path / "main.parquet")
    gate = karat.gate(GOOD, "rr no-drop", baseline=tmp_path / "main.parquet")
    header = (
        "run: samples · baseline: main.parquet · judge: ids · 40 queries · convention: standard · 1970-01-01 00:00 UTC"
    )
    assert repr(gate).splitlines()[0] == f"karat gate · {header}"
    assert gate.to_dict()["when"] == "1970-01-01T00:00:00+00:00"
    assert "baseline: main.parquet" in gate.to_markdown()
    assert header in gate._repr_html_()
    loaded = karat.load(tmp_path / "main.parquet")
    assert "run: main.parquet · baseline: main.parquet · " in repr(karat.gate(loaded, "rr no-drop", baseline=loaded))


def test_verdicts_are_coloured():
    run = made([1] * 40, topic=["a"] * 2 + ["b"] * 38)
    gate = karat.gate(run, "rr >= 0.5", "rr no-drop", baseline=GOOD, by="topic")
    assert "\x1b" not in repr(gate)
    with color(on=True):
        assert "\x1b[32mPASS\x1b[0m       rr" in repr(gate)
        assert "\x1b[33mUNDECIDED\x1b[0m  rr" in repr(gate)
        assert "\x1b[31mFAIL\x1b[0m" in repr(karat.gate(GOOD, "rr < 0.5"))


def test_no_query_in_common_that_has_a_score():
    base, run = made([1] * 6), made([1] * 6)
    base.scores["rr"][:3] = run.scores["rr"][3:] = float("nan")
    with pytest.raises(karat.BadArgument, match="no query has a score in both"):
        karat.gate(run, "rr no-drop 0.1", baseline=base)


def test_must_pass():
    run = made([1, 0.5, 0] + [1] * 9)
    gate = karat.gate(run, "recall@1 >= 0.1", "rr >= 0.1", must_pass=["q0", "q1", "q0"])
    assert [(c.query, c.passed) for c in gate.checks[2:]] == [("q0", True), ("q1", False)]
    assert gate.checks[-1].text == "recall@1 0.000, expected 1; rr 0.500, expected 1"
    with_base = karat.gate(run, "rr >= 0.1", baseline=made([1, 0.5, 0.5] + [1] * 9), must_pass=["q0", "q1", "q2"])
    assert [(c.query, c.passed) for c in with_base.checks[1:]] == [("q0", True), ("q1", True), ("q2", False)]
    assert with_base.checks[-1].text == "rr 0.000, was 0.500"
    with pytest.raises(karat.UnknownName, match='no query "q99"'):
        karat.gate(run, "rr >= 0", must_pass=["q99"])
    with pytest.raises(karat.BadArgument, match="must_pass is a list"):
        karat.gate(run, "rr >= 0", must_pass=7)


def test_must_pass_without_a_score():
    run = karat.evaluate(retrieved=[["a"], ["a"]], gold=[["a"], []], metrics="recall@1")
    with pytest.raises(karat.BadArgument, match="undefined for the must-pass query"):
        karat.gate(run, "recall@1 >= 0", must_pass=[run.ids[1]])


def test_the_detectable_drop_is_reported():
    run = made([0, 1] * 3 + [1] * 34)
    said = " ".join(karat.gate(run, "recall@1 no-drop", baseline=GOOD).remarks())
    assert (
        "40 queries can detect a drop of 0.125 in recall@1 (80 % power); smaller drops may be missed." in said
    )  # five queries have to drop
    assert "no query changed" in " ".join(karat.gate(GOOD, "recall@1 no-drop", baseline=GOOD).remarks())


def test_queries_without_results_are_named():
    run = made([1] * 6 + [None] * 7)
    assert "Nothing was retrieved for q6, q7, q8, q9, q10 and 2 more." in karat.gate(run, "recall@1 >= 0").remarks()


def test_the_worst_queries():
    base, run = made([1, 1, 0.5, 0] + [1] * 36), made([0, 0.5, 0.5, 0] + [1] * 36)
    first, second = karat.gate(run, "rr no-drop", baseline=base).worst()
    assert first[:5] == ("q0", "what is 0?", "rr", 1.0, 0.0)
    assert first.gold == [("g", 1, None)]
    assert second.gold == [("g", 1, 2)]
    assert [one.query_id for one in karat.gate(run, "rr >= 0.9").worst(3)] == ["q0", "q3", "q1"]
    assert karat.gate(GOOD, "rr >= 0.9").worst() == []


def test_results_are_deterministic(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    base, run = made([1, 0.5] * 20), made([0.5, 0, 1, 1] * 10)
    once, again = (karat.gate(run, "rr no-drop", "recall@1 no-drop", baseline=base).to_dict() for _ in range(2))
    assert once == again
