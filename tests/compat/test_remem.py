"""REMem's metrics compared with slow twins of its definitions: scores, keys, rounding, warnings."""

from __future__ import annotations

import json
import logging
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.compat.remem import (
    RetrievalNDCGAny,
    RetrievalRecall,
    RetrievalRecallAll,
    RetrievalRecallAny,
    is_chunk_from_original,
)
from karat.errors import BadArgument
from support.remem_rule import comes_from

METRICS = (RetrievalRecall, RetrievalRecallAll, RetrievalRecallAny, RetrievalNDCGAny)
KEYS = ("Recall", "Recall_all", "Recall_any", "NDCG_any")
LOG = "karat.compat.remem"


# ---- the definitions, written out -----------------------------------------------------------------------------------


def recall(gold, chunks, k):
    return len(set(chunks[:k]) & set(gold)) / len(set(gold)) if gold else 0.0


def recall_all(gold, chunks, k):
    satisfied = set()
    for document in gold:
        for chunk in chunks[:k]:
            if comes_from(chunk, document):
                satisfied.add(document)
    return 1.0 if gold and len(satisfied) == len(gold) else 0.0


def recall_any(gold, chunks, k):
    for document in gold:
        for chunk in chunks[:k]:
            if comes_from(chunk, document):
                return 1.0
    return 0.0


def ndcg_any(gold, chunks, k):
    relevant = [1 if any(comes_from(chunk, document) for document in gold) else 0 for chunk in chunks]
    best = dcg(sorted(relevant, reverse=True)[:k])
    return dcg(relevant[:k]) / best if best else 0.0


def dcg(relevant):
    return sum(gain if i == 0 else gain / log2(i + 1) for i, gain in enumerate(relevant))


TWINS: dict = dict(zip(METRICS, (recall, recall_all, recall_any, ndcg_any), strict=True))


# ---- random conversations -------------------------------------------------------------------------------------------

GATE = "The gate of the garden stood open, and nobody knew who had forgotten to close it again."
SAID = st.sampled_from(
    [
        "yes", "no", "In Köln.", 'He said "yes".', "two\nlines", "two lines", "C:\\temp", "at 10: nowhere", "日本 💡",
        "yes, in Köln", "\t x", GATE, GATE.replace("close", "shut"), f'{GATE}\n"Why?" he asked: {GATE}', GATE[20:70],
        GATE.replace(" ", '" "'),
    ]
)  # fmt: skip
TALKS = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), SAID), min_size=1, max_size=4)


def as_text(talk):
    return "\n".join(f"{speaker}: {text}" for speaker, text in talk)


def as_json(talk):
    return json.dumps({"date": "3 May", "messages": [{"role": speaker, "content": text} for speaker, text in talk]})


def as_utf8(talk):
    return json.dumps([text for _, text in talk], ensure_ascii=False)


DOCUMENTS = st.one_of(TALKS.map(as_text), TALKS.map(as_json), TALKS.map(as_utf8), SAID, st.text(max_size=5))
DATES = st.sampled_from(["", "", "Date: 3 May\n", "Date: \n", "date: 3 May\n"])
SPEAKERS = st.sampled_from(["", "", "user: ", "assistant: ", "system: ", "User: "])


def something_is_left(chunk):
    """Whether there is a text to look for; where there is none, karat differs."""
    rest = chunk.partition("\n")[2] if chunk.startswith("Date: ") else chunk
    return bool((rest.split(": ")[1] if rest.startswith(("user: ", "assistant: ")) else rest).strip())


CHUNKS = st.one_of(st.tuples(DATES, SPEAKERS, SAID).map("".join), DOCUMENTS).filter(something_is_left)


@st.composite
def examples(draw):
    """Gold documents, perhaps none or the same twice, and a ranking in which some of them may stand as they are."""
    gold = draw(st.lists(DOCUMENTS, max_size=3))
    known = st.sampled_from(gold).filter(something_is_left) if any(map(something_is_left, gold)) else CHUNKS
    return gold, draw(st.lists(CHUNKS | known, max_size=7))


