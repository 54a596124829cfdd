"""karat.lint: every kind of problem, and no problem in a sound test set."""

from __future__ import annotations

from math import sqrt

import polars as pl
import pytest

import karat
from karat.analysis.lint import documents as checks_of_texts
from karat.judges.corpus import Corpus
from karat.samples import read_test_set

CORPUS = {
    "hours": "The museum is closed on Mondays and on public holidays, and so is the cafe in the yard.",
    "hours-old": "The museum is closed on Mondays and on public holidays, and so is the shop in the yard.",
    "tickets": "Tickets are sold at the door until half an hour before we close.",
    "dogs": "Dogs are welcome in the garden, but not in the house.",
}


def problems(rows, **options):
    return {problem.kind: problem for problem in karat.lint(rows, **options).problems if problem.kind != "small"}


def asked(**gold):
    return [{"id": name, "query": f"{name}?", "gold": items} for name, items in gold.items()]


def test_a_sound_test_set_has_no_problems():
    found = karat.lint(asked(a=["tickets"], b=["dogs", "tickets"]), corpus=CORPUS)
    assert [problem.kind for problem in found.problems] == ["small"]
    assert found.sound
    assert (found.queries, found.gold_items) == (2, 3)


def test_ids_outside_the_corpus():
    found = problems(asked(a=["ticket"], b=["dogs"], c=["xyz", "xyz"]), corpus=CORPUS)
    lacking = found["not in the corpus"]
    assert lacking.serious
    assert lacking.count == 2
    assert lacking.text == "2 gold items are not in the corpus: no retriever can find them."
    assert lacking.examples == ['a: ticket: no id "ticket", the nearest is "tickets"', 'c: xyz: no id "xyz"']


@pytest.mark.parametrize(
    ("gold", "why"),
    [
        ({"text": "Dogs are  welcome"}, None),
        ({"text": "Cats are welcome"}, "its text is not in any document"),
        ({"doc": "dogs", "text": "welcome in the\ngarden"}, None),
        ({"doc": "dogs", "text": "sold at the door"}, 'its text is not in "dogs"'),
        ({"doc": "cats", "text": "welcome"}, 'no document "cats"'),
        ({"id": "dogs", "text": "Dogs are welcome"}, None),
        ({"id": "dogs", "text": "Dogs are banned"}, 'its text is not in "dogs"'),
        ({"doc": "dogs", "start": 0, "end": len(CORPUS["dogs"])}, None),
        ({"doc": "dogs", "start": 0, "end": 54}, 'it ends at character 54, but "dogs" has 53'),
        ({"id": "nobody", "grade": 0}, None),
    ],
)
def test_quotes_and_ranges_outside_the_corpus(gold, why):
    found = problems([{"id": "q", "gold": [gold, {**gold, "grade": 0}][:1]}, *asked(b=[])], corpus=CORPUS)
    if why is None:
        assert "not in the corpus" not in found
    else:
        (example,) = found["not in the corpus"].examples
        assert example.startswith("q: ")
        assert why in example


def test_a_corpus_may_be_a_file_or_a_folder(tmp_path):
    (tmp_path / "dogs.txt").write_text(CORPUS["dogs"])
    rows = asked(a=["dogs"], b=["cats"])
    assert problems(rows, corpus=tmp_path)["not in the corpus"].count == 1
    pl.DataFrame({"id": list(CORPUS), "text": list(CORPUS.values())}).write_ndjson(tmp_path / "corpus.jsonl")
    assert problems(rows, corpus=tmp_path / "corpus.jsonl")["not in the corpus"].count == 1


