"""The judge `spans`: against sets of characters, and however gold and chunks are located."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from support.ranges import DOCS, GOLD, cut, part, sample

ALL = "recall@1,2,3 recall precision@2,3 rr ap span_recall@1,2 span_precision@1,2 span_precision span_iou@2 span_f1@2"


def ranges(most=5):
    place = st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(1, 20))
    return st.lists(place.map(lambda p: {"doc": p[0], "start": p[1], "end": p[1] + p[2]}), max_size=most)


def characters(item):
    return {(item["doc"], i) for i in range(item["start"], item["end"])}


def slow(retrieved, gold, coverage, k):
    """Recall and the span metrics at k, from sets of characters."""
    read = set().union(*map(characters, retrieved[:k]))
    items = {(g["doc"], g["start"], g["end"]): characters(g) for g in gold}
    wanted = set().union(*items.values())
    found = sum(Fraction(len(read & chars), len(chars)) >= coverage for chars in items.values())
    both = len(read & wanted)
    p, r = (both / len(read) if read else 0.0), both / len(wanted)
    return {
        f"recall@{k}": found / len(items),
        f"span_recall@{k}": r,
        f"span_precision@{k}": p,
        f"span_iou@{k}": both / len(read | wanted),
        f"span_f1@{k}": 2 * p * r / (p + r) if p + r else 0.0,
    }


@settings(max_examples=300, deadline=None)
@given(retrieved=ranges(), gold=ranges(4).filter(bool), coverage=st.sampled_from([0.25, 0.5, 0.75, 1.0]))
def test_against_sets_of_characters(retrieved, gold, coverage):
    for k in (1, 2, 3, 5):
        wanted = slow(retrieved, gold, Fraction(coverage), k)
        run = karat.evaluate(retrieved=[retrieved], gold=[gold], metrics=list(wanted), judge=karat.Spans(coverage))
        assert run.mean == pytest.approx(wanted, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(retrieved=ranges(), gold=ranges(4).filter(bool), groups=st.lists(st.sampled_from([None, 1, 2]), min_size=4))
def test_lower_ranks_change_nothing_above_them(retrieved, gold, groups):
    gold = [item | ({} if group is None else {"group": group}) for item, group in zip(gold, groups, strict=False)]
    metrics = "recall@2 precision@2 ap@2 ndcg@2 span_recall@2 span_precision@2 span_iou@2 span_f1@2"
    whole, cut = (karat.evaluate(sample(r, gold), metrics, judge="spans").scores for r in (retrieved, retrieved[:2]))
    for name in whole:
        np.testing.assert_array_equal(whole[name], cut[name], err_msg=name)
    deeper = karat.evaluate(sample(retrieved, gold), "span_recall@1,2,3,4,5", judge="spans").mean.values()
    assert list(deeper) == sorted(deeper)


@settings(max_examples=100, deadline=None)
@given(retrieved=ranges(), gold=ranges(4).filter(bool), coverage=st.sampled_from([0.25, 0.5, 1.0]))
def test_scores_stay_within_bounds(retrieved, gold, coverage):
    metrics = "precision@1,2,3 ap ndcg ndcg@2 rr err rbp f1@3 recall_all@2 hit@1 judged@3 span_f1 span_iou"
    for judge in (karat.Spans(coverage), karat.Spans(coverage, graded=True)):
        run = karat.evaluate(retrieved=[retrieved], gold=[gold], metrics=metrics, judge=judge)
        for values in run.scores.values():
            assert np.isnan(values[0]) or 0 <= values[0] <= 1


def why(run):
    return [(hit.rank, hit.why) for hit in run.hits(1)]


def test_gold_is_found_at_the_rank_where_the_union_covers_enough():
    chunks = [part("a", 0, 30), part("b", 0, 9), part("a", 30, 40), part("a", 35, 60), part("a", 0, 30)]
    run = karat.evaluate(
        sample(chunks, [part("a", 20, 60)]), "recall@1,3,4 precision@1,4 precision@5", judge="spans(0.6)"
    )
    assert run.mean == {
        "recall@1": 0,
        "recall@3": 0,
        "recall@4": 1,
        "precision@1": 0,
        "precision@4": 0.5,
        "precision@5": 0.4,
    }
    assert why(run) == [(3, "covers 25 % of the quote, not enough alone"), (4, "covers 62 % of the quote")]
    assert run.gold(1) == [("a[20:60]", 1.0, 4)]
    run = karat.evaluate(sample(chunks, [part("a", 20, 60)]), "recall@3,4", judge="spans(0.9)")
    assert why(run)[-1] == (4, "covers 62 % of the quote, 100 % together with rank 1, 3")


def test_a_chunk_inside_the_gold_is_relevant_though_it_takes_several_to_find_it():
    chunks = [part("a", 0, 10), part("a", 10, 20), part("a", 20, 30), part("b", 0, 10)]
    run = karat.evaluate(sample(chunks, [part("a", 0, 50)]), "precision@3,4 recall@2,3 rr")
    assert run.mean == {"precision@3": 1.0, "precision@4": 0.75, "recall@2": 0.0, "recall@3": 1.0, "rr": 1.0}


def test_copies_and_overlaps_are_united():
    chunks = [part("a", 0, 10), part("a", 0, 10), part("a", 5, 15)]
    run = karat.evaluate(sample(chunks, [part("a", 0, 20)]), "span_recall@2,3 span_precision@2,3 precision@2 recall@3")
    assert run.mean == {
        "span_recall@2": 0.5, "span_recall@3": 0.75, "span_precision@2": 1.0, "span_precision@3": 1.0,
        "precision@2": 0.5, "recall@3": 1.0,
    }  # fmt: skip


def test_tokens_in_place_of_characters():
    metrics = "span_recall@1 span_precision@1 span_iou@1 span_f1@1"
    judge = karat.Spans(corpus=DOCS, tokenizer=str.split)
    run = karat.evaluate(sample([part("a", 0, 19)], [part("a", 4, 26)]), metrics, judge=judge)
    # The quick brown fox | quick brown fox jumps: three in common, five in all.
    assert run.mean == pytest.approx(
        {"span_recall@1": 0.75, "span_precision@1": 0.75, "span_iou@1": 0.6, "span_f1@1": 0.75}
    )
    pairs = karat.Spans(corpus=DOCS, tokenizer=lambda text: [(i, i + 1) for i in range(len(text))])
    assert karat.evaluate(sample(cut("a", 20, 10), GOLD), ALL, judge=pairs).mean == pytest.approx(
        karat.evaluate(sample(cut("a", 20, 10), GOLD), ALL, judge="spans").mean
    )


@pytest.mark.parametrize("tokenizer", [lambda text: [5, 7], lambda text: ["nowhere"], len])
def test_a_tokenizer_whose_tokens_are_not_in_the_text_is_refused(tokenizer):
    with pytest.raises((karat.BadArgument, TypeError)):
        karat.evaluate(
            sample(cut("a", 20, 10), GOLD), "span_recall", judge=karat.Spans(corpus=DOCS, tokenizer=tokenizer)
        )


def test_tokens_need_the_text():
    with pytest.raises(karat.InputError, match="its text is needed"):
        karat.evaluate(
            sample([part("a", 0, 9)], [part("a", 0, 9)]), "span_recall", judge=karat.Spans(tokenizer=str.split)
        )


@pytest.mark.parametrize("coverage", [0, -0.1, 1.1, "half", None])
def test_coverage_must_be_between_0_and_1(coverage):
    with pytest.raises(karat.BadArgument, match="coverage"):
        karat.Spans(coverage)


def test_span_metrics_need_the_judge():
    with pytest.raises(karat.BadArgument, match="span metrics") as error:
        karat.score("span_recall@5", ["a"], ["a"])
    assert 'judge="spans"' in str(error.value)


def test_saved_runs_have_the_same_scores(tmp_path):
    run = karat.evaluate(sample(cut("a", 20, 10), GOLD), ALL + " recall@9t", judge=karat.Spans(corpus=DOCS))
    run.save(tmp_path / "run.parquet")
    again = karat.load(tmp_path / "run.parquet")
    assert again.pooled == run.pooled
    assert again.gold(1) == run.gold(1)
    assert again.hits(1) == run.hits(1)
    assert again.take([0]).pooled == run.pooled


def score(metric, retrieved, gold, judge="spans", **how):
    return karat.score(metric, retrieved, gold, judge=judge, **how)


def test_sorting_by_score_keeps_the_fields_of_a_record_together():
    chunks = [part("b", 0, 50, score=1.0), part("a", 100, 150, score=1.0)]
    assert score("recall@1", chunks, [part("b", 0, 50)], order="score") == 1.0
    mixed = [part("a", 0, 9, score=1.0, text="x"), part("b", 0, 9, score=1.0)]
    assert score("recall@2", mixed, [part("b", 0, 9)], order="score") == 1.0
    texts = [{"doc": "b", "text": "a", "score": 1.0}, {"doc": "a", "text": "z z z z", "score": 1.0}]
    assert score("recall@4t", texts, ["a"], "ids", at="doc", order="score") == 1.0


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, np.int32, float])
def test_offsets_may_be_any_number_type(kind):
    chunk = {"doc": "a", "start": kind(0), "end": kind(10)}
    assert score("recall", [chunk], [{"doc": "a", "start": kind(20), "end": kind(60)}]) == 0.0
    assert score("recall", [{"doc": "a", "start": kind(250), "text": "x" * 20}], [part("a", 250, 270)]) == 1.0


def test_the_same_text_in_another_document_is_not_a_copy():
    chunks = [{"doc": "d", "text": "Opening hours"}, {"doc": "e", "text": "Opening hours"}]
    assert score("recall@2", chunks, [{"doc": "e", "text": "Opening hours"}]) == 1.0
    assert score("precision@2", [*chunks, chunks[1]], [{"doc": "e", "text": "Opening hours"}]) == 0.5
