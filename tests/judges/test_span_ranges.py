"""The judge `spans`: places of gold and chunks, given as ranges, or found by quotes in documents and in chunks."""

from __future__ import annotations

import json

import pytest

import karat
from support.ranges import DOCS, GOLD, cut, part, sample


def remark(run, start):
    """The sentence of a run that starts like this."""
    return next((line for line in run.remarks() if line.startswith(start)), None)


ALL = "recall@1,2,3 recall precision@2,3 rr ap span_recall@1,2 span_precision@1,2 span_precision span_iou@2 span_f1@2"


@pytest.mark.parametrize("coverage", [0.3, 0.5, 1.0])
@pytest.mark.parametrize(("size", "step"), [(20, 20), (30, 15), (7, 7), (200, 200)])
def test_ranges_and_quotes_give_the_same_scores(size, step, coverage):
    """Given ranges, quotes found in documents, chunks found in documents."""
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


def test_quotes_are_found_in_texts_without_ranges():
    """A quote inside a chunk, across two chunks, around a chunk, and in none."""
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
    assert remark(run, "1 chunk does not occur in the document: compared by text alone (query 1:")


def test_every_place_of_a_quote_that_occurs_several_times_counts():
    docs = {"d": "one two three four. " * 3 + "end"}
    gold = [{"doc": "d", "text": "two three"}]
    run = karat.evaluate(
        sample([part("d", 40, 63)], gold), "recall span_recall span_precision", judge=karat.Spans(corpus=docs)
    )
    assert run.mean == {"recall": 1.0, "span_recall": 1.0, "span_precision": pytest.approx(9 / 23)}
    assert remark(run, "1 of 1 gold quote occurs several times: every place counts (query 1: 'two three').")


def test_a_quote_that_does_not_occur_is_left_out():
    gold = [{"doc": "a", "text": "quick brown"}, {"doc": "a", "text": "slow green"}]
    run = karat.evaluate(sample(cut("a", 200, 200), gold), "recall precision@1", judge=karat.Spans(corpus=DOCS))
    assert run.mean == {"recall": 1.0, "precision@1": 1.0}
    assert remark(run, "1 of 2 gold quotes does not occur in the documents: left out (query 1: 'slow green').")
    samples = sample(cut("a", 200, 200), gold[:1]) + sample(cut("a", 200, 200), gold[1:])
    run = karat.evaluate(samples, "recall", judge=karat.Spans(corpus=DOCS))
    assert run.undefined == {"recall": 1}
    with pytest.raises(karat.InputError, match="no gold quote occurs"):
        karat.evaluate(sample(cut("a", 200, 200), gold[1:]), "recall", judge=karat.Spans(corpus=DOCS))


def test_a_gold_range_with_another_text_is_reported():
    gold = [part("a", 5, 12, text="quick b"), part("b", 0, 4, text="Pack")]
    run = karat.evaluate(sample(cut("a", 200, 200), gold), "recall", judge=karat.Spans(corpus=DOCS))
    assert remark(run, "1 gold range does not contain the text given with it (query 1:")


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
def test_invalid_ranges_are_refused(retrieved, gold, said):
    with pytest.raises(karat.InputError) as error:
        karat.evaluate(sample(retrieved, gold), "recall", judge=karat.Spans(corpus=DOCS))
    for words in said:
        assert words in str(error.value)


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


@pytest.mark.parametrize("chunk", ["a", "a.md"])
@pytest.mark.parametrize("gold", ["a", "a.md", None])
def test_the_extension_of_a_file_in_a_corpus_is_optional(tmp_path, chunk, gold):
    (tmp_path / "a.md").write_text("one two three four")
    (tmp_path / "questions.csv").write_text("two three")  # a table beside the documents is none
    items = [{"text": "two three"} | ({} if gold is None else {"doc": gold})]
    run = karat.evaluate(sample([part(chunk, 0, 18)], items), "recall", judge=karat.Spans(corpus=tmp_path))
    assert (run.mean["recall"], run.remarks()[1:]) == (1.0, [])
    assert run.provenance.judge == f"spans(coverage=0.5, corpus={tmp_path.name})"