def test_repeated_queries():
    rows = [
        {"id": "a", "query": "How do I cancel?", "gold": ["x", "y"]},
        {"id": "b", "query": "how do I  CANCEL", "gold": ["y", "x"]},
        {"id": "c", "query": "Where?", "gold": ["x"]},
        {"id": "d", "query": "where", "gold": ["z"]},
        {"id": "e", "query": "", "gold": ["z"]},
        {"id": "f", "query": "", "gold": ["x"]},
    ]
    found = problems(rows)
    assert found["duplicate queries"].count == 1
    assert not found["duplicate queries"].serious
    assert found["duplicate queries"].examples == ['a, b: "How do I cancel?"']
    assert found["conflicting gold"].count == 1
    assert found["conflicting gold"].serious
    assert found["conflicting gold"].examples == ['c, d: "Where?"']


def test_different_grades_conflict():
    rows = [{"query": "Where?", "gold": {"x": 1}}, {"query": "where?", "gold": {"x": 2}}]
    assert set(problems(rows)) == {"conflicting gold"}


def test_repeated_gold_items():
    rows = asked(a=[{"id": "x", "grade": 1}, {"id": "x", "grade": 2}], b=[{"id": "y"}, {"id": "y"}, {"id": "z"}])
    found = problems(rows)
    assert found["conflicting gold"].examples == ["a: x, grades 1, 2"]
    assert found["conflicting gold"].serious
    assert found["repeated gold"].examples == ["b: y"]
    assert not found["repeated gold"].serious


def test_empty_gold():
    found = problems([*asked(a=["x"], b=[]), {"id": "c", "query": "c?", "gold": {"y": 0}}])
    assert found["empty gold"].count == 2
    assert not found["empty gold"].serious
    assert found["empty gold"].examples == ["b", "c: every grade is 0 or less"]
    assert "empty gold" not in problems(asked(a=["x"]))
    nothing = problems(asked(a=[], b=[]))
    assert list(nothing) == ["no gold"]
    assert nothing["no gold"].serious


def test_near_copies_in_the_corpus():
    found = problems(asked(a=["hours"], b=["tickets"]), corpus=CORPUS)
    copies = found["no alternatives"]
    assert not copies.serious
    # "cafe" and "shop" have no letter in common: 1 - 8 / 174 = 0.954
    assert copies.examples == ["a: hours and hours-old, similarity 0.95"]
    both = [{"id": "hours", "group": "h"}, {"id": "hours-old", "group": "h"}]
    assert "no alternatives" not in problems(asked(a=both), corpus=CORPUS)
    assert "no alternatives" not in problems(asked(a=["hours", "hours-old"]), corpus=CORPUS)
    same = problems(asked(a=["x"]), corpus={"x": "The same words.", "y": "The  same words."})
    assert same["no alternatives"].examples == ["a: x and y, equal"]


def test_a_quote_that_occurs_in_another_document():
    gold = [{"doc": "hours", "text": "closed on Mondays and on public holidays"}]
    assert problems(asked(a=gold), corpus=CORPUS)["no alternatives"].examples == [
        "a: closed on Mondays and on public holidays and hours-old, equal"
    ]
    assert "no alternatives" not in problems(asked(a=[{"doc": "hours", "text": "so is the cafe"}]), corpus=CORPUS)


def test_very_large_corpora_are_searched_for_equal_texts_only():
    from karat.analysis.lint.test_set import TestSet  # at the top, pytest would collect it as a class of tests

    def alternatives(rows, corpus):
        tests, documents = TestSet(read_test_set(rows)), checks_of_texts.Documents(Corpus(corpus))
        return checks_of_texts.check_alternatives(tests, documents, max_characters=10)

    assert alternatives(asked(a=["hours"]), CORPUS) == []
    (same,) = alternatives(asked(a=["x"]), {"x": "The same words.", "y": "The  same words."})
    assert (same.kind, same.count) == ("no alternatives", 1)


