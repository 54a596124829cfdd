"""What a run keeps of its items: the same in memory, in a file and in a part of the run; and no more than it says."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat._internal.arrays import starts
from karat.conventions import STANDARD
from karat.run.stored_items import GoldText, Retrieved, StorageLimits, cut_texts, stored_ranks
from karat.run.top_items import top_items
from karat.samples.rankings.score_order import order
from karat.samples.rankings.table import Table
from karat.scale.memory import MemoryLimits
from support.limits import evaluate_within

RECORDS = [
    {
        "id": "q",
        "retrieved": [
            {"id": "a", "text": "A text", "doc": "d1", "score": 0.2},
            {"id": 2, "text": "Another", "score": 0.5},
        ],
        "gold": [
            {"id": "b", "group": "g", "text": "Bee", "doc": "d2"},
            {"id": 2, "group": "g"},
            {"id": "c", "grade": 3},
        ],
    },
    {"id": "r", "retrieved": [], "gold": [{"id": "a"}]},
]


def back(run, tmp_path):
    run.save(tmp_path / "run.parquet")
    return karat.load(tmp_path / "run.parquet")


def test_records_keep_every_field(tmp_path):
    run = karat.evaluate(RECORDS, "recall@5")
    items = run.items("q")
    assert items.retrieved == [Retrieved(1, "a", "A text", "d1", 0.2), Retrieved(2, "2", "Another", None, 0.5)]
    by_score = karat.evaluate(RECORDS, "recall@5", order="score").items("q").retrieved
    assert by_score == [Retrieved(1, "2", "Another", None, 0.5), Retrieved(2, "a", "A text", "d1", 0.2)]
    assert [gold[:5] for gold in items.gold] == [
        ("b | 2", "Bee", "d2", 1.0, "b"),
        ("b | 2", None, None, 1.0, "2"),
        ("c", None, None, 3.0, "c"),
    ]
    assert [(gold.item, gold.seen) for gold in items.gold] == [(0, False), (0, True), (1, False)]
    assert run.items("r").retrieved == []
    assert run.items("r").gold == [GoldText("a", None, None, 1.0, "a", 0, True)]
    assert [back(run, tmp_path).items(q) for q in run.ids] == [run.items(q) for q in run.ids]


FEW_SCORES = st.sampled_from([-inf, -1e300, 0.0, 1.0, 1.0 + 1e-9, 2.0, 1e300, inf])


@settings(max_examples=200)
@given(
    st.lists(
        st.lists(FEW_SCORES, max_size=6) | st.lists(st.floats(allow_nan=False), max_size=12), min_size=1, max_size=5
    ),
    st.integers(1, 7),
    st.sampled_from(["id_descending", "id_ascending", "given"]),
    st.sampled_from(["single", "double"]),
)
def test_the_top_items_of_a_table_are_the_first_of_each_sorted_ranking(rankings, ranks, ties, scores):
    """Many rankings are looked at together; ties, infinities and short rankings among them."""
    c = replace(STANDARD, name="own", ties=ties, scores=scores)
    flat = [score for own in rankings for score in own]
    ids = [f"d{i * 7 % 11}-{i}" for i in range(len(flat))]
    start = starts(np.array([len(own) for own in rankings]))
    table = Table(pl.Series(ids, dtype=pl.String), start, pl.Series(flat, dtype=pl.Float64))
    found = top_items(table, ["id"], c, ranks)
    for query, (begin, end) in enumerate(pairwise(start.tolist())):
        best = order(flat[begin:end], ids[begin:end], c)[:ranks]
        assert [column[query] for column in found] == [[ids[begin + i] for i in best], [flat[begin + i] for i in best]]


@pytest.mark.parametrize("judge", ["ids", "exact", "text", "contains", "fuzzy"])
def test_gold_belongs_to_its_own_item_whatever_it_is_called(judge, tmp_path):
    """Labels of alternatives are joined by " | ", which a label may contain; and an item may be in two groups."""
    names = [("a | b", None), ("b", None), ("a", "g"), ("b", "g"), ("b", "h"), ("c", "h"), ("b", None)]
    gold = [{"id": name, "text": name} | ({"group": group} if group else {}) for name, group in names]
    one, other = [{"id": "x", "text": "x"}], [{"id": "c", "text": "c"}]
    rows = [{"id": "p", "retrieved": one, "gold": one}, {"id": "q", "retrieved": other, "gold": gold}]
    run = karat.evaluate(rows, "recall@5", judge=judge)
    assert [item.gold for item in run.gold("q")] == ["a | b", "b", "a | b", "b | c"]
    assert [item.item for item in run.items("q").gold] == [0, 1, 2, 2, 3, 3, 1]
    merged = karat.merge([run.take([1]), run.take([0])])
    for same in (run.take([1]), merged, back(run, tmp_path)):
        assert same.items("q") == run.items("q")


def test_a_file_read_in_batches_keeps_the_item_of_its_gold(tmp_path):
    gold = [{"id": "a | b"}, {"id": "a", "group": "g"}, {"id": "b", "group": "g"}]
    rows = [{"id": f"q{i}", "retrieved": [{"id": "b"}], "gold": gold if i % 2 else gold[:1]} for i in range(9)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = karat.evaluate(file, "recall@5", memory=MemoryLimits(total=4_000, fewest_rows=2, item_bytes=1))
    assert [(item.label, item.item) for item in run.items("q1").gold] == [("a | b", 0), ("a | b", 1), ("a | b", 1)]
    assert [(item.label, item.item) for item in run.items("q2").gold] == [("a | b", 0)]


def test_gold_of_a_judge_that_makes_other_items():
    class Swapped:
        """Returns the gold items in reverse order, and one more."""

        name = "swapped"

        def __call__(self, samples, c):
            hits = karat.judges.Exact()(samples, c)
            gold = hits.gold_items._replace(
                label=[*hits.gold_items.label[::-1], "new"],
                start=np.array([0, 3]),
                grade=np.ones(len(hits.gold_items.label) + 1),
            )
            nothing = np.zeros(0, np.int64)
            return karat.Hits(nothing, nothing, nothing, depth=hits.depth, gold_items=gold)

    run = karat.evaluate(retrieved=[["c"]], gold=[["a", "b"]], metrics="rr", judge=Swapped())
    assert [(gold.label, gold.item) for gold in run.items(1).gold] == [("a", 1), ("b", 0)]


@pytest.mark.parametrize(
    ("judge", "field"),
    [("ids", "id"), ("exact", "text"), ("text", "text"), ("fuzzy", "text"), ("contains", "text"), ("spans", "text")],
)
def test_bare_strings_are_what_the_judge_took_them_for(judge, field, tmp_path):
    run = karat.evaluate(retrieved=[["one", "two"]], gold=[["two", "six"]], metrics="rr", judge=judge)
    for items in (run.items(1), back(run, tmp_path).items(1)):
        assert [getattr(item, field) for item in items.retrieved] == ["one", "two"]
        assert [getattr(item, field) for item in items.gold] == ["two", "six"]
        other = "text" if field == "id" else "id"
        assert all(getattr(item, other) is None for item in (*items.retrieved, *items.gold))


def test_a_judge_of_ones_own():
    class First:
        name = "first"

        def __call__(self, samples, c):
            return karat.judges.Exact()(samples, c)

    run = karat.evaluate(retrieved=[["a b", "c d"]], gold=[["c d"]], metrics="rr", judge=First())
    assert [item.text for item in run.items(1).retrieved] == ["a b", "c d"]


def test_dicts_of_scores_stand_best_first_and_tied_as_the_convention_says(tmp_path):
    scores = {"a": 1.0, "b": 3.0, "c": 1.0, "d": 2.0}
    run = karat.evaluate(retrieved={"q": scores}, gold={"q": {"a": 1}}, metrics="rr")
    assert [(item.id, item.score) for item in run.items("q").retrieved] == [("b", 3), ("d", 2), ("c", 1), ("a", 1)]
    assert back(run, tmp_path).items("q") == run.items("q")


@pytest.mark.parametrize("ties", ["id_descending", "id_ascending", "given"])
@given(scores=st.lists(st.sampled_from([0.0, -0.0, 1e300, inf, -inf]) | st.floats(0, 1), min_size=1, max_size=40))
def test_the_best_of_a_dict_are_those_of_all_of_it_sorted(ties, scores):
    """A ranking of up to 20 items is stored as a whole; of a longer one the best 20, with and without ties."""
    scored = {f"d{place}": score for place, score in enumerate(scores)}
    run = karat.evaluate(retrieved={"q": scored}, gold={"q": ["d0"]}, metrics="rr", convention=f"standard(ties={ties})")
    names = sorted(scored, reverse=ties == "id_descending") if ties != "given" else list(scored)
    with np.errstate(over="ignore"):
        wanted = sorted(names, key=lambda name: np.float32(scored[name]), reverse=True)[:20]
    assert [(one.id, one.score) for one in run.items("q").retrieved] == [(name, scored[name]) for name in wanted]


@pytest.mark.parametrize("layout", ["lists", "maps", "table"])
def test_the_best_places_are_kept_where_the_judge_ranked_them(layout):
    scores = {f"d{i:03}": float(-(i // 3)) for i in range(300)}  # three of each score
    given = {"lists": {"q": list(scores.items())}, "maps": {"q": scores}}.get(layout)
    if given is None:
        given = pl.DataFrame({"query_id": "q", "doc_id": list(scores), "score": list(scores.values())})
    gold = {"q": dict.fromkeys(list(scores)[:30], 1)}
    run = karat.evaluate(retrieved=given, gold=gold, metrics="recall@10")
    kept = run.items("q").retrieved
    assert len(kept) == 20
    ranks = {hit.gold: hit.rank for hit in run.hits("q")}
    assert [item.id for item in kept] == sorted(ranks, key=ranks.get)[:20]


@pytest.mark.parametrize(("metrics", "places"), [("rr", 20), ("recall@5", 20), ("recall@30", 60), ("ndcg@1000", 100)])
def test_twice_the_largest_cutoff_is_kept_within_bounds(metrics, places):
    run = karat.evaluate(retrieved=[[f"d{i}" for i in range(500)]], gold=[["d3"]], metrics=metrics)
    assert len(run.items(1).retrieved) == places
    assert run.stored_items.extent.places == places


def test_many_queries_store_fewer_ranks():
    rankings = [[f"d{i}" for i in range(99)]] * 3
    run = evaluate_within(StorageLimits(items=90), retrieved=rankings, gold=[["d3"]] * 3, metrics="recall@50")
    assert run.stored_items.extent.places == 30
    assert stored_ranks(run.metrics, 3, StorageLimits(items=3)) == 10


def test_long_texts_are_cut_and_their_lengths_are_stored(tmp_path):
    run = karat.evaluate(retrieved=[["x" * 5_000, "y" * 4_000]], gold=[["z" * 4_321]], metrics="rr", judge="exact")
    first, second = run.items(1).retrieved
    assert (first.text, first.length) == ("x" * 4_000, 5_000)
    assert (second.text, second.length) == ("y" * 4_000, None)
    (gold,) = run.items(1).gold
    assert (gold.text, gold.length) == ("z" * 4_000, 4_321)
    assert back(run, tmp_path).items(1) == run.items(1)


def test_very_many_texts_are_cut_shorter():
    limits = StorageLimits(characters=2_500)
    run = evaluate_within(limits, retrieved=[["x" * 3_000, "y" * 3_000]], gold=[["z"]], judge="exact")
    assert [(item.text[-1], len(item.text), item.length) for item in run.items(1).retrieved] == [
        ("x", 1_000, 3_000), ("y", 1_000, 3_000),
    ]  # fmt: skip
    same = evaluate_within(limits, retrieved=[["x" * 2_000] * 9], gold=[["z"]], judge="exact")
    assert len(same.items(1).retrieved[0].text) == 2_000  # equal texts are stored once, and counted once


def test_texts_that_were_cut_are_cut_again_where_parts_are_merged(tmp_path):
    sides: list[dict[str, list[Any]]] = [
        {"text": ["a" * 600, "b", None], "length": [900, None, None]}, {"text": ["a" * 600], "length": [700]},
    ]  # fmt: skip
    cut_texts(sides, StorageLimits(text=800, characters=900))
    assert [side["length"] for side in sides] == [[900, None, None], [700]]
    assert [[text and len(text) for text in side["text"]] for side in sides] == [[400, 1, None], [400]]
    again: dict[str, list[Any]] = {"text": ["c" * 500, "d" * 4_500, "e" * 600], "length": [3_000, None, None]}
    cut_texts([again])
    assert again["length"] == [3_000, 4_500, None]
    assert list(map(len, again["text"])) == [500, 4_000, 600]
    rows = [{"id": f"q{i}", "retrieved": ["x" * (4_000 + i)], "gold": ["x"]} for i in range(4)]
    run = karat.evaluate(rows, "rr", judge="exact")
    merged = karat.merge([karat.evaluate(rows[:2], "rr", judge="exact"), karat.evaluate(rows[2:], "rr", judge="exact")])
    assert [merged.items(q).retrieved[0].length for q in run.ids] == [None, 4_001, 4_002, 4_003]
    assert [merged.items(q) for q in run.ids] == [run.items(q) for q in run.ids]


@pytest.mark.parametrize("mark", ["… [, more characters]", f"… [{'9' * 20} more characters]", "… [٣ more characters]"])
@pytest.mark.parametrize("size", [10, 4_000, 5_000])
def test_a_text_that_looks_as_if_it_was_cut(mark, size, tmp_path):
    text = "x" * (size - len(mark)) + mark
    run = karat.evaluate(retrieved=[[text]], gold=[[text, "y"]], metrics="recall@5", judge="contains")
    for same in (run, back(run, tmp_path)):
        (item,) = same.items(1).retrieved
        assert item.text == text[:4_000]
        assert item.length == (5_000 if size == 5_000 else None)
        assert str(karat.diagnose(same))


def test_files_in_which_cut_texts_end_in_a_mark_still_load(tmp_path):
    run = karat.evaluate(retrieved=[["x" * 5_000, "short"]], gold=[["y" * 9_000]], metrics="rr", judge="exact")
    run.save(tmp_path / "new.parquet")
    (about,) = (value for key, value in pl.read_parquet_metadata(tmp_path / "new.parquet").items() if key == "karat")
    frame = pl.read_parquet(tmp_path / "new.parquet")
    old = frame.with_columns(
        retrieved=pl.Series([[{"text": "x" * 4_000 + "… [1,000 more characters]"}, {"text": "short"}]]),
        gold_items=pl.Series([[{"text": "y" * 4_000 + "… [5,000 more characters]", "grade": 1.0, "item": 0}]]),
    )
    written = json.loads(about)
    del written["items"]["lengths"]
    written["items"]["label"] = None
    old.write_parquet(tmp_path / "old.parquet", metadata={"karat": json.dumps(written)})
    assert karat.load(tmp_path / "old.parquet").items(1) == run.items(1)


def test_removed_copies_are_not_kept():
    c = karat.Convention(name="mine", duplicates="remove")
    run = karat.evaluate(retrieved=[["a", "a", "b", "g"]], gold=[["g"]], metrics="rr", convention=c)
    assert [item.id for item in run.items(1).retrieved] == ["a", "b", "g"]
    assert run.gold(1)[0].rank == 3
    run = karat.evaluate(retrieved=[["A", "a", "b"]], gold=[["b"]], metrics="rr", convention=c, judge="text")
    assert [item.text for item in run.items(1).retrieved] == ["A", "b"]
    chunks = [{"doc": "d", "start": i, "end": 9} for i in (0, 0, 5)]
    rows = [{"retrieved": chunks, "gold": [{"doc": "d", "start": 0, "end": 9}]}]
    assert len(karat.evaluate(rows, "rr", judge="spans").items(1).retrieved) == 3
    last = karat.Convention(name="mine", duplicates="last")
    run = karat.evaluate(retrieved=[["a", "b", "a", "g"]], gold=[["g"]], metrics="rr", convention=last)
    assert [item.id for item in run.items(1).retrieved] == ["b", "a", "g"]


def test_gold_is_seen_wherever_it_was_retrieved():
    rankings = {"q": [f"d{i}" for i in range(50)], "r": ["x"]}
    gold = {"q": ["x", "nowhere"], "r": ["d40"]}
    run = karat.evaluate(retrieved=rankings, gold=gold, metrics="recall@5", judge="ids")
    assert [item.seen for q in gold for item in run.items(q).gold] == [True, False, True]
    run = evaluate_within(StorageLimits(searched=10), retrieved=rankings, gold=gold, metrics="recall@5", judge="ids")
    assert [item.seen for q in gold for item in run.items(q).gold] == [None, None, None]


def test_documents_are_seen_by_their_names():
    rows = [
        {"retrieved": [{"id": "c1", "doc": "d"}], "gold": ["e"]},
        {"retrieved": [{"id": "c2", "doc": "e"}], "gold": ["d"]},
    ]
    run = karat.evaluate(rows, "recall@1", at="doc")
    assert [item.seen for q in (1, 2) for item in run.items(q).gold] == [True, True]


def test_a_part_of_a_run_keeps_its_items(tmp_path):
    run = karat.evaluate([{**row, "topic": row["id"]} for row in RECORDS], "recall@5")
    for whole in (run, back(run, tmp_path)):
        part = whole.take([1, 0])
        assert [part.items(q) for q in part.ids] == [run.items(q) for q in part.ids]
        assert whole.by("topic")["q"].items("q") == run.items("q")
        assert pickle.loads(pickle.dumps(part)).items("q") == run.items("q")


def test_any_parquet_reader_finds_them(tmp_path):
    karat.evaluate(RECORDS, "recall@5").save(tmp_path / "run.parquet")
    frame = pl.read_parquet(tmp_path / "run.parquet")
    second = frame["retrieved"].to_list()[0][1]
    assert second == {"id": "2", "text": "Another", "doc": None, "score": 0.5}
    assert frame["gold_items"].to_list()[0][0]["text"] == "Bee"


def test_gold_whose_labels_are_stored_is_not_written_twice(tmp_path):
    run = evaluate_within(StorageLimits(searched=0), retrieved=[["a"], []], gold=[{"a": 2, "b": 0}, {}])
    assert [back(run, tmp_path).items(q) for q in run.ids] == [run.items(q) for q in run.ids]
    assert "gold_items" not in pl.read_parquet(tmp_path / "run.parquet").columns


def test_files_without_items_have_none(tmp_path):
    run = karat.evaluate(RECORDS, "recall@5")
    run = run.replace(items=None)
    old = back(run, tmp_path)
    assert "retrieved" not in pl.read_parquet(tmp_path / "run.parquet").columns
    assert old.items("q") is None
    assert old.take([0]).items("q") is None
    with pytest.raises(karat.UnknownName, match='no query "x"'):
        old.items("x")


def test_files_that_lack_some_of_it_are_damaged(tmp_path):
    path = tmp_path / "run.parquet"
    karat.evaluate(RECORDS, "recall@5").save(path)
    frame, about = pl.read_parquet(path), pl.read_parquet_metadata(path)["karat"]
    frame.drop("retrieved").write_parquet(path, metadata={"karat": about})
    with pytest.raises(karat.RunFileError, match="damaged"):
        karat.load(path)
    frame.write_parquet(path, metadata={"karat": about.replace('"places"', '"plates"')})
    with pytest.raises(karat.RunFileError, match="damaged"):
        karat.load(path)


def test_half_characters_are_written_out(tmp_path):
    run = karat.evaluate(retrieved=[["\ud800 a", "\0b"]], gold=[["c"]], metrics="rr", judge="exact")
    assert [item.text for item in back(run, tmp_path).items(1).retrieved] == ["\\ud800 a", "\0b"]
