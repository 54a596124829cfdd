"""karat.diagnose: every cause with its numbers, and advice only if numbers support it."""

from __future__ import annotations

import re

import pytest

import karat
from karat._internal.overlap import Passage, coverage, passages
from karat.analysis.diagnose.miss import CAUSES
from karat.judges import find_judge
from karat.run.stored_items import StorageLimits
from support.limits import evaluate_within

QUOTE = "The museum is closed on Mondays and on public holidays. Tickets are sold at the door until five."
OTHERS = ["Parking is free in the yard behind the church.", "Dogs must be kept on a lead in the old garden."]


def one(retrieved, gold, k=2, judge="auto", more=()):
    """The diagnosis of one query; `more` are other queries of the run."""
    rows = [{"id": "q", "query": "When?", "retrieved": retrieved, "gold": gold}, *more]
    run = karat.evaluate(rows, f"recall@{k}", judge=judge)
    return karat.diagnose(run, "q")


def cause(*args, **options):
    (miss,) = one(*args, **options).misses
    return miss.cause, miss.text, miss.ranks


@pytest.mark.parametrize("rank", [3, 10, 11, 600])
def test_below_k_names_the_lowest_cutoff_that_finds_it(rank):
    ranking = [f"d{i}" for i in range(1, 700)]
    text = f"at rank {rank}, below k = 2: recall@{rank} would find it"
    assert cause(ranking, [f"d{rank}"]) == ("below k", text, ())


def test_crowded_out_counts_the_copies_above():
    text = "at rank 5; without the 3 copies above it, at rank 2"
    assert cause(["a", "a", "a", "a", "g"], ["g"])[:2] == ("crowded out", text)
    assert cause(["a", "a", "b", "c", "g"], ["g"])[0] == "below k"  # without the one copy still at 4
    text = "at rank 3; without the 1 copy above it, at rank 2"
    assert cause(["a", "a", "g"], ["g"])[1] == text
    same_text = [{"id": i, "text": text} for i, text in (("a", "Same  text"), ("b", "same text"), ("g", "gold"))]
    assert cause(same_text, [{"id": "g"}], judge="ids")[0] == "crowded out"


def test_crowded_out_by_chunks_of_one_document():
    ranking = [{"id": f"c{i}", "doc": doc} for i, doc in enumerate(["a", "a", "g"])]
    run = karat.evaluate([{"id": "q", "retrieved": ranking, "gold": ["g"]}], "recall@2", at="doc")
    assert [miss.cause for miss in karat.diagnose(run).misses] == ["crowded out"]


@pytest.mark.parametrize(
    ("gold", "other", "form"),
    [
        ("Doc-1", "doc-1", "case"),
        ("doc 1", "doc  1", "white space"),
        ("doc-1", "DOC-1 ", "case and white space"),
        ("ｆile", "file", "Unicode form"),
    ],
)
@pytest.mark.parametrize("judge", ["ids", "exact"])
def test_case_or_white_space_only(gold, other, form, judge):
    expected = ("case or white space", f"rank 2 is equal except for {form}", (2,))
    assert cause(["x", other], [gold], judge=judge) == expected
    assert cause(["x", "y"], [gold], judge=judge)[0] != "case or white space"


@pytest.mark.parametrize("judge", ["contains", "spans"])
def test_a_quote_in_other_case_inside_a_chunk(judge):
    found = cause([OTHERS[0], f"Visit us. {QUOTE.upper()} Welcome."], [QUOTE], judge=judge)
    assert found == ("case or white space", "rank 2 contains it except for case", (2,))


def test_nearly_equal():
    near = QUOTE.replace("Mondays", "Tuesdays")  # 3 letters less and 4 more, of 96 and 97: 1 - 7/193 = 0.964
    expected = ("nearly equal", "rank 2 is nearly equal (similarity 0.96)", (2,))
    assert cause([OTHERS[0], near], [QUOTE], judge="exact") == expected
    assert cause([near, QUOTE[:-1]], [QUOTE], judge="exact")[2] == (2,)  # the most similar, not the first


