"""REMem's `RetrievalRecallLocomo` and `BaseMetric`, and chunks without text."""

from __future__ import annotations

import json
from unicodedata import category, normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.compat.remem import BaseMetric, RetrievalRecall, RetrievalRecallLocomo, is_chunk_from_original
from karat.errors import InputError


def talk(*said):
    return json.dumps({"messages": [{"role": "user", "content": text} for text in said]})


def scores(gold, chunks, ks=(1, 2)):
    return RetrievalRecallLocomo().calculate_metric_scores([gold], [chunks], ks)[0]


# ---- the definition, written out ------------------------------------------------------------------------------------


def tokens(text):
    """Runs of letters, digits and marks, and every other visible character."""
    found, word = [], ""
    for char in [*normalize("NFD", text), " "]:
        if category(char)[0] in "LNM":
            word += char
            continue
        found += [word.lower()] if word else []
        word = ""
        found += [] if category(char)[0] in "ZC" else [char.lower()]
    return found


def holds(chunk, message):
    text, wanted = tokens(chunk), tokens(message)
    return bool(wanted) and any(text[i : i + len(wanted)] == wanted for i in range(len(text)))


def hit(gold, chunks, k):
    first = [json.loads(document)["messages"][0]["content"] for document in gold]
    return float(any(holds(chunk, message) for chunk in chunks[:k] for message in first))


WORDS = [
    "Yes",
    "yes",
    "no",
    "Köln",
    "Ko\u0308ln",
    "a_b",
    "10:30",
    "…",
    "ΑΣ'Α",
    "ας",
    "\u200b",
    "\t",
    "İ",
    "日本",
    "\x01",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join) | st.text(max_size=4)


@settings(max_examples=300, deadline=None)
@given(
    gold=st.lists(st.lists(TEXTS, min_size=1, max_size=2).map(lambda said: talk(*said)), max_size=2),
    chunks=st.lists(st.lists(TEXTS, max_size=3).map(" ".join), max_size=4),
    ks=st.lists(st.integers(1, 5), min_size=1, max_size=3),
)
def test_against_the_definition(gold, chunks, ks):
    assert scores(gold, chunks, ks) == {f"Recall@{k}": hit(gold, chunks, k) for k in sorted(set(ks))}


# ---- by hand --------------------------------------------------------------------------------------------------------


def test_it_is_a_hit_rate_under_the_name_of_recall():
    gold, chunks = [talk("I moved to Köln."), talk("never said")], ["no", "[3 May] Ann: I MOVED to\nKo\u0308ln. Then"]
    assert scores(gold, chunks) == {"Recall@1": 0.0, "Recall@2": 1.0}
    pooled, each = RetrievalRecallLocomo().calculate_metric_scores([gold] * 3, [chunks, ["x"], []], [2])
    assert pooled == {"Recall@2": 0.3333}
    assert each == [{"Recall@2": 1.0}, {"Recall@2": 0.0}, {"Recall@2": 0.0}]


@pytest.mark.parametrize(
    ("message", "chunk", "found"),
    [
        ("art", "party", False),  # a token, not letters
        ("art", "the art.", True),
        ("it's", "It ' s", True),  # white space between tokens does not matter
        ("a b", "a c b", False),
        ("second", "first", False),
        ("", "anything", False),
        (" \n", "", False),
    ],
)
def test_tokens(message, chunk, found):
    assert scores([talk(message, "second")], [chunk], [1]) == {"Recall@1": float(found)}


def test_only_the_first_message_counts():
    assert scores([talk("first", "second")], ["second"], [1]) == {"Recall@1": 0.0}


@pytest.mark.parametrize("document", ["plain text", "{}", '{"messages": []}', '{"messages": [{"content": 3}]}', "[1]"])
def test_gold_that_is_no_conversation_is_refused(document):
    with pytest.raises(InputError, match="example 1 has a text that is no conversation"):
        scores([document], ["x"])


@pytest.mark.parametrize("chunk", [5, None, ["a"]])
def test_a_chunk_that_is_no_text_is_refused(chunk):
    with pytest.raises(InputError, match="retrieved_chunks: example 2 has a chunk that is no text"):
        RetrievalRecallLocomo().calculate_metric_scores([[talk("a")]] * 2, [["a"], ["a", chunk]], [1])


def test_a_metric_of_ones_own():
    class Mine(BaseMetric):
        metric_name = "mine"

        def calculate_metric_scores(self, gold):
            return {"mine": len(gold)}, []

    assert BaseMetric().metric_name == "base"
    assert BaseMetric(3).calculate_metric_scores() == ({}, [])
    assert (Mine(5).global_config, Mine().calculate_metric_scores("ab")) == (5, ({"mine": 2}, []))
    assert isinstance(RetrievalRecall(), BaseMetric)
    assert RetrievalRecallLocomo().metric_name == "retrieval_recall_locomo"


@pytest.mark.parametrize("chunk", ["", " ", "\n\t ", "\u2003", "Date: 3 May\n \n", "user:  "])
def test_a_chunk_without_text_comes_from_no_document_with_text(chunk):
    assert not is_chunk_from_original(chunk, " a \n b \t\u2003")
    assert not is_chunk_from_original(chunk, talk(" ", "a b"))


@pytest.mark.parametrize("chunk", ["", " ", "\n\t "])
def test_white_space_alone_comes_from_a_document_of_white_space(chunk):
    assert is_chunk_from_original(chunk, "")
    assert is_chunk_from_original(chunk, " ")


@pytest.mark.parametrize("chunk", ["Date: 3 May", "Date: 3 May\n", "Date: 3 May\nuser: ", "user: "])
def test_a_date_or_a_speaker_alone_comes_from_no_document(chunk):
    assert not any(is_chunk_from_original(chunk, document) for document in ("", " ", chunk, "a b"))