def test_near_copies_among_the_retrieved():
    chunks = [{"id": name, "text": text} for name, text in CORPUS.items()]
    rows = [{"id": "a", "retrieved": chunks, "gold": [{"id": "hours"}]}]
    assert problems(rows)["no alternatives"].examples == ["a: hours and hours-old, similarity 0.95"]
    texts = [{"id": "a", "retrieved": list(CORPUS.values()), "gold": [CORPUS["hours"]]}]
    assert problems(texts)["no alternatives"].count == 1
    assert "no alternatives" not in problems([{**rows[0], "gold": [{"id": "dogs"}]}])
    assert "no alternatives" not in problems([{**texts[0], "gold": [CORPUS["dogs"]]}])


def runs(*shares, size=100):
    """Runs of which these shares of the queries find their gold."""
    gold = {f"q{i}": ["g"] for i in range(size)}
    return [
        karat.evaluate(
            retrieved={q: ["g" if i < share * size else "x"] for i, q in enumerate(gold)},
            gold=gold,
            metrics="recall@1 precision@1",
        )
        for share in shares
    ]


def test_saturation():
    rows = asked(**{f"q{i}": ["g"] for i in range(100)})
    found = problems(rows, runs=runs(0.99, 1.0))
    assert found["saturated"].count == 2
    assert found["saturated"].text.startswith("Every run scores above 0.98 in every metric")
    assert found["saturated"].examples == ["recall@1: 0.990 at the lowest", "precision@1: 0.990 at the lowest"]
    assert "saturated" not in problems(rows, runs=runs(0.99, 0.98))
    assert "saturated" not in problems(rows)


def test_power_from_two_runs():
    rows = asked(**{f"q{i}": ["g"] for i in range(100)})
    found = karat.lint(rows, runs=runs(0.5, 0.75))
    spread = sqrt(100 / 99 * 0.25 * 0.75)  # a quarter of the differences is 1, the rest 0
    assert found.strength.spread == pytest.approx(spread)
    assert found.strength.of == "the standard deviation of the differences in recall@5 between the first two runs"
    assert found.strength.detectable == pytest.approx((1.959964 + 0.841621) * spread / 10, abs=1e-6)
    assert found.strength.needed == 3_717  # ((1.96 + 0.84) × 0.4352 / 0.02)², rounded up
    assert found.problems[-1].kind == "small"


def test_power_from_one_run_from_retrieved_items_and_without_data():
    rows = asked(**{f"q{i}": ["g"] for i in range(100)})
    assert karat.lint(rows, runs=runs(0.5)).strength.of == "the standard deviation of recall@5"
    assert karat.lint(rows, runs=runs(0.5)).strength.spread == pytest.approx(sqrt(25 / 99))
    samples = [{**row, "retrieved": ["g" if i % 2 else "x"]} for i, row in enumerate(rows)]
    assert karat.lint(samples).strength[1:3] == (pytest.approx(sqrt(25 / 99)), "the standard deviation of recall@5")
    nothing = karat.lint(rows).strength
    assert nothing[1:3] == (0.5, "the largest possible standard deviation of recall@5")
    assert nothing.needed == 4_906
    assert karat.lint(asked(a=["x"], b=[])).strength is None


def test_a_large_test_set_is_not_small():
    found = karat.lint(asked(**{f"q{i}": ["g"] for i in range(5_000)}))
    assert found.problems == []
    assert found.strength.detectable == pytest.approx(0.0198, abs=1e-4)
    assert (
        "5,000 queries can detect a difference of 0.020 in recall@5 (80 % power); smaller differences may be missed."
        in repr(found)
    )


def test_skipped_checks_are_reported():
    assert [note.partition(":")[0] for note in karat.lint([["x"]]).notes] == [
        "No corpus was given",
        "The queries have no texts",
        "There are no retrieved texts and no corpus",
        "No runs were given",
    ]
    assert karat.lint(asked(a=["g"]), corpus=CORPUS, runs=runs(0.5)).notes == []


