"""The judge `spans`: against sets of characters, and however gold and chunks are located."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat

ALL = "recall@1,2,3 recall precision@2,3 rr ap span_recall@1,2 span_precision@1,2 span_precision span_iou@2 span_f1@2"
DOCS = {
    "a": "The quick brown fox jumps over the lazy dog, and the dog does not care much about it at all.",
    "b": "Pack my box with five dozen liquor jugs. How vexingly quick daft zebras jump today!",
}


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
@given(retrieved=ranges(), gold=ranges(4).filter(bool), coverage=st.sampled_from([0.25, 0.5, 1.0]))
def test_nothing_leaves_its_bounds(retrieved, gold, coverage):
    metrics = "precision@1,2,3 ap ndcg ndcg@2 rr err rbp f1@3 recall_all@2 hit@1 judged@3 span_f1 span_iou"
    for judge in (karat.Spans(coverage), karat.Spans(coverage, graded=True)):
        run = karat.evaluate(retrieved=[retrieved], gold=[gold], metrics=metrics, judge=judge)
        for values in run.scores.values():
            assert np.isnan(values[0]) or 0 <= values[0] <= 1


def sample(retrieved, gold):
    return [{"retrieved": retrieved, "gold": gold}]


def part(doc, start, end, **more):
    return {"doc": doc, "start": start, "end": end, **more}


def why(run):
    return [(hit.rank, hit.why) for hit in run.hits(1)]


def test_found_by_the_union_at_the_rank_that_completes_it():
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
    assert why(run)[-1] == (4, "covers 62 % of the quote, together with rank 1, 3 100 % of the quote")


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


def cut(doc, size, step):
    text = DOCS[doc]
    return [part(doc, i, min(i + size, len(text)), text=text[i : i + size]) for i in range(0, len(text), step)]


GOLD = [part("a", 4, 43, text=DOCS["a"][4:43]), part("b", 0, 40, text=DOCS["b"][0:40])]


@pytest.mark.parametrize("coverage", [0.3, 0.5, 1.0])
@pytest.mark.parametrize(("size", "step"), [(20, 20), (30, 15), (7, 7), (200, 200)])
def test_however_they_are_located(size, step, coverage):
    """Ranges, quotes looked up in documents, chunks looked up in documents: the same numbers."""
    chunks = [chunk for pair in zip(cut("a", size, step), cut("b", size, step), strict=False) for chunk in pair]
    wanted = karat.evaluate(sample(chunks, GOLD), ALL, judge=karat.Spans(coverage)).mean
    corpus = karat.Spans(coverage, corpus=DOCS)

    def without(items, *names):
        return [{k: v for k, v in item.items() if k not in names} for item in items]

    for retrieved, gold in (
        (chunks, without(GOLD, "start", "end")),
        (without(chunks, "text"), without(GOLD, "start", "end")),
        (without(chunks, "start", "end"), GOLD),
        (without(chunks, "start", "end"), without(GOLD, "text")),
        (chunks, without(GOLD, "start", "end", "doc")),
    ):
        assert karat.evaluate(sample(retrieved, gold), ALL, judge=corpus).mean == wanted


def test_texts_alone():
    """A quote wholly in a chunk, over two chunks, around a chunk, and nowhere."""
    text = DOCS["a"]
    cases = [
        ([text], text[4:43], {"recall@1": 1.0, "span_recall@1": 1.0}),
        ([text[:60], text[60:]], text[4:80], {"recall@1": 1.0, "span_recall@1": 56 / 76, "span_recall@2": 1.0}),
        ([text[30:60], text[:30]], text, {"recall@1": 0.0, "span_recall@1": 30 / 92, "span_recall@2": 60 / 92}),
        ([DOCS["b"], text[:5]], text, {"recall@2": 0.0, "span_recall@2": 0.0, "span_precision@2": 0.0}),
        (["  ".join(text.split())], text[4:43], {"recall@1": 1.0, "span_recall@1": 1.0}),
    ]
    for retrieved, gold, wanted in cases:
        for metric, value in wanted.items():
            assert karat.score(metric, retrieved, [gold], judge="spans") == pytest.approx(value, abs=0.02), (
                gold,
                metric,
            )


def test_overlapping_quotes_in_one_chunk_are_not_summed():
    text = DOCS["a"]
    run = karat.evaluate(
        sample([text], [text[0:60], text[30:90]]), "span_precision span_recall span_iou", judge="spans"
    )
    assert run.mean["span_precision"] == pytest.approx(90 / 92, abs=0.01)
    assert run.mean["span_iou"] <= 1


def test_a_chunk_with_a_heading_before_it_is_compared_by_its_text():
    chunk = {"doc": "a", "text": "From document A:\n" + DOCS["a"][:50]}
    run = karat.evaluate(sample([chunk], GOLD[:1]), "recall span_recall span_precision", judge=karat.Spans(corpus=DOCS))
    assert run.mean == {"recall": 1.0, "span_recall": 1.0, "span_precision": pytest.approx(39 / 67)}
    assert "1 chunk occurs nowhere in its document" in run.provenance.notes[0]


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
def test_a_tokenizer_whose_tokens_have_no_place(tokenizer):
    with pytest.raises((karat.BadArgument, TypeError)):
        karat.evaluate(
            sample(cut("a", 20, 10), GOLD), "span_recall", judge=karat.Spans(corpus=DOCS, tokenizer=tokenizer)
        )


def test_tokens_need_the_text():
    with pytest.raises(karat.InputError, match="its text is needed"):
        karat.evaluate(
            sample([part("a", 0, 9)], [part("a", 0, 9)]), "span_recall", judge=karat.Spans(tokenizer=str.split)
        )


def test_a_quote_that_occurs_several_times_counts_at_every_place_and_is_told():
    docs = {"d": "one two three four. " * 3 + "end"}
    gold = [{"doc": "d", "text": "two three"}]
    run = karat.evaluate(
        sample([part("d", 40, 63)], gold), "recall span_recall span_precision", judge=karat.Spans(corpus=docs)
    )
    assert run.mean == {"recall": 1.0, "span_recall": 1.0, "span_precision": pytest.approx(9 / 23)}
    assert "1 gold quote occurs several times" in run.provenance.notes[0]
    assert "two three" in run.provenance.notes[0]


def test_a_quote_that_occurs_nowhere_is_left_out_and_told():
    gold = [{"doc": "a", "text": "quick brown"}, {"doc": "a", "text": "slow green"}]
    run = karat.evaluate(sample(cut("a", 200, 200), gold), "recall precision@1", judge=karat.Spans(corpus=DOCS))
    assert run.mean == {"recall": 1.0, "precision@1": 1.0}
    assert "1 gold quote occurs nowhere" in run.provenance.notes[0]
    samples = sample(cut("a", 200, 200), gold[:1]) + sample(cut("a", 200, 200), gold[1:])
    run = karat.evaluate(samples, "recall", judge=karat.Spans(corpus=DOCS))
    assert run.undefined == {"recall": 1}
    with pytest.raises(karat.InputError, match="not one gold quote"):
        karat.evaluate(sample(cut("a", 200, 200), gold[1:]), "recall", judge=karat.Spans(corpus=DOCS))


def test_a_range_that_does_not_hold_its_text_is_told():
    gold = [part("a", 5, 12, text="quick b"), part("b", 0, 4, text="Pack")]
    run = karat.evaluate(sample(cut("a", 200, 200), gold), "recall", judge=karat.Spans(corpus=DOCS))
    assert "1 gold range does not hold the text" in run.provenance.notes[0]


@pytest.mark.parametrize(
    ("retrieved", "gold", "said"),
    [
        ([part("a", 5, 3)], [part("a", 0, 9)], ["retrieved ends before it starts"]),
        ([part("a", 0, 3)], [part("a", 9, 0)], ["gold ends before it starts"]),
        ([part("a", 0, 3)], [part("a", 9, 9)], ["gold is empty"]),
        ([part("a", -1, 3)], [part("a", 0, 9)], ["whole numbers from 0"]),
        ([part("a", 0, 2.5)], [part("a", 0, 9)], ["whole numbers from 0"]),
        ([{"doc": "a", "start": 0}], [part("a", 0, 9)], ['needs "start" and "end"']),
        ([part("a", 0, 999)], [part("a", 0, 9)], ['query "1", item 1', "outside of document", "92 characters"]),
        ([part("a", 0, 9)], [part("a", 90, 93)], ['query "1", gold item 1', "outside of document"]),
        ([part("a", 0, 9)], [{"doc": "xyz", "text": "x"}], ['no document "xyz"', "a, b"]),
        ([{"id": "x", "doc": "a"}], [part("a", 0, 9)], ["neither a range nor a text"]),
    ],
)
def test_ranges_that_cannot_be(retrieved, gold, said):
    with pytest.raises(karat.InputError) as error:
        karat.evaluate(sample(retrieved, gold), "recall", judge=karat.Spans(corpus=DOCS))
    for words in said:
        assert words in str(error.value)


@pytest.mark.parametrize("coverage", [0, -0.1, 1.1, "half", None])
def test_coverage_lies_between_0_and_1(coverage):
    with pytest.raises(karat.BadArgument, match="coverage"):
        karat.Spans(coverage)


def test_a_corpus_from_files(tmp_path):
    wanted = karat.evaluate(sample(cut("a", 20, 20), GOLD[:1]), ALL, judge="spans").mean
    gold = [{"doc": "a", "text": GOLD[0]["text"]}]
    folder = tmp_path / "docs"
    (folder / "more").mkdir(parents=True)
    (folder / "a.md").write_text(DOCS["a"])
    (folder / "more" / "b.txt").write_text(DOCS["b"])
    rows = [{"_id": name, "title": "", "text": text} for name, text in DOCS.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "corpus.json").write_text(json.dumps(DOCS))
    for corpus in (folder, str(tmp_path / "corpus.jsonl"), tmp_path / "corpus.json"):
        judge = karat.Spans(corpus=corpus)
        assert karat.evaluate(sample(cut("a", 20, 20), gold), ALL, judge=judge).mean == wanted
        by_name = f"spans(corpus={corpus})"
        assert karat.evaluate(sample(cut("a", 20, 20), gold), ALL, judge=by_name).mean == wanted
    named = [{"doc": "more/b.txt", "text": "five dozen"}, {"doc": "more/b", "text": "zebras"}]
    assert karat.evaluate(sample([part("a", 0, 5)], named), "recall", judge=karat.Spans(corpus=folder)).mean == {
        "recall": 0
    }


def test_line_endings_move_nothing(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\nthree")
    gold = [part("a", 10, 15, text="three")]
    assert (
        karat.evaluate(sample([part("a", 10, 15)], gold), "recall", judge=karat.Spans(corpus=tmp_path)).provenance.notes
        == ()
    )


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ("no/such/folder", "no file"),
        (5, "corpus"),
        ({"a": 5}, 'document "a" is int'),
        ({}, "no documents"),
    ],
)
def test_a_corpus_that_cannot_be_read(corpus, said):
    with pytest.raises(karat.KaratError, match=said):
        karat.Spans(corpus=corpus)


def test_a_corpus_of_binary_files(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF\xff\xfe\x00")
    with pytest.raises(karat.InputError, match="not a text in UTF-8"):
        karat.evaluate(
            sample([part("a", 0, 5)], [{"doc": "a", "text": "x"}]), "recall", judge=karat.Spans(corpus=tmp_path)
        )


def test_span_metrics_need_the_judge():
    with pytest.raises(karat.BadArgument, match="span metrics") as error:
        karat.score("span_recall@5", ["a"], ["a"])
    assert 'judge="spans"' in str(error.value)


def test_runs_keep_what_was_measured(tmp_path):
    run = karat.evaluate(sample(cut("a", 20, 10), GOLD), ALL + " recall@9t", judge=karat.Spans(corpus=DOCS))
    run.save(tmp_path / "run.parquet")
    again = karat.load(tmp_path / "run.parquet")
    assert again.pooled == run.pooled
    assert again.gold(1) == run.gold(1)
    assert again.hits(1) == run.hits(1)
    assert again.take([0]).pooled == run.pooled