def test_gold_and_chunks_without_a_common_document_are_reported():
    run = karat.evaluate(sample([part("A", 0, 9)], [part("a", 0, 9)]), "recall", judge="spans")
    assert run.mean["recall"] == 0
    assert remark(run, "No chunk is from a document with gold. Gold: a; chunks: A.")


def test_a_chunk_that_occurs_several_times_is_reported():
    docs = {"d": "head one. SAME body text. tail. SAME body text. end"}
    gold = [part("d", 10, 25)]
    run = karat.evaluate(
        sample([{"doc": "d", "text": "SAME body text."}], gold), "recall", judge=karat.Spans(corpus=docs)
    )
    assert run.mean["recall"] == 1.0
    assert remark(run, "1 chunk occurs several times in the document: the place with most gold is used (query 1:")


def test_texts_of_different_documents_are_different():
    chunk = {"doc": "b", "start": 0, "end": 18, "text": "one two three four"}
    run = karat.evaluate(sample([chunk], [{"doc": "a", "text": "two three"}]), "recall", judge="spans")
    assert run.mean["recall"] == 0.0
    assert remark(run, "Compared by text, because gold has no ranges.")
    assert karat.score("recall", [chunk], [{"text": "two three"}], judge="spans") == 1.0


def test_line_endings_do_not_change_offsets(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\nthree")
    gold = [part("a", 10, 15, text="three")]
    run = karat.evaluate(sample([part("a", 10, 15)], gold), "recall", judge=karat.Spans(corpus=tmp_path))
    assert run.remarks()[1:] == []


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ("no/such/folder", "there is no corpus"),
        ("", "there is no corpus"),
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
    with pytest.raises(karat.InputError, match="not UTF-8 text"):
        karat.evaluate(
            sample([part("a", 0, 5)], [{"doc": "a", "text": "x"}]), "recall", judge=karat.Spans(corpus=tmp_path)
        )


def score(metric, retrieved, gold, judge="spans", **how):
    return karat.score(metric, retrieved, gold, judge=judge, **how)


def test_a_quote_is_found_at_every_place_with_any_white_space():
    judge = karat.Spans(corpus={"d": "a quick fox.   A quick\nfox."})
    gold = [{"doc": "d", "text": "quick fox"}]
    assert score("recall", [part("d", 15, 27)], gold, judge) == 1.0
    assert score("recall", [part("d", 0, 12)], gold, judge) == 1.0
    overlapping = karat.Spans(1.0, corpus={"d": "aaa b"})
    assert score("recall", [part("d", 1, 3)], [{"doc": "d", "text": "aa"}], overlapping) == 1.0
    with pytest.raises(karat.InputError, match="no gold quote occurs"):
        score("recall", [part("d", 0, 2)], [{"doc": "d", "text": " "}], judge)


@pytest.mark.parametrize("corpus", [{1: "old", "1": "new"}, {"a": "x", "b": ["y"]}])
def test_a_corpus_with_ambiguous_documents_is_refused(corpus):
    with pytest.raises(karat.InputError, match="document"):
        karat.Spans(corpus=corpus)


def test_a_name_without_extension_must_be_unambiguous(tmp_path):
    for name in ("a.txt", "a.md"):
        (tmp_path / name).write_text("one two")
    with pytest.raises(karat.InputError, match='no document "a"'):
        score("recall", [part("a.md", 0, 3)], [{"doc": "a", "text": "one"}], karat.Spans(corpus=tmp_path))


def test_a_blank_gold_range_matches_no_chunk_without_a_place():
    assert score("recall", [{"text": "foo"}], [part("a", 1, 4)], karat.Spans(corpus={"a": "x   y"})) == 0.0
