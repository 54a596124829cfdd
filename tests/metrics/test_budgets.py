"""Token budgets: `recall@500t` is recall over the longest prefix of the ranking with at most 500 tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.metrics import METRICS, Budget, parse, parse_all

NAMES = [name for name, d in METRICS.items() if d.cutoff and not (d.of_aspects or d.at_recall)]
"""For metrics of aspects: tests/test_aspects.py."""


@pytest.mark.parametrize("text", ["recall@500t", "recall@5,500t,10", "precision(rel=2)@1t", "ndcg@10t,20t"])
def test_names_round_trip(text):
    assert str(parse(text)) == text


def test_parsing():
    assert parse("recall@5,500t").ks == (5, Budget(500))
    assert parse("recall_at_500t") == parse("recall@500t")
    assert [str(m) for m in parse_all("recall@5, 500t, rr ndcg@10t")] == ["recall@5,500t", "rr", "ndcg@10t"]
    assert parse("recall@500") != parse("recall@500t")


@pytest.mark.parametrize(
    "text",
    ["recall@t", "recall@5T", "recall@0t", "recall@-5t", "recall@5.5t", "recall@5tt", "recall@5 t", "r_precision@5t"],
)
def test_invalid_budgets_are_refused(text):
    with pytest.raises(karat.KaratError):
        parse_all(text)


TEXTS = {"a": "one two three", "b": "one two", "c": "one", "d": "one two three four", "e": ""}


@settings(max_examples=100, deadline=None)
@given(
    ranking=st.lists(st.sampled_from("abcde"), max_size=6),
    gold=st.lists(st.sampled_from("abcde"), min_size=1, unique=True),
    tokens=st.integers(1, 12),
)
def test_budget_equals_the_number_of_items_that_fit(ranking, gold, tokens):
    """A budget scores like the rank cutoff at the number of items that fit; 0 if none fits."""
    fits, used = 0, 0
    for item in ranking:
        used += len(TEXTS[item].split())
        if used > tokens:
            break
        fits += 1
    samples = [{"retrieved": [{"id": i, "text": TEXTS[i]} for i in ranking], "gold": dict.fromkeys(gold, 2)}] * 2
    names = [f"{name}@{tokens}t" for name in NAMES if not name.startswith(("span_", "chunk_", "false_alarm"))]
    scores = karat.evaluate([*samples, samples[0] | {"gold": {"a": 2}}], names, judge="ids").scores
    for name, values in scores.items():
        base = name.partition("@")[0]
        if fits:
            samples_of_one = [samples[0]]
            expected = karat.evaluate(samples_of_one, f"{base}@{fits}", judge="ids").scores[f"{base}@{fits}"][0]
        else:
            expected = np.nan if base == "judged" else 0.0
        assert values[0] == values[1] or np.isnan(values[0])
        assert values[0] == pytest.approx(expected, nan_ok=True), name


def test_budgets_together_with_ranks_and_in_run_files(tmp_path):
    samples = [{"retrieved": ["one two", "three", "four five six"], "gold": ["three", "four five six"]}]
    run = karat.evaluate(samples, "recall@1,2t,3t,2 precision@3t,100t", judge="exact")
    assert run.mean == {
        "recall@1": 0.0, "recall@2t": 0.0, "recall@3t": 0.5, "recall@2": 0.5,
        "precision@3t": 0.5, "precision@100t": pytest.approx(2 / 3),
    }  # fmt: skip
    run.save(tmp_path / "run.parquet")
    again = karat.load(tmp_path / "run.parquet")
    assert again.mean == run.mean
    assert again.pooled == run.pooled


def test_custom_token_counters():
    samples = {"retrieved": [["abc", "de"]], "gold": [["de"]]}
    assert karat.evaluate(**samples, metrics="recall@4t", judge="exact", tokens=len).mean["recall@4t"] == 0
    assert karat.evaluate(**samples, metrics="recall@5t", judge="exact", tokens=list).mean["recall@5t"] == 1
    assert karat.score("recall@2t", ["abc", "de"], ["de"], judge="exact") == 1


@pytest.mark.parametrize("counter", [lambda text: -1, lambda text: 1.5, lambda text: None, lambda text: "3", 5])
def test_invalid_token_counters_are_refused(counter):
    with pytest.raises(karat.BadArgument, match="token"):
        karat.score("recall@5t", ["a b"], ["a b"], tokens=counter)


def test_budgets_need_texts():
    with pytest.raises(karat.InputError, match="needs the text of every retrieved item"):
        karat.evaluate([{"retrieved": [{"id": "a"}], "gold": ["a"]}], "recall@5t")
    uncounted = karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="recall@1").all_hits
    with pytest.raises(karat.BadArgument, match="these hits have no token counts"):
        parse("recall@5t").scores(uncounted, karat.STANDARD)


def test_budgets_with_a_convention_that_removes_copies():
    c = karat.Convention(name="removes", duplicates="remove")
    items = [{"id": "a", "text": "one two"}, {"id": "a", "text": "one two"}, {"id": "b", "text": "three"}]
    run = karat.evaluate([{"retrieved": items, "gold": ["b"]}], "recall@3t", convention=c)
    assert run.mean["recall@3t"] == 1.0
    items = [{"id": "a", "text": "one two"}, {"id": "b", "text": "three"}, {"id": "a", "text": "one two"}]
    run = karat.evaluate([{"retrieved": items, "gold": ["b"]}], "recall@2t,3t", convention=c)
    assert run.mean == {"recall@2t": 0.0, "recall@3t": 1.0}
    ranges = [{"doc": "d", "start": i, "end": i + 5, "text": "Title"} for i in (0, 50, 0)]
    gold = [{"doc": "d", "start": 50, "end": 55}]
    run = karat.evaluate([{"retrieved": ranges, "gold": gold}], "recall@1t,2t", judge="spans", convention=c)
    assert run.mean == {"recall@1t": 0.0, "recall@2t": 1.0}
