"""A judgement that failed is missing: never 0, never silently out of the mean."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import karat
from karat.hits.combine import take
from karat.judges import Exact


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
    assert made.remarks()[2] == "1 query is undefined: no relevant gold, not in the mean."
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


def test_on_the_command_line(tmp_path):
    (tmp_path / "flaky.py").write_text(
        "import karat\nfrom karat.judges import Exact, judge\n\n"
        "@judge('flaky')\nclass Flaky:\n    '''Fails.'''\n    name = 'flaky'\n\n"
        "    def __call__(self, samples, c):\n        hits = Exact()(samples, c)\n"
        "        return hits.replace(failed={0: 'cut'})\n"
    )
    (tmp_path / "samples.jsonl").write_text(
        '{"retrieved": ["x"], "gold": ["x"]}\n{"retrieved": ["x"], "gold": ["y"]}\n'
    )
    command = [Path(sys.executable).with_name("karat"), "eval", "samples.jsonl", "rr", "--import", "flaky.py"]
    done = subprocess.run(
        [*command, "--judge", "flaky", "--format", "json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    assert (told["failures"], told["bounds"], told["mean"]) == ({"1": "cut"}, {"rr": [0.0, 0.5]}, {"rr": 0.0})


def test_the_gate_can_demand_a_share_judged():
    made = run({1: "timed out"})
    assert karat.gate(made, "recall@1 >= 0.1", min_judged=0.75).passed
    with pytest.raises(karat.BadArgument, match="only 3 of 4 queries were judged; expected 80 %"):
        karat.gate(made, "recall@1 >= 0.1", min_judged=0.8)
    with pytest.raises(karat.BadArgument, match="between 0 and 1"):
        karat.gate(made, "recall@1 >= 0.1", min_judged=80)