def test_nearly_equal_names_the_threshold_of_the_judge():
    gold, other = "abcdefghij" * 4, "abcdefghij" * 3 + "abcdefg" + "XYZ"  # 37 of 40 letters in common: 0.925
    text = "rank 1 is nearly equal (similarity 0.93; the judge requires 0.95)"
    assert cause([other], [gold], judge="fuzzy(0.95)") == ("nearly equal", text, (1,))
    half = "abcdefghij" * 2 + "x" * 20  # 20 of 40 letters: 0.5, below 0.9 of the threshold 0.6
    assert cause([half], [gold], judge="fuzzy(0.6)")[0] != "nearly equal"
    more = "abcdefghij" * 2 + "abcd" + "x" * 16  # 24 of 40 letters: 0.6, and 0.9 of 0.65 is 0.585
    assert cause([more], [gold], judge="fuzzy(0.65)")[:2] == (
        "nearly equal",
        "rank 1 is nearly equal (similarity 0.60; the judge requires 0.65)",
    )


def test_near_copies_under_another_id():
    ranking = [{"id": "a", "text": OTHERS[0]}, {"id": "old", "text": QUOTE.replace("five", "nine")}]
    found = cause(ranking, [{"id": "new", "text": QUOTE}])
    assert found[0] == "nearly equal"
    assert found[1].startswith('rank 2, id "old", is nearly equal (similarity 0.9')
    same = cause([{"id": "old", "text": QUOTE}], [{"id": "new", "text": QUOTE}])
    assert same == ("nearly equal", 'rank 1, id "old", has the same text', (1,))


def test_gold_without_text_gets_the_text_retrieved_for_another_query():
    ranking = [{"id": "old", "text": QUOTE.replace("five", "nine")}]
    other = {"id": "r", "retrieved": [{"id": "new", "text": QUOTE}], "gold": [{"id": "new"}]}
    assert cause(ranking, [{"id": "new"}], more=[other])[0] == "nearly equal"
    assert cause(ranking, [{"id": "new"}])[0] == "not retrieved"


def test_cut_differently():
    chunk = f"{OTHERS[0]} {QUOTE} {OTHERS[1]}"
    found = cause([OTHERS[1], chunk], [QUOTE], judge="exact")
    assert found == ("cut differently", "rank 2 contains 100 % of it, in another chunk", (2,))
    half = QUOTE[:48] + " " + OTHERS[0] * 2  # 48 of 96 characters
    assert len(QUOTE) == 96
    assert cause([half], [QUOTE], judge="exact")[1] == "rank 1 contains 50 % of it, in another chunk"
    less = QUOTE[:46] + "~" + OTHERS[0] * 2
    assert cause([less], [QUOTE], judge="exact")[0] == "not retrieved"


def test_split_over_chunks():
    one_end, other_end = "~" + QUOTE[10:50] + OTHERS[0] * 2, OTHERS[1] * 2 + QUOTE[50:]  # all but 10 of 96: 90 %
    found = cause([OTHERS[0], one_end, OTHERS[1], other_end], [QUOTE], judge="exact")
    assert found == ("split over chunks", "ranks 2 and 4 together contain 90 % of it", (2, 4))


@pytest.mark.parametrize(
    "pieces",
    [
        (QUOTE[:40], QUOTE[50:]),  # 10 characters between them are nowhere
        (QUOTE[:40], QUOTE[40:56]),  # the second is too short
        (QUOTE[:40], QUOTE[20:40]),  # the second adds nothing
    ],
)
def test_pieces_that_are_short_or_not_consecutive_are_not_a_split_text(pieces):
    chunks = [f"{OTHERS[0]} ~{piece}~ {OTHERS[1]}" for piece in pieces]
    assert cause(chunks, [QUOTE], judge="exact")[0] != "split over chunks"


def test_parts_found_by_the_judge():
    chunks = [{"doc": "d", "start": 0, "end": 20}, {"doc": "d", "start": 20, "end": 50}]
    gold = [{"doc": "d", "start": 0, "end": 100}]
    found = cause(chunks, gold, judge="spans(coverage=0.8)")
    said = [f"rank {i} covers {n} % of the quote, not enough alone" for i, n in ((1, 20), (2, 30))]
    assert found == ("split over chunks", "; ".join([*said, "the judge requires 80 %"]), (1, 2))
    assert cause(chunks[:1], gold, judge="spans(coverage=0.8)")[0] == "cut differently"
    apart, short = {**chunks[1], "start": 40}, {**chunks[1], "end": 30}
    assert cause([chunks[0], apart], gold, judge="spans(coverage=0.8)")[0] == "cut differently"
    assert cause([chunks[0], short], gold, judge="spans(coverage=0.8)")[0] == "cut differently"


