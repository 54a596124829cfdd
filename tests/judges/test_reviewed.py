"""What a review found: each once wrong, or not watched by any other test."""

from __future__ import annotations

import numpy as np
import pytest

import karat
from support.ranges import part, sample

QUOTE = "the quick brown fox jumps over the lazy dog"
DOCS = {"a": f"Intro. {QUOTE} Outro and more.", "b": "zzz"}


def score(metric, retrieved, gold, judge="spans", **how):
    return karat.score(metric, retrieved, gold, judge=judge, **how)


def test_ties_keep_the_fields_of_a_record_together():
    chunks = [part("b", 0, 50, score=1.0), part("a", 100, 150, score=1.0)]
    assert score("recall@1", chunks, [part("b", 0, 50)]) == 1.0
    mixed = [part("a", 0, 9, score=1.0, text="x"), part("b", 0, 9, score=1.0)]
    assert score("recall@2", mixed, [part("b", 0, 9)]) == 1.0
    texts = [{"doc": "b", "text": "a", "score": 1.0}, {"doc": "a", "text": "z z z z", "score": 1.0}]
    assert score("recall@4t", texts, ["a"], "ids", at="doc") == 1.0


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, np.int32, float])
def test_offsets_of_any_kind_of_number(kind):
    chunk = {"doc": "a", "start": kind(0), "end": kind(10)}
    assert score("recall", [chunk], [{"doc": "a", "start": kind(20), "end": kind(60)}]) == 0.0
    assert score("recall", [{"doc": "a", "start": kind(250), "text": "x" * 20}], [part("a", 250, 270)]) == 1.0


def test_the_same_text_of_another_document_is_no_copy():
    chunks = [{"doc": "d", "text": "Opening hours"}, {"doc": "e", "text": "Opening hours"}]
    assert score("recall@2", chunks, [{"doc": "e", "text": "Opening hours"}]) == 1.0
    assert score("precision@2", [*chunks, chunks[1]], [{"doc": "e", "text": "Opening hours"}]) == 0.5


def test_ndcg_stays_bounded_where_a_chunk_fills_two_places():
    c = karat.Convention(name="r", ideal="returned")
    assert score("ndcg@2", ["a b"], ["a", "b"], "contains", convention=c) == 1.0


def test_a_member_of_grade_0_does_not_hide_a_relevant_one():
    gold = [{"id": "A", "group": 1, "grade": 1}, {"id": "B", "group": 1, "grade": 0}]
    for ranking in (["B", "A"], ["A", "B"]):
        assert score("bpref", ranking, gold, "ids") == 1.0
        assert score("recall@2", ranking, gold, "ids") == 1.0


@pytest.mark.parametrize("fold", [("space",), ("unicode", "space"), ("space", "case"), ("punctuation",)])
def test_what_is_stripped_is_stripped_before_it_is_folded(fold):
    judge = karat.Contains("chunk_in_gold", strip=("date", "speaker"), fold=fold)
    assert score("recall", ["Date: 2020\nuser: hello there"], ["well hello there you"], judge) == 1.0


def test_a_chunk_compared_by_text_and_one_by_its_place_are_united_in_either_order():
    x, y = {"doc": "a", "text": f"Heading: {QUOTE}"}, {"doc": "a", "text": QUOTE}
    judge = karat.Spans(corpus=DOCS)
    values = [score("span_precision", order, [{"doc": "a", "text": QUOTE}], judge) for order in ([x, y], [y, x])]
    assert values[0] == values[1] == pytest.approx(43 / 52)
    assert score("span_precision", [x, x], [{"doc": "a", "text": QUOTE}], judge) == pytest.approx(43 / 52)
    assert score("recall", [{"doc": "b", "text": f"H: {QUOTE}"}], [{"doc": "a", "text": QUOTE}], judge) == 0.0


@pytest.mark.parametrize("judge", ["text", "contains", "spans"])
def test_gold_that_is_equal_to_the_judge_is_one(judge):
    assert score("recall", ["a b"], ["a b", "a  b", "c"], judge) == 0.5


def test_different_gold_is_never_one():
    gold = [{"text": "a: b c"}, {"doc": "a", "text": "b c"}]
    assert karat.evaluate(sample(["b c"], gold), "recall", judge="spans").gold_size == 2
    gold = [{"id": "x", "group": "a"}, {"id": "a"}]
    assert score("recall", ["a"], gold, "ids") == 0.5


def test_copies_leave_the_ranking_by_what_the_judge_compares():
    c = karat.Convention(name="r", duplicates="remove")
    assert score("recall@2", ["A!", "a", "b"], ["a", "b"], "text", convention=c) == 1.0
    assert score("recall@2t", ["A!", "a", "b"], ["a", "b"], "text", convention=c) == 1.0
    ids = [{"id": 1, "text": "x"}, {"id": "1", "text": "x"}, {"id": 2, "text": "y"}]
    assert score("recall@2t", ids, ["2"], "ids", convention=c) == 1.0
    chunks = [{"doc": "d", "text": "one"}, {"doc": "d", "text": "two three four"}, {"doc": "e", "text": "five"}]
    assert score("recall@2t", chunks, ["e"], "ids", at="doc", convention=c) == 1.0