K_LISTS = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=300, deadline=None)
@given(rows=st.lists(examples(), min_size=1, max_size=4), k_list=K_LISTS)
def test_against_the_definition(metric, rows, k_list):
    gold, chunks = map(list, zip(*rows, strict=True))
    pooled, each = metric().calculate_metric_scores(gold, chunks, k_list)
    key = KEYS[METRICS.index(metric)]
    wanted = [{f"{key}@{k}": TWINS[metric](*row, k) for k in sorted(set(k_list))} for row in rows]
    assert [list(row) for row in each] == [list(row) for row in wanted]
    for row, other in zip(each, wanted, strict=True):
        assert list(row.values()) == pytest.approx(list(other.values()), abs=1e-12)
    assert list(pooled) == list(wanted[0])
    for name, value in pooled.items():
        assert value == round(value, 4)
        assert value == pytest.approx(sum(row[name] for row in wanted) / len(wanted), abs=0.5e-4 + 1e-12)


@settings(max_examples=500, deadline=None)
@given(chunk=CHUNKS, original=DOCUMENTS)
def test_the_rule_against_the_definition(chunk, original):
    assert is_chunk_from_original(chunk, original) is comes_from(chunk, original)


# ---- what was documented, and what was decided ----------------------------------------------------------------------


def test_the_example_of_the_documentation():
    gold, retrieved = [["doc1", "doc2"], ["doc3"]], [["doc1", "doc3", "doc2"], ["doc4", "doc3"]]
    pooled, each = RetrievalRecall().calculate_metric_scores(gold, retrieved, [1, 2])
    assert pooled == {"Recall@1": 0.25, "Recall@2": 0.75}  # it claims 0.5 at 1
    assert each == [{"Recall@1": 0.5, "Recall@2": 0.5}, {"Recall@1": 0.0, "Recall@2": 1.0}]


def test_a_conversation():
    talk = json.dumps({"date": "3 May", "messages": [{"role": "user", "content": 'I said "no"\nto Köln.'}]})
    chunks = ["user: something else", 'Date: 3 May\nuser: I said "no"\nto Köln.']
    assert [is_chunk_from_original(chunk, talk) for chunk in chunks] == [False, True]
    scores = [metric().calculate_metric_scores([[talk]], [chunks], [1, 2])[0] for metric in METRICS]
    assert scores == [
        {"Recall@1": 0.0, "Recall@2": 0.0},
        {"Recall_all@1": 0.0, "Recall_all@2": 1.0},
        {"Recall_any@1": 0.0, "Recall_any@2": 1.0},
        {"NDCG_any@1": 0.0, "NDCG_any@2": 1.0},  # the first two ranks weigh the same
    ]


def test_white_space_and_case_matter():
    original = "two lines, one text"
    found = [
        is_chunk_from_original(chunk, original) for chunk in ("two lines", "two\nlines", "two  lines", "Two lines")
    ]
    assert found == [True, False, False, False]


def test_the_ideal_ranking_has_only_retrieved_items():
    _, (scores,) = RetrievalNDCGAny().calculate_metric_scores([["a b c"]], [["x", "y", "a", "b"]], [2, 3, 4])
    best = 1 + 1 / log2(2)
    assert scores == pytest.approx(
        {"NDCG_any@2": 0.0, "NDCG_any@3": (1 / log2(3)) / best, "NDCG_any@4": (1 / log2(3) + 1 / log2(4)) / best}
    )


@pytest.mark.parametrize("chunks", [["a"], ["a", "a"], ["a", "\0", "a b"]])
def test_repeated_gold_is_never_fully_found(chunks):
    assert RetrievalRecallAll().calculate_metric_scores([["a", "a"]], [chunks], [3])[0] == {"Recall_all@3": 0.0}
    assert RetrievalRecallAll().calculate_metric_scores([["a", "a"], ["a"]], [chunks, chunks], [3])[0] == {
        "Recall_all@3": 0.5
    }
    for metric, key in ((RetrievalRecall, "Recall@3"), (RetrievalRecallAny, "Recall_any@3")):
        assert metric().calculate_metric_scores([["a", "a"]], [chunks], [3])[0] == {key: 1.0}


@pytest.mark.parametrize("chunk", ["Date: 3 May", "Date: 3 May\n", "Date: 3 May\n ", "user: ", "", " \n"])
def test_a_chunk_that_is_empty_after_stripping_matches_nothing(chunk):
    original = "user: yes \n no"
    assert comes_from(chunk, original)  # as everything holds the empty text
    assert not is_chunk_from_original(chunk, original)