@pytest.mark.parametrize(
    "given",
    [
        {"q": ["x"], "r": {"y": 1}},
        [["x"], ["y"]],
        [{"gold": ["x"]}, {"gold": ["y"]}],
        pl.DataFrame({"query_id": ["q", "r"], "doc_id": ["x", "y"], "grade": [1, 1]}),
        [{"retrieved": ["x"], "gold": ["x"]}, {"retrieved": [], "gold": ["y"]}],
        [karat.Sample(retrieved=["x"], gold=["x"]), karat.Sample(retrieved=[], gold=["y"])],
    ],
)
def test_gold_alone_and_samples_in_every_form(given):
    found = karat.lint(given)
    assert (found.queries, found.gold_items, found.sound) == (2, 2, True)


def test_separate_retrieved_and_gold():
    assert karat.lint(retrieved={"q": ["a"]}, gold={"q": ["a"], "r": []}).queries == 2


def test_bad_input():
    with pytest.raises(karat.InputError, match="empty"):
        karat.lint([])
    with pytest.raises(karat.InputError, match="retrieved"):
        karat.lint([{"retrieved": 5, "gold": ["x"]}])
    with pytest.raises(karat.BadArgument, match="runs is a list"):
        karat.lint([["x"]], runs="run.parquet")
    with pytest.raises(karat.InputError, match="no corpus"):
        karat.lint([["x"]], corpus="nowhere")


def test_gold_that_cannot_be_compared_with_retrieved_items():
    rows = [{"retrieved": [{"id": "a"}], "gold": [{"text": "Some text."}]}] * 2
    found = karat.lint(rows)
    assert found.sound
    assert found.strength.of == "the largest possible standard deviation of recall@5"


def test_the_worst_problems_come_first():
    rows = [*asked(a=["zzz"], b=[]), {"id": "c", "query": "a?", "gold": ["dogs"]}]
    found = karat.lint(rows, corpus=CORPUS)
    assert [problem.kind for problem in found.problems] == [
        "not in the corpus",
        "conflicting gold",
        "empty gold",
        "small",
    ]
    assert not found.sound
    assert found.to_dict()["problems"][0]["kind"] == "not in the corpus"
    assert found.to_dict()["strength"]["queries"] == 2
    assert "2 serious problems" in repr(found)


def test_the_size_estimate_uses_the_same_metric_with_and_without_runs():
    rows = [{"id": f"q{i}", "retrieved": ["x"] * (i % 7) + ["g"], "gold": ["g"]} for i in range(100)]
    other = karat.evaluate(rows, "ndcg@10 recall@1,3,10")
    with_run, without = karat.lint(rows, runs=[other]).strength, karat.lint(rows).strength
    assert with_run == without
    assert "in recall@5" in with_run.text()


@pytest.mark.parametrize("size", [2, 3, 4])
def test_few_queries_are_too_few(size):
    found = karat.lint(asked(**{f"q{i}": ["g"] for i in range(size)}))
    (small,) = found.problems
    assert small.kind == "small"
    text = f"The test set is too small: {size} queries cannot detect any difference in recall@5. Detecting 0.02 needs"
    assert small.text.startswith(text)
    assert found.strength.detectable != found.strength.detectable


def test_no_difference_above_1_is_detectable():
    gold = {f"q{i}": ["g"] for i in range(7)}
    ranked = [{q: ["g" if i % 2 == odd else "x"] for i, q in enumerate(gold)} for odd in (0, 1)]
    runs = [karat.evaluate(retrieved=own, gold=gold, metrics="recall@5") for own in ranked]
    found = karat.lint(asked(**gold), runs=runs)
    assert found.strength.spread > 1  # every difference is 1 or -1
    assert found.strength.detectable != found.strength.detectable
    assert "too small: 7 queries" in found.problems[-1].text


TEXT = "Closed on Mondays and on public holidays."
DOCUMENT = f"{TEXT} Open on all other days. In winter: Closed on Mondays  and on public holidays. Please ring."


def ranged(start, **more):
    return {"doc": "d", "start": start, "end": start + len(TEXT), "text": TEXT, **more}


