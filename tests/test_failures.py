"""A judgement that failed is missing: never 0, never silently out of the mean."""

from __future__ import annotations

import json

import pytest

import karat
from karat.hits.combine import take
from karat.judges import Exact
from karat.judges.text import Text
from karat.pytest_plugin.assertable_run import AssertableRun
from support.forked import run_karat


class Flaky:
    """Says nothing of some queries."""

    name = "flaky"

    def __init__(self, failed):
        self.failed = failed

    def __call__(self, samples, convention):
        hits = Exact()(samples, convention)
        return hits.replace(failed=self.failed)


ROWS = {"retrieved": {"a": ["x"], "b": ["x"], "c": ["y"], "d": []}, "gold": {q: ["x"] for q in "abcd"}}


def run(failed, **kwargs):
    return karat.evaluate(**{**ROWS, **kwargs}, metrics="recall@1 rr", judge=Flaky(failed))


def test_missing_and_not_zero():
    made = run({1: "timed out", 2: "timed out"})
    assert made.mean["recall@1"] == 0.5
    assert made.undefined == {"recall@1": 2, "rr": 2}
    assert made.failures == {"b": "timed out", "c": "timed out"}
    assert made.bounds()["recall@1"] == (0.25, 0.75)


def test_it_is_said():
    said = run({1: "timed out", 2: "answer cut off"}).remarks()
    assert said[0] == ("2 of 4 queries could not be judged and are excluded: timed out (1); answer cut off (1).")
    assert said[1] == (
        "If they all scored 0 or 1, recall@1 would be between 0.250 and 0.750, rr between 0.250 and 0.750."
    )
    assert not any("undefined" in line for line in said)


def test_beside_queries_that_are_undefined():
    made = run({1: "timed out"}, gold={"a": ["x"], "b": ["x"], "c": [], "d": ["x"]})
    assert made.remarks()[3] == "1 query is undefined: no relevant gold, not in the mean."
    assert made.bounds()["recall@1"] == pytest.approx((1 / 3, 2 / 3))


def test_nothing_failed():
    made = run({})
    assert made.failures == {}
    assert made.bounds()["rr"] == (0.5, 0.5)
    assert "Judged" not in repr(made)
    assert made.to_dict()["bounds"] == {}


def test_everything_failed():
    made = run(dict.fromkeys(range(4), "no key"))
    assert made.mean["rr"] != made.mean["rr"]
    assert made.bounds()["rr"] == (0.0, 1.0)


def test_it_is_kept(tmp_path):
    made = run({1: "timed \x1b[31mout", 3: "cut"})
    made.save(tmp_path / "run.parquet")
    again = karat.load(tmp_path / "run.parquet")
    assert again.failures == made.failures
    assert again.take([3, 0]).failures == {"d": "cut"}
    assert "\x1b" not in repr(again)
    assert take(made.all_hits, [3, 1]).failed == {0: "cut", 1: "timed \x1b[31mout"}


FLAKY = """
from karat.judges import Exact, judge

@judge("flaky")
class Flaky:
    name = "flaky"

    def __init__(self, failed=0):
        self.failed = failed

    def __call__(self, samples, c):
        return Exact()(samples, c).replace(failed=dict.fromkeys(range(self.failed), "cut"))
"""