def test_right_document_wrong_chunk():
    ranking = [{"id": f"c{i}", "doc": doc} for i, doc in enumerate(["x", "d", "y", "d"])]
    gold = [{"id": "c9", "doc": "d"}]
    text = "ranks 2 and 4 are other chunks of its document"
    assert cause(ranking, gold) == ("right document, wrong chunk", text, (2, 4))
    assert cause(ranking[:3], gold)[1] == "rank 2 is another chunk of its document"
    chunks = [{"doc": "d", "start": start, "end": start + 100} for start in (0, 400, 900)]
    text = "ranks 1, 2 and 3 are other chunks of its document, the nearest 150 characters away"
    assert cause(chunks, [{"doc": "d", "start": 650, "end": 700}], judge="spans")[1] == text
    text = "rank 1 is another chunk of its document, next to it"
    assert cause(chunks[:1], [{"doc": "d", "start": 100, "end": 150}], judge="spans")[1] == text


def test_nowhere_in_the_run():
    other = {"id": "r", "retrieved": ["b"], "gold": ["b"]}
    found = cause(["a"], ["g"], more=[other])
    text = "its id was not retrieved for any query: check that it is in the index under this id"
    assert found == ("nowhere in the run", text, ())
    assert cause(["a"], ["b"], more=[other])[:2] == (
        "not retrieved",
        "the only retrieved item is another one; retrieved for another query",
    )
    assert cause(["a"], ["g"])[0] == "not retrieved"  # one query alone tells nothing


def test_nowhere_checks_the_stored_items_of_a_very_large_run():
    rows = [{"id": "q", "retrieved": ["a"], "gold": ["g"]}, {"id": "r", "retrieved": ["b"], "gold": ["b"]}]
    run = evaluate_within(StorageLimits(searched=1), rows, "recall@2")
    assert "is not in the top 20 of any query" in karat.diagnose(run, "q").misses[0].text


def test_not_retrieved():
    assert cause(["a", "b", "c"], ["g"]) == ("not retrieved", "not among the 3 retrieved items", ())
    assert cause([], ["g"])[1] == "nothing was retrieved"


def test_any_of_several_alternatives_explains_a_miss():
    gold = [{"id": "x", "group": "g"}, {"id": "D", "group": "g"}]
    assert cause(["a", "d"], gold, k=2)[:2] == ("case or white space", "rank 2 is equal except for case")
    assert one(["x"], gold).misses == []


def test_only_relevant_gold_is_missed():
    diagnosis = one(["a"], {"a": 1, "b": 0, "c": -1})
    assert diagnosis.misses == []
    assert diagnosis.gold_items == 1
    assert diagnosis.recall == 1


def run_of(*rankings, gold="g", k=2, metrics=None):
    rows = [{"id": f"q{i}", "retrieved": r, "gold": [gold]} for i, r in enumerate(rankings)]
    return karat.evaluate(rows, metrics or f"recall@{k}", judge="ids")


class Contains2:
    """A custom judge of whole texts whose name begins like that of a judge of quotes."""

    name = "contains2"

    def __call__(self, samples, convention):
        return find_judge("exact")(samples, convention)


def test_the_name_of_a_custom_judge_does_not_matter(tmp_path):
    rows = [
        {"id": "a", "retrieved": [f"Visit us. {QUOTE.upper()} Welcome.", "-" * 900], "gold": [QUOTE]},
        {"id": "b", "retrieved": [QUOTE.replace("five", "nine")], "gold": [QUOTE]},
    ]
    run, exact = (karat.evaluate(rows, "recall@2", judge=judge) for judge in (Contains2(), "exact"))
    assert run.provenance.judge == "contains2"
    assert karat.diagnose(run).to_dict() == karat.diagnose(exact).to_dict()
    contains = karat.evaluate(rows, "recall@2", judge="contains")
    assert karat.diagnose(run).causes != karat.diagnose(contains).causes
    run.save(tmp_path / "run.parquet")
    assert karat.diagnose(tmp_path / "run.parquet").to_dict() == karat.diagnose(exact).to_dict()


