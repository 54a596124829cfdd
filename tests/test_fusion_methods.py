"""Methods of fusion against their twins and by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.fusion import FUSIONS, parse_fuser
from karat.fusion.candidates import NORMS
from support.fusion_twins import fused

ITEMS = list("abcdefgh")


@st.composite
def legs_of_one_query(draw, legs=3):
    """Legs of some items with scores above 0, ties included, best first."""
    found = []
    for _ in range(legs):
        items = draw(st.lists(st.sampled_from(ITEMS), unique=True, max_size=6))
        scores = sorted(draw(st.lists(st.integers(1, 9), min_size=len(items), max_size=len(items))), reverse=True)
        # With ties the order of a dict is that of ids, the greatest first, as in trec_eval.
        pairs = sorted(zip(items, scores, strict=True), key=lambda pair: pair[0], reverse=True)
        found.append({item: score / 2 for item, score in sorted(pairs, key=lambda pair: -pair[1])})
    return found


BY_SCORE = [name for name, method in FUSIONS.items() if method.by == "score"]
CALLS = [
    *(name for name in FUSIONS if name not in BY_SCORE), "rrf(1)", "rrf(k=0)", "rbc(0.5)", "rbc(phi=0.99)",
    *(f"{name}(norm={norm})" for name in BY_SCORE for norm in NORMS),
]  # fmt: skip


@settings(max_examples=50)
@given(st.lists(legs_of_one_query(), min_size=1, max_size=3), st.booleans())
def test_every_method_equals_its_twin(queries, weighted):
    legs = [{f"q{n}": query[leg] for n, query in enumerate(queries)} for leg in range(3)]
    for call in CALLS:
        fuser = parse_fuser(call)
        weights = [0.5, 0.2, 0.3] if weighted and fuser.method.weighted else None
        found = karat.fuse(*legs, method=call, weights=weights).retrieved
        for n, query in enumerate(queries):
            wanted = fused(query, fuser.name, weights=weights, **fuser.settings)
            assert found[f"q{n}"] == pytest.approx(wanted, abs=1e-9), call


def test_rrf_by_hand():
    found = karat.fuse({"q": ["a", "b", "c"]}, {"q": ["c", "a", "d"]}, method="rrf(60)").retrieved["q"]
    assert found == {"a": 1 / 61 + 1 / 62, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 63}
    assert list(found) == ["a", "c", "b", "d"]
    weighted = karat.fuse({"q": ["a"]}, {"q": ["b"]}, method="rrf(1)", weights="0.2,0.8").retrieved["q"]
    assert weighted == {"b": 0.4, "a": 0.1}


def test_combmnz_and_wsum_by_hand():
    legs = {"q": {"a": 4.0, "b": 2.0, "c": 0.0}}, {"q": {"b": 10.0, "d": 5.0}}
    assert karat.fuse(*legs, method="combmnz").retrieved["q"] == {"b": 3.0, "a": 1.0, "d": 0.0, "c": 0.0}
    assert karat.fuse(*legs, method="wsum", weights=[0.7, 0.3]).retrieved["q"] == pytest.approx(
        {"a": 0.7, "b": 0.65, "d": 0.0, "c": 0.0}
    )
    assert karat.fuse(*legs, method="combsum(norm=none)").retrieved["q"] == {"b": 12, "d": 5, "a": 4, "c": 0}


def test_ties_are_broken_by_id_like_trec_eval_and_do_not_depend_on_rounding_or_the_order_of_legs():
    legs = {"q": ["x", "y", "z"]}, {"q": ["y", "z", "x"]}, {"q": ["z", "x", "y"]}
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        found = karat.fuse(*(legs[i] for i in order), method="rrf(60)").retrieved["q"]
        assert list(found) == ["z", "y", "x"]
        assert len(set(found.values())) == 1


def test_a_copy_counts_at_its_best_rank():
    found = karat.fuse({"q": ["a", "a", "b"]}, {"q": ["b"]}, method="rrf(1)")
    assert found.retrieved["q"] == {"b": pytest.approx(1 / 3 + 1 / 2), "a": 0.5}
    assert "A: 1 item is a copy" in found.remarks()[0]


def test_depth_cuts_the_fused_ranking():
    assert karat.fuse({"q": ["a", "b"]}, {"q": ["b", "c"]}, depth=1).retrieved == {"q": {"b": 1 / 62 + 1 / 61}}


def test_texts_are_fused_by_text():
    a, b = {"q": [{"text": "one"}, {"text": "two"}]}, {"q": [{"text": "two"}]}
    assert list(karat.fuse(a, b).retrieved["q"]) == ["two", "one"]


def test_fused_ids_are_one_whatever_their_type():
    assert list(karat.fuse({1: {10: 2.0, "11": 1.0}}, {"1": {"10": 1.0}}).retrieved["1"]) == ["10", "11"]


def test_a_method_is_written_as_it_is_parsed():
    for call in CALLS:
        text = str(parse_fuser(call))
        assert str(parse_fuser(text)) == text
    assert str(parse_fuser("RRF(60)")) == "rrf(k=60)"
    assert all(method.help.endswith(".") or method.help.endswith("given.") for method in FUSIONS.values())