def test_ranges_whose_words_occur_elsewhere():
    found = problems(asked(a=[ranged(0)]), corpus={"d": DOCUMENT})["same words elsewhere"]
    assert (found.count, found.serious) == (1, False)
    second = DOCUMENT.index("Closed", 5)
    assert found.examples == [f"a: {TEXT}, also at {second} to {second + len(TEXT) + 1}"]
    assert found.text.startswith("1 gold range has words that also occur elsewhere in the document")
    both = [ranged(0, group="g"), ranged(second, group="g")]
    assert "same words elsewhere" not in problems(asked(a=both), corpus={"d": DOCUMENT})
    assert "same words elsewhere" not in problems(asked(a=[{"doc": "d", "text": TEXT}]), corpus={"d": DOCUMENT})
    assert "same words elsewhere" not in problems(asked(a=[ranged(0)]), corpus={"d": TEXT})


def test_ranges_whose_words_occur_in_another_retrieved_chunk():
    other = {"doc": "d", "start": 500, "end": 560, "text": f"Note: {TEXT}"}
    own = {"doc": "d", "start": 0, "end": 50, "text": f"{TEXT} Open."}
    rows = [{"id": "a", "retrieved": [own, other], "gold": [ranged(0)]}]
    assert problems(rows)["same words elsewhere"].examples == [f"a: {TEXT}, also at 500 to 560"]
    assert "same words elsewhere" not in problems([{**rows[0], "retrieved": [own]}])
    elsewhere = [own, {**other, "doc": "e"}]
    assert "same words elsewhere" not in problems([{**rows[0], "retrieved": elsewhere}])


def test_a_chunk_that_contains_the_quote_is_not_a_near_copy():
    near = f"{TEXT} Or."
    assert "no alternatives" not in problems([{"id": "a", "retrieved": [near], "gold": [TEXT]}])
    assert "no alternatives" not in problems([{"id": "a", "retrieved": [TEXT[:-4]], "gold": [TEXT]}])
    chunk = {"doc": "d", "start": 3, "end": 45, "text": TEXT[3:] + " So!"}
    assert "no alternatives" not in problems([{"id": "a", "retrieved": [chunk], "gold": [ranged(0)]}])
    changed = TEXT.replace("Mondays", "Sundays")
    assert "no alternatives" in problems([{"id": "a", "retrieved": [changed], "gold": [TEXT]}])
    by_id = [{"id": "a", "retrieved": [{"id": "x", "text": near}, {"id": "g", "text": TEXT}], "gold": [{"id": "g"}]}]
    assert "no alternatives" in problems(by_id)  # a chunk with another id is another item


@pytest.mark.parametrize(
    ("text", "start", "end", "words"),
    [
        ("abcdefghij", 2, 5, "cde"),  # no spaces, as in Chinese
        ("ab cdefg hi", 1, 11, "cdefg hi"),
        ("ab cdefg hi", 0, 6, "ab"),
        ("ab cdefg hi", 3, 8, "cdefg"),
        ("ab cdefg hi", 4, 9, "defg "),  # no whole word
        ("ab cdefg hi", 3, 6, "cde"),
    ],
)
def test_whole_words(text, start, end, words):
    assert checks_of_texts._whole_words(text, start, end) == words


def test_gold_that_is_quoted_in_the_query():
    def quoted(query, gold=TEXT, **options):
        return problems([{"id": "a", "query": query, "gold": [gold]}], **options).get("quoted gold")

    found = quoted("Is the museum closed on mondays, and on public holidays?", {"text": TEXT})
    assert (found.count, found.serious) == (1, False)
    assert found.examples == ['a: "closed on mondays and on public holidays"']
    assert quoted("When is it closed?", {"text": TEXT}) is None
    cut = quoted(
        "Whether on Mondays and on public holidays or not", {"text": "Weather on Mondays and on public holidays"}
    )
    assert cut.examples == ['a: "on mondays and on public holidays"']
    assert quoted("closed on Mondays and on public holidays", {"text": DOCUMENT})  # the whole query is a quote
    assert quoted("Why closed on Mondays?", {"text": DOCUMENT}) is None
    assert quoted("closed on Mondays and on public holidays", "d", corpus={"d": DOCUMENT})
    assert quoted("closed on Mondays and on public holidays", {"text": TEXT, "grade": 0}) is None


