"""Advice of karat.diagnose: one piece for each cause; every recall that it names is that of a real evaluation."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import karat
from karat.analysis.diagnose import trials
from karat.run.stored_items import StorageLimits
from support.limits import evaluate_within

QUOTE = "The museum is closed on Mondays and on public holidays. Tickets are sold at the door until five."
OTHERS = ["Parking is free in the yard behind the church.", "Dogs must be kept on a lead in the old garden."]
ROWS = [
    {"id": "a", "retrieved": [QUOTE.upper()], "gold": [QUOTE]},
    {"id": "b", "retrieved": [QUOTE.replace("five", "nine")], "gold": [QUOTE]},
    {"id": "c", "retrieved": [f"{OTHERS[0]} {QUOTE} {OTHERS[1]}"], "gold": [QUOTE]},
    {"id": "d", "retrieved": [QUOTE[:50] + OTHERS[0] * 2, OTHERS[1] * 2 + QUOTE[50:]], "gold": [QUOTE]},
    {"id": "e", "retrieved": [*OTHERS, QUOTE.upper()], "gold": [QUOTE]},
]


def advice(rows, k=2, judge="auto"):
    return karat.diagnose(karat.evaluate(rows, f"recall@{k}", judge=judge)).advice


def recall(rows, k, judge):
    return karat.evaluate(rows, f"recall@{k}", judge=judge).mean[f"recall@{k}"]


def claims(said):
    """The advised judge and the claimed recall of each sentence that has both."""
    pattern = r"The judge (.+?) counts such items: recall@\d+ is ([\d.]+) with it, ([\d.]+) now"
    return {judge: (float(new), float(now)) for judge, new, now in re.findall(pattern, "\n".join(said))}


@pytest.mark.parametrize("judge", ["exact", "text", "contains", "fuzzy(0.99)", "fuzzy(0.7)", "spans", "spans(0.9)"])
def test_an_advised_judge_gives_the_claimed_recall(judge):
    said = claims(advice(ROWS, judge=judge))
    assert judge not in said
    assert judge.partition("(")[0] not in said  # not the judge in use with its default settings, either
    for other, (new, now) in said.items():
        assert new == pytest.approx(recall(ROWS, 2, other), abs=0.0005)
        assert now == pytest.approx(recall(ROWS, 2, judge), abs=0.0005)
        assert new > now


def test_the_advised_judges():
    assert claims(advice(ROWS, judge="exact")) == {"text": (0.2, 0.0), "fuzzy": (0.2, 0.0), "spans": (0.2, 0.0)}
    assert claims(advice(ROWS, judge="fuzzy(0.99)")) == {
        "text": (0.2, 0.0),
        "fuzzy(threshold=0.97, scorer=ratio)": (0.2, 0.0),
        "spans": (0.2, 0.0),
    }
    spans = advice(ROWS, judge="spans")
    assert claims(spans) == {}
    assert "Spell the gold texts as in the documents: recall@2 is 0.400 then, 0.200 now (+0.200" in "\n".join(spans)


def test_a_text_judge_with_a_threshold_of_its_own_is_not_fuzzy():
    @karat.judge("as-long")
    def as_long(gold, item, *, threshold=0.999):
        return gold == item and threshold > 0

    said = advice(ROWS, judge="as-long(threshold=0.9)")
    assert "fuzzy" in claims(said)


PLACES = {"here": 0, "there": 1_000, "nowhere": 5_000}


def chunk(place, text):
    return {"doc": "d", "start": PLACES[place], "end": PLACES[place] + len(text), "text": text}


TWICE = [
    {"id": "q", "retrieved": [chunk("there", f"{QUOTE} Welcome.")], "gold": [chunk("here", QUOTE)]},
    {"id": "r", "retrieved": [chunk("here", QUOTE)], "gold": [chunk("here", QUOTE)]},
    {"id": "s", "retrieved": [chunk("nowhere", OTHERS[0])], "gold": [chunk("here", QUOTE)]},
]


def test_the_same_words_elsewhere():
    found = karat.diagnose(karat.evaluate(TWICE, "recall@2", judge="spans"))
    first, second = found.misses
    assert (first.cause, first.ranks) == ("same words elsewhere", (1,))
    assert first.text == "rank 1 has the same words, at another place of its document"
    assert second.cause == "right document, wrong chunk"
    (said,) = [said for said in found.advice if "their ranges" in said]
    assert said == (
        "1 missed gold item has the same words in the top 2, at another place than the range. Give these quotes "
        "without their ranges, or all places of a quote in one group: recall@2 is 0.667 without ranges, 0.333 now."
    )
    without = [{**row, "gold": [{"doc": "d", "text": QUOTE}]} for row in TWICE]
    assert recall(without, 2, "spans") == pytest.approx(2 / 3)
    grouped = [{**row, "gold": [{**chunk(at, QUOTE), "group": "g"} for at in ("here", "there")]} for row in TWICE]
    assert recall(grouped, 2, "spans") == pytest.approx(2 / 3)


def test_the_same_words_in_another_document_and_above_the_range_itself():
    other = {**chunk("here", QUOTE), "doc": "e"}
    rows = [{"retrieved": [other, chunk("there", OTHERS[0]), chunk("here", QUOTE)], "gold": [chunk("here", QUOTE)]}]
    (miss,) = karat.diagnose(karat.evaluate(rows, "recall@2", judge="spans")).misses
    assert (miss.cause, miss.text) == (
        "same words elsewhere",
        "rank 1 has the same words, at a place in another document",
    )
    assert miss.rank == 3
    rows = [{**rows[0], "retrieved": [chunk("there", OTHERS[0]), *OTHERS_AS_CHUNKS, other, chunk("here", QUOTE)]}]
    (miss,) = karat.diagnose(karat.evaluate(rows, "recall@2", judge="spans")).misses
    assert miss.cause == "below k"  # the same words are below k, too


OTHERS_AS_CHUNKS = [chunk("nowhere", text) for text in OTHERS]


def missed(retrieved, k=2, judge="spans"):
    """The only miss of a query whose gold is the quote here."""
    rows = [{"retrieved": retrieved, "gold": [chunk("here", QUOTE)]}]
    (miss,) = karat.diagnose(karat.evaluate(rows, f"recall@{k}", judge=judge)).misses
    return miss


@pytest.mark.parametrize("text", [QUOTE[:60] + OTHERS[0], f"{QUOTE[:40]} {OTHERS[0]} {QUOTE[45:]}", QUOTE[:70]])
def test_a_part_of_the_words_does_not_occur_again(text):
    assert missed([chunk("there", text)]).cause != "same words elsewhere"
    assert missed([chunk("there", text), chunk("nowhere", OTHERS[0]), chunk("here", QUOTE)]).cause == "below k"


def test_words_that_occur_again_cut_by_the_edges_of_chunks():
    first, second = chunk("there", f"{OTHERS[0]} {QUOTE[:50]}"), chunk("nowhere", f"{QUOTE[40:]} {OTHERS[1]}")
    miss = missed([first, second])
    assert (miss.cause, miss.ranks) == ("same words elsewhere", (1, 2))
    assert miss.text == "ranks 1 and 2 together have the same words, at another place of its document"
    inside = [{**first, "text": f"{first['text']} ~"}, second]
    assert missed(inside).cause == "right document, wrong chunk"  # no edge cuts the first piece
    less = [first, chunk("nowhere", QUOTE[50:80])]
    assert missed(less).text == "ranks 1 and 2 together have 82 % of its words, at another place of its document"
    assert missed(less, judge="spans(0.9)").cause == "right document, wrong chunk"


def test_advice_on_some_items_of_a_cause_says_so():
    far = [chunk("nowhere", text) for text in OTHERS]
    rows = [*TWICE[:2], {**TWICE[2], "retrieved": [*far, chunk("there", QUOTE)]}]
    found = karat.diagnose(karat.evaluate(rows, "recall@2", judge="spans"))
    assert found.causes == {"same words elsewhere": 2}
    (said,) = [said for said in found.advice if "their ranges" in said]
    assert said.startswith(
        '2 missed gold items have the cause "same words elsewhere"; of these, 1 has the same words in the top 2, at '
        "another place than the range. Give these quotes"
    )


def test_a_judge_is_advised_once():
    near, cut = f"Hm. {QUOTE[:-9]}", f"{OTHERS[0]} {OTHERS[1]} {QUOTE[:60]}"
    rows = [{"retrieved": ranking, "gold": [QUOTE]} for ranking in ([near], [cut], [*OTHERS, cut])]
    (said,) = [said for said in advice(rows, judge="contains") if "The judge spans" in said]
    assert said.startswith(
        '3 missed gold items have the causes "nearly equal" or "cut differently"; of these, 2 are in the top 2, '
        "nearly equal or cut differently. The judge spans counts such items: recall@2 is"
    )


def chunked(size=800, overlap=200):
    """The documents of the chunking example in chunks of a fixed size; each question retrieves by shared words."""
    folder = Path(__file__).parents[1] / "examples" / "chunking_sample"
    documents = {path.stem: path.read_bytes().decode() for path in sorted(folder.glob("*.md"))}
    chunks = [
        {"doc": doc, "start": at, "end": min(at + size, len(text)), "text": text[at : at + size]}
        for doc, text in documents.items()
        for at in range(0, len(text), size - overlap)
    ]
    words = [set(re.findall(r"\w{4,}", chunk["text"].lower())) for chunk in chunks]
    rows = []
    with (folder / "questions.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            asked = set(re.findall(r"\w{4,}", row["question"].lower()))
            best = sorted(range(len(chunks)), key=lambda i: -len(asked & words[i]))[:10]
            gold = [
                {"doc": row["corpus_id"], "start": one["start_index"], "end": one["end_index"], "text": one["content"]}
                for one in json.loads(row["references"])
            ]
            rows.append({"query": row["question"], "retrieved": [chunks[i] for i in best], "gold": gold})
    return rows


@pytest.mark.parametrize("judge", ["exact", "contains", "fuzzy", "spans", "spans(0.9)"])
@pytest.mark.parametrize("k", [1, 5])
def test_claims_about_real_documents_are_true(judge, k):
    rows = chunked(300, 100)
    said = advice(rows, k, judge)
    for other, (new, now) in claims(said).items():
        assert new == pytest.approx(recall(rows, k, other), abs=0.0005)
        assert now == pytest.approx(recall(rows, k, judge), abs=0.0005)
    for claimed in re.findall(r"is ([\d.]+) without ranges", "\n".join(said)):
        quotes = [{**row, "gold": [{n: g[n] for n in ("doc", "text")} for g in row["gold"]]} for row in rows]
        assert float(claimed) == pytest.approx(recall(quotes, k, judge), abs=0.0005)
    if judge in {"exact", "fuzzy"}:
        assert claims(said)


def test_below_k():
    ranking = ["a", "b", "g"]
    rows = [{"id": "q", "retrieved": ranking, "gold": ["g"]}, {"id": "r", "retrieved": ["g", "h"], "gold": ["g"]}]
    assert advice(rows, 1) == [
        (
            "1 missed gold item is below rank 1, at rank 3. k = 3 raises recall from 0.500 to 1.000 and lowers "
            "precision from 0.500 to 0.333."
        ),
        (
            "A perfect reranker of the top 3 raises recall@1 as much and precision@1 from 0.500 to 1.000: no reranker "
            "can do more."
        ),
    ]
    assert advice(rows, 2)[2] == (
        "k = 1 would be enough: recall@1 is the same as recall@2, 0.500, and precision rises from 0.250 to 0.500."
    )
    assert not any(said.startswith("k = ") for said in advice([{"retrieved": ["a", "g"], "gold": ["g"]}], 2))


def test_right_document_wrong_chunk():
    near = [{"doc": "d", "start": 0, "end": 100}, {"doc": "d", "start": 500, "end": 600}]
    rows = [
        {"id": "q", "retrieved": near, "gold": [{"doc": "d", "start": 610, "end": 690}]},
        {"id": "r", "retrieved": near, "gold": [{"doc": "d", "start": 5_000, "end": 5_100}]},
    ]
    said = advice(rows, 2, "spans")
    assert said == [
        (
            "2 missed gold items are in documents of which other chunks are in the top 2. Also return the neighbours "
            "of each chunk, or use larger chunks or more overlap: recall@2 is 0.500 if each chunk is extended by "
            "its own length on both sides, 0.000 now."
        )
    ]
    ids = [{"retrieved": [{"id": "c1", "doc": "d"}], "gold": [{"id": "c9", "doc": "d"}]}]
    found = karat.diagnose(karat.evaluate(ids, "recall@1"))
    assert found.advice == []
    assert found.not_measured == [
        (
            "1 missed gold item is in documents of which other chunks are in the top 1. Try larger chunks, more "
            "overlap, or the neighbours of each retrieved chunk."
        )
    ]


def test_other_spellings_and_near_copies_of_ids():
    rows = [{"id": "q", "retrieved": ["A"], "gold": ["a"]}, {"id": "r", "retrieved": ["b"], "gold": ["b"]}]
    assert advice(rows, 1, "ids") == [
        (
            "1 missed gold item is in the top 1 except for case or white space. Spell the ids the same on both sides: "
            "recall@1 is 1.000 then, 0.500 now."
        )
    ]
    copy = [{"retrieved": [{"id": "old", "text": QUOTE}], "gold": [{"id": "new", "text": QUOTE[:-1]}]}]
    assert advice(copy, 1, "ids") == [
        (
            "1 missed gold item has a nearly equal text in the top 1. Put the gold item and its near copy in one "
            "group: recall@1 is 1.000 then, 0.000 now."
        )
    ]


def test_every_cause_has_advice():
    rows = [
        {"id": "crowded out", "retrieved": ["a", "a", "g"], "gold": ["g"]},
        {"id": "below k", "retrieved": ["a", "b", "c", "g"], "gold": ["g"]},
        {"id": "case or white space", "retrieved": ["G"], "gold": ["g"]},
        {"id": "not retrieved", "retrieved": ["a"], "gold": ["b"]},
        {"id": "nowhere in the run", "retrieved": ["a"], "gold": ["none"]},
    ]
    found = karat.diagnose(karat.evaluate(rows, "recall@2", judge="ids"))
    assert {miss.query_id: miss.cause for miss in found.misses} == {row["id"]: row["id"] for row in rows}
    said = "\n".join(found.advice)
    for words in ("are copies", "reranker", "Spell the ids"):
        assert words in said  # the other causes have tests of their own
    assert "second retriever" in "\n".join(found.not_measured)
    one = "1 missed gold item was not retrieved for any query. Check that it is in the index under this id."
    assert one in found.not_measured
    rows.append({"id": "q", "retrieved": ["a"], "gold": ["neither"]})
    both = "2 missed gold items were not retrieved for any query. Check that they are in the index under these ids."
    assert both in karat.diagnose(karat.evaluate(rows, "recall@2", judge="ids")).not_measured


def test_no_recall_is_claimed_if_texts_were_cut_or_ranks_are_not_stored():
    rows = ROWS[:3]
    cut = karat.diagnose(evaluate_within(StorageLimits(text=50, shortest_text=50), rows, "recall@2", judge="exact"))
    assert not any("recall@2 is" in said for said in cut.advice)


def test_large_runs_are_tried_with_a_sample(monkeypatch):
    monkeypatch.setattr(trials, "MAX_QUERIES", 10)
    rows = [{"retrieved": ["Abc" if i % 2 else "abc"], "gold": ["abc"]} for i in range(40)]
    (said,) = advice(rows, 1, "exact")
    found = re.search(r"recall@1 is 1.000 with it, ([\d.]+) now \(.+\) \(in a random sample of 10 queries\)\.", said)
    assert found
    assert float(found[1]) * 10 == pytest.approx(round(float(found[1]) * 10))


def test_the_lowest_k_is_found_without_trying_every_k():
    ranking = [f"x{i}" for i in range(29)] + ["a"] + [f"y{i}" for i in range(10)] + ["b"]
    run = karat.evaluate(retrieved=[ranking] * 6, gold=[["a", "b"]] * 6, metrics="recall@1000000000000")
    assert any(sentence.startswith("k = 41 would be enough") for sentence in karat.diagnose(run).advice)
