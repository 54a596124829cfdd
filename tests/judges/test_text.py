"""The judge `text`: what is folded, and what stays different."""

from __future__ import annotations

import pytest

import karat
from karat.judges.text import FOLDS, folder


def hits(retrieved, gold, judge="text"):
    run = karat.evaluate(retrieved=[retrieved], gold=[gold], metrics="recall", judge=judge)
    return [(hit.rank, hit.why) for hit in run.hits(1)]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("The cat sat.", "exact"),
        ("the CAT sat.", "same except for case"),
        ("The  cat\n\tsat.", "same except for white space"),
        ("The cat – sat!", "same except for punctuation"),
        ("Ｔｈｅ cat sat.", "same except for Unicode form"),
        ("the… ﹙cat﹚ SAT", "same when folded"),
    ],
)
def test_texts_equal_when_folded(other, why):
    assert hits([other], ["The cat sat."]) == [(1, why)]


@pytest.mark.parametrize("other", ["The cats sat.", "The cat", "Thecat sat.", "", " ", "cat The sat."])
def test_texts_different_when_folded(other):
    assert hits([other], ["The cat sat."]) == []


@pytest.mark.parametrize(
    ("fold", "same", "different"),
    [
        ("case", "A B", "a  b"),
        ("space", "a  b ", "A b"),
        ("(case, space)", " A  b", "a, b"),
        ("punctuation", "a, b!", "A b"),
        ("unicode", "a\u00a0b", "A b"),
        ("()", "a b", "a b "),
    ],
)
def test_fold_selects_the_folds(fold, same, different):
    assert len(hits([same, different], ["a b"], f"text(fold={fold})")) == 1
    assert hits([same], ["a b"], f"text(fold={fold})")


def test_the_name_of_the_judge_has_its_folds():
    assert karat.Text().name == "text"
    assert karat.Text(["space", "case"]).name == "text(fold=(case, space))"
    assert karat.Text(None).name == "text(fold=())"


@pytest.mark.parametrize("text", ["ß", "ſ", "İ", "ﬁ", "\u212b", "Å", "ᾳ", "𝐀", "①", "가", "e\u0301", "K", "ΌΣΟΣ"])
def test_folding_twice_changes_nothing(text):
    fold = folder(FOLDS)
    assert fold(fold(text)) == fold(text)
    assert fold(text.upper()) == fold(text.lower()) or text == "İ"


def test_texts_of_punctuation_alone_differ():
    assert hits(["???"], ["!!!"]) == []
    assert hits(["!!!"], ["!!!"]) == [(1, "exact")]
    assert hits(["!"], [""]) == []


def test_gold_equal_when_folded_counts_once_and_so_do_copies():
    run = karat.evaluate(
        retrieved=[["A b", "a b.", "c"]], gold=[["a B", "A  B", "c"]], metrics="recall@1 precision@3", judge="text"
    )
    assert run.mean == {"recall@1": 0.5, "precision@3": pytest.approx(2 / 3)}
    assert [item.gold for item in run.gold(1)] == ["a B | A  B", "c"]


@pytest.mark.parametrize("fold", ["cases", 3, ["case", "x"]])
def test_an_unknown_fold_is_refused(fold):
    with pytest.raises(karat.KaratError, match="fold"):
        karat.Text(fold)
