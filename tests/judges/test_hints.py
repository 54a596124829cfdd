"""Hints if nothing matched, and errors for settings with typos."""

from __future__ import annotations

import pytest

import karat


def hint(retrieved, gold, **how):
    run = karat.evaluate([{"retrieved": retrieved, "gold": gold}], "recall", **how)
    return " ".join(line for line in run.remarks() if line.startswith("Nothing matched"))


QUOTE = "paid within ten days"
CHUNK = "Refunds are paid within ten days."


def test_gold_texts_inside_chunks_suggest_contains():
    assert "1 of 1 gold texts looked at are inside retrieved texts: try the judge contains" in hint([CHUNK], [QUOTE])
    assert "try the judge contains" in hint([CHUNK], ["paid  within\nten days"])
    assert "try the judge contains" in hint([{"id": "a", "text": CHUNK}], [{"id": "b", "text": QUOTE}])
    assert not hint([CHUNK], ["something else"])
    assert not hint([CHUNK, QUOTE], [QUOTE])
    assert not hint([CHUNK], [QUOTE], judge="contains")


def test_gold_ids_that_are_documents_suggest_at_doc():
    chunks = [{"id": "a#1", "doc": "a"}, {"id": "b#1", "doc": "b"}]
    assert '1 gold id is a document of retrieved chunks: try at="doc"' in hint(chunks, ["b"])
    assert not hint(chunks, ["b"], at="doc")


@pytest.mark.parametrize("judge", ["fuzzy(0.8, graded=true)", "fuzzy(0.8, graded=True)", "fuzzy(0.8, graded=TRUE)"])
def test_true_may_be_written_in_any_case(judge):
    assert karat.score("ndcg", ["abcdefghij"], ["abcdefghix"], judge=judge) == pytest.approx(0.9)


@pytest.mark.parametrize("judge", ["fuzzy(graded=yes)", "fuzzy(strict=1)", "spans(graded=no)"])
def test_other_values_than_true_and_false_are_refused(judge):
    with pytest.raises(karat.BadArgument, match="must be True or False"):
        karat.score("recall", ["a"], ["a"], judge=judge)


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("fuzzy(80)", ["between 0 and 1", "try  0.8"]),
        ("spans(coverge=0.5)", ['no setting "coverge". Did you mean coverage?', "spans(coverage=…"]),
        ("spans(0.5, docs)", ["has no name", "corpus=…"]),
        ("exact(1)", ["has no name"]),
    ],
)
def test_typos_in_settings_are_explained(judge, said):
    with pytest.raises(karat.BadArgument) as error:
        karat.score("recall", ["a"], ["a"], judge=judge)
    for words in said:
        assert words in str(error.value)


def test_a_chunk_range_with_another_text_is_reported():
    docs = {"d": "one two three four"}
    chunk = {"doc": "d", "start": 0, "end": 7, "text": "something else"}
    judge = karat.Spans(corpus=docs)
    run = karat.evaluate([{"retrieved": [chunk], "gold": [{"doc": "d", "text": "one"}]}], "recall", judge=judge)
    assert any(line.startswith("1 chunk range does not contain the text given with it") for line in run.remarks())
