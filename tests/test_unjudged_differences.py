"""Gold with holes in a comparison: the bounds of a difference, and what is concluded from them."""

from __future__ import annotations

import json
import random
from itertools import product

import numpy as np
import pytest

import karat
from karat.analysis import unjudged
from karat.cli import main
from karat.report import unjudged_items

HOLES = [
    {"id": "q1", "retrieved": ["a", "x", "b"], "gold": {"a": 1, "b": 0, "c": 1}},
    {"id": "q2", "retrieved": ["x", "d", "y"], "gold": {"d": 1, "e": 0}},
]
"""Unjudged: x in both, y."""


def compared(a, b, **settings):
    rows = [{"id": "q", "gold": {"a": 1, "z": 0}} | {"retrieved": own} for own in (a, b)]
    return karat.compare(*(karat.evaluate([row], "precision@2 recall@2 ndcg@2") for row in rows), **settings)


def test_the_difference_knows_that_a_shared_item_has_one_label():
    shared = compared(["a", "x"], ["z", "x"])
    assert shared.bounds["precision@2"] == (-0.5, -0.5)
    apart = compared(["a", "x"], ["z", "y"])
    assert apart.bounds["precision@2"] == (-1.0, 0.0)
    assert apart.bounds["recall@2"] == pytest.approx((-1.0, 0.0))  # x: 2/2 and 0/2; y: 1/2 and 1/2


def differences(name, first, second, gold):
    """The difference of the scores for every labelling of the unjudged items that either run has within k."""
    k = 3 if "@" in name else None
    holes = sorted({*first[:k], *second[:k]} - {item for item, grade in gold.items() if grade >= 0})
    every = product([0, max(gold.values())], repeat=len(holes))
    golds = [{**gold, **dict(zip(holes, labels, strict=True))} for labels in every]
    runs = [karat.evaluate([{"retrieved": r, "gold": g} for g in golds], name) for r in (first, second)]
    return runs[1].scores[name] - runs[0].scores[name]


@pytest.mark.parametrize("exact", [True, False])
def test_no_labels_exceed_the_bounds_of_a_difference(exact, monkeypatch):
    """The runs share one gold: an item that one run retrieved is gold of the other, too."""
    if not exact:
        monkeypatch.setattr(unjudged, "_FEW", 0)
    rng = random.Random(4)
    wide = []
    for _ in range(10):
        gold = {"a": rng.choice([1, 2]), "b": rng.choice([-1, 0, 1]), "z": 0}
        first, second = (rng.sample(["a", "b", "u", "v", "w"], rng.randint(1, 4)) for _ in range(2))
        rows = [{"id": "q", "retrieved": own, "gold": gold} for own in (first, second)]
        names = "ndcg@3 ap recall@3 rr@3 bpref precision@3 err@3"
        comparison = karat.compare(*(karat.evaluate([row], names) for row in rows))
        for name, (low, high) in comparison.bounds.items():
            now = comparison.scores[1][name] - comparison.scores[0][name]
            found = [*differences(name, first, second, gold), *now]
            assert low <= min(found) + 1e-9
            assert high >= max(found) - 1e-9
            wide.append((high - low) - (max(found) - min(found)))
    assert np.mean(wide) < (1e-9 if exact else 0.1)


def test_compare_warns_where_runs_differ_in_judged_items():
    comparison = compared(["a", "z"], ["y", "x"])
    text = " ".join(comparison.remarks())
    assert "judged@2 differs: 1.000 in A, 0.000 in B" in text
    assert "If judged, the difference in precision@2 would be between -0.500 and +0.500, so either run may be" in text
    assert comparison.to_dict()["bounds"]["precision@2"] == [-0.5, 0.5]
    assert not any("judged@2" in line for line in compared(["a", "x"], ["z", "x"]).remarks())


@pytest.mark.parametrize(
    ("first", "second", "conclusion"),
    [
        (["z", "b"], ["a", "c"], "B stays better"),
        (["a", "c"], ["z", "b"], "B stays worse"),
        (["z", "b"], ["a", "x"], "B stays better"),
        (["a", "z"], ["x", "a"], "B is not worse"),
        (["x", "a"], ["a", "z"], "B is not better"),
        (["a", "z"], ["y", "x"], "either run may be better"),
        (["a", "z"], ["z", "a"], "the runs stay equal"),
    ],
)
def test_does_the_difference_survive_the_holes(first, second, conclusion):
    gold = {"a": 1, "c": 1, "z": 0, "b": 0}
    extra = {"id": "p", "retrieved": ["u"], "gold": {"z": 0, "a": 1}}  # the same in both: one label
    runs = (
        karat.evaluate([{"id": "q", "retrieved": own, "gold": gold}, extra], "precision@2") for own in (first, second)
    )
    comparison = karat.compare(*runs)
    (row,) = unjudged_items.difference_rows(comparison)
    assert row[-1] == conclusion
    low, high = comparison.bounds["precision@2"]
    assert row[1:4] == [f"{x:+.3f}" if x else "0.000" for x in (comparison.rows[0].difference, low, high)]


def test_less_is_better_in_the_conclusion():
    comparison = compared(["a", "z"], ["y", "x"])
    ends = {"false_alarm@5": (0.1, 0.3), "recall@5": (0.1, 0.3)}
    assert unjudged_items._conclusion(comparison, "false_alarm@5", ends) == "B stays worse"
    assert unjudged_items._conclusion(comparison, "recall@5", ends) == "B stays better"


def test_bounds_of_a_comparison_on_the_command_line(tmp_path, capsys):
    gold, paths = {"a": 1, "z": 0}, []
    for name, own in (("old", ["a", "z"]), ("new", ["y", "x"]), ("full", ["z", "a"])):
        paths.append(str(tmp_path / f"{name}.parquet"))
        karat.evaluate([{"id": "q", "retrieved": own, "gold": gold}], "precision@2 rr").save(paths[-1])

    def shown(*arguments, code=0):
        assert main(["compare", *arguments, "--bounds"]) == code
        return " ".join("".join(capsys.readouterr()).split())

    text = shown(*paths[:2])
    assert "difference lowest highest whatever the labels" in text
    assert "precision@2 -0.500 -0.500 +0.500 either run may be better" in text
    assert "rr -1.000 -1.000 0.000 new is not better" in text
    markdown = shown(*paths[:2], "--format", "markdown")
    assert "| `precision@2` | -0.500 | -0.500 | +0.500 | either run may be better |" in markdown
    found = json.loads(shown(*paths[:2], "--format", "json"))
    assert found["bounds"] == {"precision@2": [-0.5, 0.5], "rr": [-1.0, 0.0]}
    assert "--bounds is for two runs" in shown(*paths, code=2)
    assert "nothing to bound" in shown(paths[0], paths[2], code=2)
    assert "no CSV or LaTeX table" in shown(*paths[:2], "--format", "csv", code=2)
    assert "the difference of the means of precision@2 would be between" in shown(*paths[:2], "--summary", "median")
