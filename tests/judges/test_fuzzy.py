"""The judge `fuzzy`: every scorer against rapidfuzz called pair by pair, thresholds, edges."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz import fuzz
from rapidfuzz.distance import Hamming, Indel, Jaro, JaroWinkler, Levenshtein

import karat
from karat.judges import fuzzy
from karat.judges.fuzzy import SCORERS


def rouge_l(a, b):
    """Two times the longest common subsequence of words, over all words."""
    a, b = ["".join(c if c.isalnum() else " " for c in text.lower()).split() for text in (a, b)]
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return 2 * table[-1][-1] / (len(a) + len(b)) if a and b else 0.0


PLAIN = {
    "ratio": Indel.normalized_similarity,
    "token_sort": lambda a, b: fuzz.token_sort_ratio(a, b) / 100,
    "token_set": lambda a, b: fuzz.token_set_ratio(a, b) / 100,
    "partial": lambda a, b: fuzz.partial_ratio(a, b) / 100,
    "levenshtein": lambda a, b: 1 - Levenshtein.distance(a, b) / max(len(a), len(b)),
    "hamming": Hamming.normalized_similarity,
    "jaro": Jaro.similarity,
    "jaro_winkler": JaroWinkler.similarity,
    "rouge_l": rouge_l,
}
WORDS = ["alpha", "beta", "gamma", "delta", "eps", "zeta", "été", "Ω"]


def texts(seed, count):
    rng = random.Random(seed)
    base = [" ".join(rng.choices(WORDS, k=rng.randint(1, 8))) for _ in range(count)]
    return base + ["".join(c for c in text if rng.random() < 0.9) for text in base]


def test_every_scorer_has_a_reference_implementation():
    assert PLAIN.keys() == SCORERS.keys()


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("name", SCORERS)
def test_scorers_equal_their_reference_implementation(name, threshold, strict):
    retrieved, gold = texts(1, 6), list(dict.fromkeys(texts(2, 3) + texts(1, 2)))
    run = karat.evaluate(
        retrieved=[retrieved], gold=[gold], metrics="recall", judge=karat.Fuzzy(threshold, name, strict=strict)
    )
    found = {(hit.rank, hit.gold): hit.why for hit in run.hits(1)}
    for rank, chunk in enumerate(retrieved, 1):
        for item in gold:
            value = round(1.0 if chunk == item else PLAIN[name](item, chunk), 12)
            enough = value > threshold if strict else value >= threshold
            assert ((rank, item) in found) == enough, (chunk, item, value)
            if enough:
                assert found[rank, item] in ("exact", f"similar {min(value, 0.99):.2f}", f"similar {value:.2f}")


@pytest.mark.parametrize("tenths", range(1, 10))
def test_thresholds_are_exact_in_decimal(tenths):
    same = "0123456789"[:tenths] + "x" * (10 - tenths)
    for text in (same, "0123456789"[:tenths]):
        for strict in (False, True):
            judge = karat.Fuzzy(tenths / 10, "levenshtein", strict=strict)
            assert karat.score("recall", [text], ["0123456789"], judge=judge) == (not strict)


def test_strict_excludes_the_threshold_itself():
    for strict, recall in ((False, 1.0), (True, 0.0)):
        judge = karat.Fuzzy(0.5, "levenshtein", strict=strict)
        assert karat.score("recall", ["abcd"], ["abxy"], judge=judge) == recall


def test_a_custom_scorer():
    def same_length(a, b):
        return 1.0 if len(a) == len(b) else 0.25

    run = karat.evaluate(
        retrieved=[["abc", "abcd"]], gold=[["xyz"]], metrics="recall", judge=karat.Fuzzy(0.5, same_length)
    )
    assert run.hits(1) == [(1, "xyz", 1.0, "similar 1.00")]
    assert run.provenance.judge == "fuzzy(threshold=0.5, scorer=same_length)"


@pytest.mark.parametrize("value", [1.5, -0.1, float("nan"), "high", None])
def test_a_custom_scorer_must_return_a_similarity(value):
    with pytest.raises(karat.BadArgument, match="scorer"):
        karat.score("recall", ["a"], ["b"], judge=karat.Fuzzy(0.5, lambda a, b: value))


@pytest.mark.parametrize("threshold", [-0.1, 1.1, 80, float("nan"), "0.8", True, None])
def test_invalid_thresholds_are_refused(threshold):
    with pytest.raises(karat.BadArgument, match="between 0 and 1"):
        karat.Fuzzy(threshold)


def test_unknown_scorer():
    with pytest.raises(karat.UnknownName, match="Did you mean levenshtein"):
        karat.Fuzzy(0.8, "levenstein")


@pytest.mark.parametrize("name", SCORERS)
def test_empty_texts_are_symmetric(name):
    judge = karat.Fuzzy(0.1, name)
    assert karat.score("recall", [""], [""], judge=judge) == 1
    assert karat.score("recall", ["a b"], [""], judge=judge) == 0
    assert karat.score("recall", [""], ["a b"], judge=judge) == 0


def test_texts_without_a_word_have_no_words_in_common():
    assert karat.score("recall", ["..."], ["!?"], judge="fuzzy(0.1, rouge_l)") == 0


def test_a_graded_match_earns_grade_times_similarity():
    run = karat.evaluate(
        retrieved=[["abcd"]], gold=[{"abcx": 2}], metrics="ndcg recall", judge="fuzzy(0.5, levenshtein, graded=True)"
    )
    assert run.mean == {"ndcg": 0.75, "recall": 1.0}
    assert run.hits(1)[0].grade == 1.5


def test_duplicates_count_once():
    run = karat.evaluate(retrieved=[["abcd", "abcd", "abce"]], gold=[["abcx", "abcx"]], metrics="precision@3 recall@1",
                         judge="fuzzy(0.7)")  # fmt: skip
    assert run.mean == {"precision@3": pytest.approx(2 / 3), "recall@1": 1.0}


def test_very_long_texts_are_refused_with_a_hint():
    with pytest.raises(karat.InputError, match='query "1", item 2 of retrieved: texts of 200,000 and') as error:
        karat.score("recall", ["b", "ab" * 100_000], ["a" * 200_000], judge="fuzzy(0.4)")
    assert "contains" in str(error.value)
    same = "ab" * 10_000_000
    assert karat.score("recall", [same, "x"], [str(same)], judge="fuzzy") == 1.0  # equal, or ruled out by the length


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), at_once=st.integers(1, 50))
def test_the_batch_size_changes_nothing(seed, at_once):
    rng = random.Random(seed)
    retrieved = [texts(rng.random(), rng.randint(0, 4)) for _ in range(4)]
    gold = [texts(rng.random(), rng.randint(0, 2)) for _ in range(4)]
    whole = karat.evaluate(retrieved=retrieved, gold=gold, metrics="recall@1,3 ap", judge="fuzzy(0.6)")
    old, fuzzy._AT_ONCE = fuzzy._AT_ONCE, at_once
    try:
        parts = karat.evaluate(retrieved=retrieved, gold=gold, metrics="recall@1,3 ap", judge="fuzzy(0.6)")
    finally:
        fuzzy._AT_ONCE = old
    for name in whole.scores:
        np.testing.assert_array_equal(whole.scores[name], parts.scores[name])


def test_threads_change_nothing(monkeypatch):
    retrieved, gold = [texts(3, 10)], [texts(4, 5)]
    runs = []
    for worth in (0, 10**12):
        monkeypatch.setattr("karat.judges.fuzzy._WORTH_THREADS", worth)
        runs.append(karat.evaluate(retrieved=retrieved, gold=gold, metrics="recall@1,3", judge="fuzzy(0.5)").hits(1))
    assert runs[0] == runs[1]