def test_counters_of_hugging_face():
    assert score("recall@3t", ["a b c"], ["a b c"], "exact", tokens=lambda text: {"input_ids": text.split()}) == 1.0
    assert score("recall@2t", ["a b c"], ["a b c"], "exact", tokens=lambda text: {"input_ids": text.split()}) == 0.0
    with pytest.raises(karat.BadArgument, match="counter of tokens"):
        score("recall@3t", ["a b"], ["a b"], "exact", tokens=lambda text: {"a": 1})

    def marked(text):
        return [(0, 0), *((i, i + 1) for i in range(len(text))), (0, 0)]

    judge = karat.Spans(corpus={"d": "abcd"}, tokenizer=marked)
    assert score("span_recall", [part("d", 0, 2)], [part("d", 0, 4)], judge) == 0.5


def test_every_place_of_a_quote_counts_whatever_its_white_space():
    judge = karat.Spans(corpus={"d": "a quick fox.   A quick\nfox."})
    gold = [{"doc": "d", "text": "quick fox"}]
    assert score("recall", [part("d", 15, 27)], gold, judge) == 1.0
    assert score("recall", [part("d", 0, 12)], gold, judge) == 1.0
    overlapping = karat.Spans(1.0, corpus={"d": "aaa b"})
    assert score("recall", [part("d", 1, 3)], [{"doc": "d", "text": "aa"}], overlapping) == 1.0
    with pytest.raises(karat.InputError, match="not one gold quote"):
        score("recall", [part("d", 0, 2)], [{"doc": "d", "text": " "}], judge)


@pytest.mark.parametrize("corpus", [{1: "old", "1": "new"}, {"a": "x", "b": ["y"]}])
def test_a_corpus_in_which_documents_cannot_be_told(corpus):
    with pytest.raises(karat.InputError, match="document"):
        karat.Spans(corpus=corpus)


def test_a_short_name_that_two_documents_have_is_none(tmp_path):
    for name in ("a.txt", "a.md"):
        (tmp_path / name).write_text("one two")
    with pytest.raises(karat.InputError, match='no document "a"'):
        score("recall", [part("a.md", 0, 3)], [{"doc": "a", "text": "one"}], karat.Spans(corpus=tmp_path))


@pytest.mark.parametrize(
    ("judge", "retrieved", "gold", "why"),
    [
        ("contains", "xx a b", "a    b", "contains 100 %"),
        ("contains(chunk_in_gold)", "a b", "a b", "exact"),
        ("contains(chunk_in_gold)", "a  b", " a b", "exact"),
        ("spans", "xx a b", "a    b", "covers 100 % of the quote"),
        ("spans", " a  b", "a b ", "exact"),
    ],
)
def test_exact_is_exact(judge, retrieved, gold, why):
    assert karat.evaluate(retrieved=[[retrieved]], gold=[[gold]], metrics="recall", judge=judge).hits(1)[0].why == why


def test_alternatives_with_surrogates_are_saved(tmp_path):
    gold = [{"text": "\ud800 x", "group": 1}, {"text": "y", "group": 1}]
    run = karat.evaluate(sample(["\ud800 x"], gold), "recall", judge="exact")
    run.save(tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").mean == run.mean


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: score("recall", [{"id": "1"}], [{"doc": "a", "text": "x"}], karat.Spans(corpus={"a": "x y"})),
        lambda: score("recall", ["a"], ["a"], "fuzzy({[]})"),
        lambda: score("recall", ["a"], ["a"], "fuzzy(threshold=0.5, threshold=0.8)"),
        lambda: karat.Contains(strip=5),
        lambda: karat.Text(fold=[["x"]]),
        lambda: score("recall", [part("a", 10**400, 10**400 + 1)], [part("a", 0, 1)]),
        lambda: score("recall", [part("a", 0, 2**70)], [part("a", 0, 1)]),
        lambda: score("span_recall", [part("a", 0, 3)], [part("a", 0, 3)], karat.Spans(corpus=DOCS, tokenizer=print)),
        lambda: score("recall@5t", ["a b"], ["a b"], tokens=lambda text: float("inf")),
    ],
)
def test_mistakes_that_were_tracebacks(wrong):
    with pytest.raises(karat.KaratError):
        wrong()


def test_a_blank_range_of_gold_beside_a_chunk_without_a_place():
    assert score("recall", [{"text": "foo"}], [part("a", 1, 4)], karat.Spans(corpus={"a": "x   y"})) == 0.0