def test_similar_queries_with_different_gold():
    def similar(one, other, gold=("x", "y")):
        rows = [{"id": i, "query": q, "gold": [g]} for i, q, g in zip("ab", (one, other), gold, strict=True)]
        return problems(rows).get("similar queries")

    one, other = "How do I cancel my yearly subscription?", "How do I cancel a yearly subscription?"
    found = similar(one, other)
    assert (found.count, found.serious) == (1, False)
    assert found.examples == [f'a, b: "{one}" and "{other}"']
    assert similar(one, other, ("x", "x")) is None
    assert similar(one, "How do I pause my yearly membership?") is None
    assert similar("What did we earn in the year 2019?", "What did we earn in the year 2020?") is None
    assert similar("What is the population of old France?", "What is the population of old Greece?") is None
    assert similar(one, one.lower()) is None  # that is a conflict


def test_fields_that_are_not_used():
    items = [{"id": "a", "txt": "A text.", "title": "A"}, {"id": "b", "text": "Another."}]
    rows = [
        {"id": "q", "qurey": "Who?", "retrieved": items, "gold": ["a"]},
        {"id": "r", "retrieved": [], "gold": ["b"]},
    ]
    found = problems(rows)
    assert found["misspelt fields"].examples == [
        '"qurey" in 1 sample: did you mean "query"?',
        '"txt" in 1 retrieved record: did you mean "text"?',
    ]
    assert found["unused fields"].examples == ['"title" in 1 retrieved record']
    assert not found["unused fields"].serious
    run = karat.evaluate(rows, "recall@1")
    assert not any("title" in remark for remark in run.remarks())
    assert any('"txt"' in remark for remark in run.remarks())


def test_a_misspelt_column_of_results():
    rows = [{"id": i, "retreived": ["a"], "gold": ["a"]} for i in "ab"]
    assert problems(rows)["misspelt fields"].examples == ['"retreived" in the samples: did you mean "retrieved"?']
    with pytest.raises(karat.InputError, match='rename "retreived" to "retrieved"'):
        karat.lint([rows[0], {"id": "c", "retrieved": ["a"], "gold": ["a"]}])


def test_a_quote_that_an_edge_of_a_chunk_cuts_is_not_a_near_copy():
    rows = [{"id": "a", "retrieved": [f"{TEXT[4:]} Hm."], "gold": [TEXT]}]
    assert "no alternatives" not in problems(rows)
    rows = [{"id": "a", "retrieved": [f"Hm. {TEXT[:-4]}"], "gold": [TEXT]}]
    assert "no alternatives" not in problems(rows)
    changed = TEXT.replace("Mondays", "Sundays")
    chunk = {"id": "c1", "doc": "d", "start": 4, "end": 4 + len(changed), "text": changed}
    gold = {**ranged(0), "id": "g"}
    assert "no alternatives" not in problems([{"id": "a", "retrieved": [chunk], "gold": [gold]}])
    assert "no alternatives" in problems([{"id": "a", "retrieved": [{**chunk, "doc": "e"}], "gold": [gold]}])


def test_without_a_corpus_only_retrieved_texts_are_searched_for_the_same_words():
    other = {"doc": "d", "start": 500, "end": 500 + len(TEXT), "text": TEXT}
    rows = [{"id": "a", "retrieved": [other], "gold": [ranged(0)]}]
    searched = "Without a corpus, only the retrieved texts were searched."
    assert problems(rows)["same words elsewhere"].text.endswith(searched)
    assert searched not in problems(rows, corpus={"d": DOCUMENT})["same words elsewhere"].text