def test_the_whole_run():
    run = run_of(["g"], ["a", "b", "g"], ["a", "b", "c", "g"], ["a", "a", "g"], ["a"])
    found = karat.diagnose(run)
    assert (found.k, found.gold_items, found.recall) == (2, 5, 0.2)
    assert found.causes == {"below k": 2, "crowded out": 1, "not retrieved": 1}
    assert [(miss.query_id, miss.rank) for miss in found.misses] == [("q1", 3), ("q2", 4), ("q3", 3), ("q4", None)]
    assert found.query_id is None
    assert set(found.causes) <= set(CAUSES)
    told = found.to_dict()
    assert told["causes"] == found.causes
    assert told["misses"][0]["text"] == "at rank 3, below k = 2: recall@3 would find it"


def test_the_cutoff():
    run = run_of(["a", "b", "g"], metrics="recall@1,3 precision@50")
    assert karat.diagnose(run).k == 3
    assert karat.diagnose(run_of(["a"], metrics="precision@50 recall@1,5,10,50")).k == 5  # as in the report
    assert karat.diagnose(run_of(["a"], metrics="rr ndcg@20,30")).k == 20
    assert karat.diagnose(run, k=1).misses[0].rank == 3
    assert karat.diagnose(run_of(["a"], metrics="rr")).k == 10
    for k in (0, 1.5, True, "3"):
        with pytest.raises(karat.BadArgument, match="k is a whole number"):
            karat.diagnose(run, k=k)
    with pytest.raises(karat.UnknownName, match='no query "x"'):
        karat.diagnose(run, "x")


def advice(run, **options):
    return karat.diagnose(run, **options).advice


def test_advice_on_copies():
    run = run_of(["a", "a", "g"], ["g", "g"], ["a", "b"], k=2)
    assert "2 of 6 ranks in the top 2 are copies: without them recall@2 would be 0.667 instead of 0.333." in advice(run)
    assert not any("copies" in said for said in advice(run_of(["a", "a", "b", "c", "g"])))  # no recall to be had


def test_advice_on_a_score_threshold():
    rows = [
        {"id": f"q{i}", "retrieved": [("g", 0.9), ("a", 0.4), ("b", 0.3), ("c", 0.2)], "gold": ["g"]} for i in range(4)
    ]
    run = karat.evaluate(rows, "recall@4")
    said = advice(run)[-1]
    assert said == (
        "A score threshold of 0.9 would raise the micro-averaged precision of the top 4 from 0.250 to 1.000, "
        "and lose no gold. 4 queries are too few to test it on others."
    )
    found_low = [{**row, "retrieved": [("a", 0.9), ("b", 0.8), ("g", 0.1)]} for row in rows]
    assert not any("score" in said for said in advice(karat.evaluate(found_low, "recall@3")))  # it would cost the gold
    assert not any("score" in said for said in advice(run_of(["g", "a", "b"])))  # no scores


def test_a_threshold_keeps_all_of_one_score():
    rows = [{"id": "q", "retrieved": [("g", 0.5), ("h", 0.5), ("a", 0.25)], "gold": ["g"]}]
    said = advice(karat.evaluate(rows, "recall@3"))[-1]
    assert said.startswith(
        "A score threshold of 0.5 would raise the micro-averaged precision of the top 3 from 0.333 to 0.500"
    )


def test_advice_on_the_size_of_chunks():
    chunk = QUOTE + " " + "~" * 863  # 960 characters, a tenth of them gold
    rows = [{"retrieved": [chunk, "-" * 960], "gold": [QUOTE]}]
    said = advice(karat.evaluate(rows, "recall@2", judge="contains"))[-1]
    assert said == (
        "In the top 2, 10.0 % of the characters of relevant chunks are gold, and 5.0 % of all characters: "
        "relevant chunks are 10 times as long as their gold. Cut in half, the chunks would still hold 100 % of it "
        "whole, in half the text."
    )
    run = karat.evaluate([{"retrieved": [QUOTE + "~" * 96], "gold": [QUOTE]}], "recall@2", judge="contains")
    assert not any("characters" in said for said in advice(run))


def test_the_size_of_chunks_of_gold_without_texts():
    chunks = [{"doc": "d", "start": at, "end": at + 200, "text": "~" * 200} for at in (0, 200)]
    rows = [{"retrieved": chunks, "gold": [{"doc": "d", "start": 10, "end": 30}]}] * 3
    assert advice(karat.evaluate(rows, "recall@2", judge="spans"))[-1] == (
        "In the top 2, 10.0 % of the characters of relevant chunks are gold, and 5.0 % of all characters: "
        "relevant chunks are 10 times as long as their gold. Cut in half, the chunks would still hold 100 % of it "
        "whole, in half the text."
    )