@pytest.mark.parametrize("metric", METRICS)
def test_no_gold_is_zero(metric):
    pooled, each = metric().calculate_metric_scores([[], ["a"]], [["a"], ["a"]], [1])
    assert list(pooled.values()) == [0.5]
    assert [list(row.values()) for row in each] == [[0.0], [1.0]]


@pytest.mark.parametrize(("metric", "key"), list(zip(METRICS, KEYS, strict=True)))
def test_keys_and_types(metric, key):
    pooled, each = metric(global_config={"anything": 1}).calculate_metric_scores([["a"]] * 3, [["a"]] * 3, [5, 1, 5])
    assert list(pooled) == [f"{key}@1", f"{key}@5"]
    assert all(list(row) == list(pooled) for row in each)
    assert type(pooled) is dict
    assert type(each) is list
    assert {type(value) for row in [pooled, *each] for value in row.values()} == {float}
    assert list(metric(None).calculate_metric_scores([["a"]], [["a"]])[0]) == [f"{key}@{k}" for k in (1, 5, 10, 20)]
    assert metric().global_config is None
    assert metric.metric_name == f"retrieval_{key.lower()}"


def test_means_are_rounded_and_single_scores_are_not():
    gold = [["a", "b", "c"]]
    pooled, each = RetrievalRecall().calculate_metric_scores(gold, [["a"]], [1])
    assert (pooled, each) == ({"Recall@1": 0.3333}, [{"Recall@1": 1 / 3}])


@pytest.mark.parametrize("metric", METRICS)
def test_no_examples(metric):
    pooled, each = metric().calculate_metric_scores([], [], [1, 5])
    assert list(pooled.values()) == [0.0, 0.0]
    assert each == []


@pytest.mark.parametrize("metric", METRICS)
def test_short_rankings_give_a_warning(metric, caplog):
    with caplog.at_level(logging.WARNING, LOG):
        metric().calculate_metric_scores([["a"]] * 2, [["a", "b"]] * 2, [1, 2])
        assert caplog.records == []
        metric().calculate_metric_scores([["a"]] * 3, [["a"], ["a", "b"], []], [2, 1])
    (record,) = caplog.records
    assert (record.levelname, record.name) == ("WARNING", LOG)
    assert record.getMessage() == "2 of 3 rankings are shorter than the largest k, 2; the shortest has 0 chunks"


def test_the_arguments_are_not_changed():
    gold, chunks, k_list = [["b", "a", "b"]], [["x", "a", "x"]], [5, 1, 5]
    for metric in METRICS:
        metric().calculate_metric_scores(gold, chunks, k_list)
    assert (gold, chunks, k_list) == ([["b", "a", "b"]], [["x", "a", "x"]], [5, 1, 5])


@pytest.mark.parametrize("k_list", [(1, 2), {2, 1}, range(1, 3), iter([2, 1]), np.array([2, 1, 1])])
def test_k_lists_of_any_kind(k_list):
    pooled, _ = RetrievalRecall().calculate_metric_scores([["a"]], [["b", "a"]], k_list)
    assert pooled == {"Recall@1": 0.0, "Recall@2": 1.0}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k_list", [[], [0], [1, -1], ["1"], [1.0], [True], [None], None, 5, "15"])
def test_invalid_k_lists(metric, k_list):
    with pytest.raises(BadArgument, match="k_list must have whole numbers"):
        metric().calculate_metric_scores([["a"]], [["a"]], k_list)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("gold", "chunks", "said"),
    [
        ([["a"]], [], "gold for 1 examples, but 0 rankings"),
        ([["a"]], [["a"], ["b"]], "gold for 1 examples, but 2 rankings"),
        (["doc"], [["doc"]], "gold_docs: example 1 is not a list of texts"),
        ([["doc"]], ["doc"], "retrieved_chunks: example 1 is not a list of texts"),
        ([["a"], None], [["a"], ["a"]], "gold_docs: example 2 is not a list of texts"),
        ("doc", [["doc"]], "gold_docs must have a list of texts for each example"),
        ([["a"]], None, "retrieved_chunks must have a list"),
        ([["a"]], [[None]], "item 1 of retrieved is null"),
    ],
)
def test_invalid_input(metric, gold, chunks, said):
    with pytest.raises(karat.InputError, match=said):
        metric().calculate_metric_scores(gold, chunks, [1])
