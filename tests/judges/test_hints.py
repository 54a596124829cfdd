"""When nothing matched: the run says what would have; settings that are slips are told with the right one."""

from __future__ import annotations

import pytest

import karat


def notes(retrieved, gold, **how):
    return " ".join(karat.evaluate([{"retrieved": retrieved, "gold": gold}], "recall", **how).provenance.notes)


QUOTE = "paid within ten days"
CHUNK = "Refunds are paid within ten days."


def test_texts_inside_others():
    assert "1 of 1 gold texts lie in retrieved ones: try the judge contains" in notes([CHUNK], [QUOTE])
    assert "try the judge contains" in notes([CHUNK], ["paid  within\nten days"])
    assert "try the judge contains" in notes([{"id": "a", "text": CHUNK}], [{"id": "b", "text": QUOTE}])
    assert not notes([CHUNK], ["something else"])
    assert not notes([CHUNK, QUOTE], [QUOTE])
    assert not notes([CHUNK], [QUOTE], judge="contains")


def test_documents():
    chunks = [{"id": "a#1", "doc": "a"}, {"id": "b#1", "doc": "b"}]
    assert '1 gold ids are documents of retrieved chunks: try at="doc"' in notes(chunks, ["b"])
    assert not notes(chunks, ["b"], at="doc")


@pytest.mark.parametrize("judge", ["fuzzy(0.8, graded=true)", "fuzzy(0.8, graded=True)", "fuzzy(0.8, graded=TRUE)"])
def test_truth_values_in_any_case(judge):
    assert karat.score("ndcg", ["abcdefghij"], ["abcdefghix"], judge=judge) == pytest.approx(0.9)


@pytest.mark.parametrize("judge", ["fuzzy(graded=yes)", "fuzzy(strict=1)", "spans(graded=no)"])
def test_what_is_no_truth_value(judge):
    with pytest.raises(karat.BadArgument, match="is True or False"):
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
def test_slips_in_settings(judge, said):
    with pytest.raises(karat.BadArgument) as error:
        karat.score("recall", ["a"], ["a"], judge=judge)
    for words in said:
        assert words in str(error.value)


def test_budgets_name_who_counted():
    run = karat.evaluate(retrieved=[["a b"]], gold=[["a b"]], metrics="recall@5t", tokens=len)
    assert run.provenance.tokens == "len"
    assert karat.evaluate(retrieved=[["a b"]], gold=[["a b"]], metrics="recall@5").provenance.tokens == ""
    with pytest.raises(karat.InputError, match="needs the texts"):
        karat.evaluate(retrieved=[["doc-1"]], gold=[["doc-1"]], metrics="recall@5t")
    with pytest.raises(karat.BadArgument, match="counting tokens failed: ZeroDivisionError"):
        karat.score("recall@5t", ["a b"], ["a b"], tokens=lambda text: 1 // 0)
    with pytest.raises(karat.BadArgument, match="budget of tokens") as error:
        karat.parse("recall@300T")
    assert "recall@300t" in str(error.value)


def test_a_chunk_whose_range_holds_another_text_is_told():
    docs = {"d": "one two three four"}
    chunk = {"doc": "d", "start": 0, "end": 7, "text": "something else"}
    judge = karat.Spans(corpus=docs)
    run = karat.evaluate([{"retrieved": [chunk], "gold": [{"doc": "d", "text": "one"}]}], "recall", judge=judge)
    assert "1 chunk's range does not hold the text that stands beside it" in run.provenance.notes[0]