def test_advice_on_a_second_run():
    a = run_of(["g"], ["a"], ["a"], ["a", "b", "g"])
    b = run_of(["a"], ["g"], ["a"], ["g"])
    assert advice(a, other=b)[-1] == (
        "The other run finds 2 of the 3 missed gold items. A hybrid by rrf(60) has a recall@2 of 0.750, this run "
        "0.250, the other 0.500, both top 2 together (up to 4 items) 0.750."
    )
    with pytest.raises(karat.BadArgument, match="gold differs"):
        karat.diagnose(a, other=run_of(["g"], ["a"], ["a"], ["g"], gold="h"))


def test_limits_are_reported(tmp_path):
    run = run_of(["a", "b"], ["b"])
    assert [note.partition(":")[0] for note in karat.diagnose(run).notes] == [
        "The retrieved items have no texts",
        "The items have no documents",
    ]
    assert karat.diagnose(run_of(["g"])).notes == []  # nothing was missed
    run = run_of([f"d{i}" for i in range(50)])
    assert "Only the top 20 of each ranking were checked." in karat.diagnose(run).notes
    run = run.replace(items=None)
    run.save(tmp_path / "old.parquet")
    found = karat.diagnose(tmp_path / "old.parquet")
    assert found.causes == {"not retrieved": 1}
    assert "has no items" in found.notes[0]


def test_queries_excluded_from_the_mean_are_excluded():
    run = karat.evaluate(
        retrieved={"q": ["g"]}, gold={"q": ["g"], "r": ["h"]}, metrics="recall@2", convention=dropping()
    )
    assert karat.diagnose(run).recall == run.mean["recall@2"] == 1


def dropping():
    return karat.Convention(name="mine", missing="drop")


def test_saved_runs_have_the_same_diagnosis(tmp_path):
    rows = [{"retrieved": [OTHERS[0], QUOTE.replace("five", "nine")], "gold": [QUOTE], "query": "?"}] * 3
    run = karat.evaluate(rows, "recall@2", judge="exact")
    run.save(tmp_path / "run.parquet")
    again = karat.diagnose(karat.load(tmp_path / "run.parquet"))
    assert again.to_dict() == karat.diagnose(run).to_dict()
    assert repr(again).startswith("run.parquet · 3 queries")
    assert repr(karat.diagnose(run)).startswith("samples · 3 queries")
    one, other = (repr(found).split("\nNext\n")[0].splitlines()[2:] for found in (again, karat.diagnose(run)))
    assert one == other


@pytest.mark.parametrize(
    ("text", "chunk", "marked"),
    [
        ("g" * 6_000, (5_000, 5_500), 0),  # stored up to 4,000
        ("g" * 6_000, (3_950, 4_450), 50),
        ("short", (5_000, 5_500), 0),
        ("short", (2, 502), 3),
        ("short", (5, 505), 0),
        (None, (0, 500), 0),
    ],
)
def test_a_gold_text_that_is_shorter_than_its_range(text, chunk, marked):
    start, end = chunk
    item = {"doc": "d", "start": start, "end": end, "text": "c" * (end - start)}
    gold = {"doc": "d", "start": 0, "end": 6_000} | ({} if text is None else {"text": text})
    run = karat.evaluate([{"id": "q1", "retrieved": [item], "gold": [gold]}], "recall@1", judge="spans")
    shown = str(karat.diagnose(run, "q1")).partition("compared with rank 1")[2].splitlines()[1:]
    left = "".join(line.partition("│")[0] for line in shown)
    assert sum(map(len, re.findall("«([^»]+)»", left))) == marked
    assert sum(line.partition("│")[2].count("c") for line in shown) == end - start


def test_passages():
    text = "0123456789abcdefghijKLMNOPQRSTuvwxyzABCDEFGHIJ"
    assert passages(text, f"xx{text}yy") == [Passage(0, 2, 46)]
    assert passages(text, "zz" + text[3:28] + "zz") == [Passage(3, 2, 25)]
    assert passages(text, text[:5]) == []
    assert passages("", "x") == []
    assert coverage(text, [text[22:], "none", text[:22]]) == (1.0, [2, 0])
    assert coverage(text, [text[22:], "none", text[:18]]) == (24 / 46, [0])  # a gap, and a short piece
    assert coverage(text, ["none"]) == (0.0, [])
    assert coverage("", [""]) == (0.0, [])
