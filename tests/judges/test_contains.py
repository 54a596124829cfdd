"""The judge `contains`: a chunk comes from a gold document, or a gold quote lies in a chunk."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from support.remem_rule import comes_from


def hits(retrieved, gold, judge="contains"):
    run = karat.evaluate(retrieved=[retrieved], gold=[gold], metrics="recall", judge=judge)
    return [(hit.rank, hit.gold, hit.why) for hit in run.hits(1)]


DOC = "Berlin is the capital of Germany. It has 3.7 million inhabitants."


@pytest.mark.parametrize(
    ("chunk", "gold", "why"),
    [
        (DOC, DOC, "exact"),
        (DOC.replace(" ", "  "), DOC, "exact"),
        (DOC, "the capital of Germany", "contains 100 %"),
        (DOC.replace(" ", " \n"), "the capital  of Germany", "contains 100 %"),
        ("It has 3.7 million", DOC, "is in the gold, 28 % of it"),
        ("It has\n3.7   million ", DOC, None),
    ],
)
def test_quotes_in_chunks_and_chunks_in_gold(chunk, gold, why):
    ((rank, label, told),) = hits([chunk], [gold])
    assert (rank, label) == (1, gold)
    assert told == why or (why is None and "is in the gold" in told)


def test_directions():
    both = [DOC, "capital of Germany"]
    assert [
        rank for rank, *_ in hits(["the capital", "Berlin is the capital of Germany. It"], ["is the capital of"])
    ] == [1, 2]
    assert [rank for rank, *_ in hits(both, ["Berlin is the capital of Germany"], "contains(gold_in_chunk)")] == [1]
    assert [rank for rank, *_ in hits(both, ["Berlin is the capital of Germany"], "contains(chunk_in_gold)")] == [2]


def test_a_chunk_of_mostly_white_space_may_lie_in_a_shorter_gold():
    assert hits(["Revenue" + " " * 500 + "100" + "\t" * 90 + "200"], ["Revenue 100 200 in total"])


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_blank_gold_matches_only_blank_chunks(blank):
    assert hits([blank], ["a"]) == []
    assert hits(["a"], [blank]) == []
    assert hits([blank], [""]) == [(1, "", "both are blank")]


def test_case_matters_unless_it_is_folded():
    assert hits(["THE CAPITAL"], [DOC]) == []
    assert len(hits(["THE CAPITAL", "the capital, of germany"], [DOC], "contains(fold=(case, punctuation))")) == 2
    assert hits(["It  has"], [DOC], "contains(fold=())") == []


ALPHABET = st.text(alphabet="ab \n", max_size=12)


@settings(max_examples=300, deadline=None)
@given(chunks=st.lists(ALPHABET, max_size=4), gold=st.lists(ALPHABET, min_size=1, max_size=3))
def test_contains_equals_its_definition(chunks, gold):
    """Folding all there is and asking `in`, without words that spare the trouble."""

    def fold(text):
        return " ".join(text.split())

    gold = list({fold(item): item for item in gold}.values())  # what folds to one is one
    wanted = set()
    for rank, chunk in enumerate(map(fold, chunks), 1):
        for item in gold:
            if chunk == fold(item) or (chunk and fold(item) and (chunk in fold(item) or fold(item) in chunk)):
                wanted.add((rank, item))
    assert {(rank, item) for rank, item, _ in hits(chunks, gold)} == wanted


TALK = 'Session of May\nuser: "Where is it?" I asked: nowhere\nassistant: In Köln.'
LOG = json.dumps({"turns": [TALK]}) + json.dumps("é") + "plain"
CHUNKS = [
    'Date: 3 May\nuser: "Where is it?" I asked: nowhere',
    "Date: 3 May\nIn Köln.",
    "user: In Köln.",
    "user: In Kö",  # as JSON it ends in a quote mark, which the log does not have there
    "assistant: In Köln.: and more",
    "user: somewhere else",
    "Session of May",
    "Session of June",
    "Date: 3 May\nuser: Session of May",
    'user: "Where',
    "é",
    "user: é",
    "plain",
    "Date: plain",
]  # fmt: skip


@pytest.mark.parametrize("original", [TALK, LOG])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunks_of_a_conversation_as_in_remem(chunk, original):
    judge = "contains(chunk_in_gold, strip=(date, speaker, json), fold=())"
    alone = chunk.startswith("Date: ") and "\n" not in chunk
    assert bool(hits([chunk], [original], judge)) == (comes_from(chunk, original) and not alone)


def test_strip_selects_what_is_stripped():
    chunk, gold = "Date: today\nuser: yes", "they said yes"
    for strip, found in (("()", 0), ("date", 0), ("(date, speaker)", 1), ("speaker", 0)):
        assert len(hits([chunk], [gold], f"contains(strip={strip})")) == found
    assert karat.Contains(strip="date").name == "contains(strip=(date,))"


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("contains(sideways)", "direction"),
        ("contains(strip=(dates))", "strip"),
        ("contains(gold_in_chunk, strip=date)", "strip"),
        ("contains(fold=colour)", "fold"),
        ("contains(either, 3)", "has no name"),
        ("contains(direktion=either)", "Did you mean direction"),
        ("contains(either, direction=either)", "given twice"),
    ],
)
def test_invalid_settings_are_refused(judge, said):
    with pytest.raises(karat.KaratError, match=said):
        hits(["a"], ["a"], judge)


def score(metric, retrieved, gold, judge="spans", **how):
    return karat.score(metric, retrieved, gold, judge=judge, **how)


def test_ndcg_is_at_most_1_if_one_chunk_contains_two_quotes():
    c = karat.Convention(name="r", ideal="returned")
    assert score("ndcg@2", ["a b"], ["a", "b"], "contains", convention=c) == 1.0


@pytest.mark.parametrize("fold", [("space",), ("unicode", "space"), ("space", "case"), ("punctuation",)])
def test_chunks_are_stripped_before_folding(fold):
    judge = karat.Contains("chunk_in_gold", strip=("date", "speaker"), fold=fold)
    assert score("recall", ["Date: 2020\nuser: hello there"], ["well hello there you"], judge) == 1.0