@pytest.fixture
def karat_eval(tmp_path):
    """`karat eval` over ten queries, of which the judge fails this many."""
    (tmp_path / "flaky.py").write_text(FLAKY)
    rows = [{"retrieved": ["x"], "gold": ["x" if row % 2 else "y"]} for row in range(10)]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, rows)))
    start = ["eval", "samples.jsonl", "rr", "--import", "flaky.py"]

    def run(failed, *options, code=0):
        done = run_karat(*start, "--judge", f"flaky({failed})", *options, cwd=tmp_path, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def test_on_the_command_line(karat_eval):
    told = json.loads(karat_eval(1, "--format", "json").stdout)
    assert told["failures"] == {"1": "cut"}
    assert told["bounds"] == {"rr": [0.5, 0.6]}
    assert told["mean"]["rr"] == pytest.approx(5 / 9)


def test_nothing_judged_exits_3(karat_eval, tmp_path):
    done = karat_eval(10, "-o", "run.parquet", code=3)
    assert done.stderr == "karat: 0 of 10 queries were judged\n"
    assert "0 of 10 queries were judged: cut (10)." in done.stdout
    for beside_the_point in ("between 0.000 and 1.000", "Nothing matched", "ids"):
        assert beside_the_point not in done.stdout
    assert len(karat.load(tmp_path / "run.parquet").failures) == 10
    assert json.loads(karat_eval(10, "--format", "json", code=3).stdout)["mean"] == {"rr": None}


def test_too_few_judged_exits_3(karat_eval, tmp_path):
    karat_eval(9)
    karat_eval(2, "--min-judged", "0.8")
    done = karat_eval(3, "--min-judged", "0.8", "-o", "run.parquet", code=3)
    assert done.stderr == "karat: 7 of 10 queries were judged; expected at least 80 % (--min-judged 0.8)\n"
    assert "rr   0.571" in done.stdout
    assert len(karat.load(tmp_path / "run.parquet").failures) == 3
    assert "must be between 0 and 1" in karat_eval(3, "--min-judged", "80", code=2).stderr


def test_no_hint_if_nothing_was_judged():
    """Gold that looks like ids gets a hint only if it was compared."""
    rows = {"retrieved": {"a": ["some text"]}, "gold": {"a": ["x"]}}
    assert "Nothing matched" in str(karat.evaluate(**rows, metrics="rr", judge="text"))

    class Failed(Text):
        def __call__(self, samples, convention):
            return super().__call__(samples, convention).replace(failed={0: "cut"})

    assert "Nothing matched" not in str(karat.evaluate(**rows, metrics="rr", judge=Failed()))


def test_the_gate_fails_if_too_few_were_judged():
    made = karat.evaluate(
        retrieved=[["x"]] * 10, gold=[["x"]] * 10, metrics="rr", judge=Flaky(dict.fromkeys(range(3), "timed out"))
    )
    failed = karat.gate(made, "rr >= 0.1")
    assert (failed.passed, failed.exit_code) == (False, 1)
    [check] = failed.checks
    assert check.rule == "judged >= 0.80"
    assert check.text == "7 of 10 queries were judged: the rules were not checked"
    assert check.figures == {"judged": 7, "queries": 10}
    for text in (str(failed), failed.to_markdown(), failed.to_junit()):
        assert "7 of 10 queries were judged" in text
    passed = karat.gate(made, "rr >= 0.1", min_judged=0.7)
    assert passed.passed
    assert [check.rule for check in passed.checks] == ["judged >= 0.70", "rr >= 0.10"]
    with pytest.raises(karat.BadArgument, match="between 0 and 1"):
        karat.gate(made, "rr >= 0.1", min_judged=80)


def test_a_test_fails_if_too_few_were_judged():
    made = AssertableRun(run({1: "timed out"}), None)
    with pytest.raises(AssertionError, match="3 of 4 queries were judged: the rules were not checked"):
        made.assert_that("rr >= 0.1")
    made.assert_that("rr >= 0.1", min_judged=0.7)


def test_the_gate_fails_if_nothing_was_judged():
    made = run(dict.fromkeys(range(4), "no key"))
    for least in (0.0, 0.8):
        failed = karat.gate(made, "recall@1 >= 0.1", "rr no-drop", min_judged=least, baseline=run({}))
        assert failed.exit_code == 1
        assert failed.checks[0].text == "0 of 4 queries were judged: the rules were not checked"


def test_the_gate_needs_no_line_if_all_were_judged():
    assert [check.rule for check in karat.gate(run({}), "rr >= 0.1").checks] == ["rr >= 0.10"]
