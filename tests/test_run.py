"""Runs: what they answer, how they look, and that a file brings them back whole."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import subprocess
import sys
from dataclasses import fields, replace

import pandas as pd
import polars as pl
import pytest

import karat
from karat._internal.display import span
from karat.conventions import CONVENTIONS
from karat.run.metadata import read_choices, write_choices
from karat.samples.notes import Note
from support.data import random_results_and_gold

SAMPLES = [
    {"id": "a", "query": "first?", "retrieved": ["x", "g", "x"], "gold": ["g", "h"], "topic": "one"},
    {"id": "b", "query": "second?", "retrieved": ["g"], "gold": {"g": 2, "z": 0}, "topic": "two"},
    {"id": "c", "query": None, "retrieved": ["y"], "gold": [], "topic": None},
]
RUN = karat.evaluate(
    [
        {**row, "gold": row["gold"] if isinstance(row["gold"], dict) else dict.fromkeys(row["gold"], 1)}
        for row in SAMPLES
    ],
    "recall@1,5 precision@2 rr",
)


def test_table_is_ordered_as_given():
    assert RUN.table.columns == ["query_id", "recall@1", "recall@5", "precision@2", "rr"]
    assert RUN.table["query_id"].to_list() == ["a", "b", "c"]
    assert RUN.table["recall@5"].to_list()[:2] == [0.5, 1.0]
    assert RUN.to_polars() is RUN.table
    assert isinstance(RUN.to_pandas(), pd.DataFrame)
    assert RUN.to_pandas()["recall@5"].tolist()[:2] == [0.5, 1.0]


def test_means_leave_out_and_count_what_is_undefined():
    assert RUN.mean == {"recall@1": 0.5, "recall@5": 0.75, "precision@2": 0.5, "rr": 0.75}
    assert RUN.undefined == dict.fromkeys(RUN.mean, 1)
    assert math.isnan(karat.evaluate(retrieved=[["a"]], gold=[[]], metrics="rr").mean["rr"])


def test_means_are_found_under_other_names():
    assert RUN.mean["mrr"] == RUN.mean["MRR"] == RUN.mean["rr"]
    assert RUN.mean["recall_at_5"] == 0.75
    with pytest.raises(KeyError, match="Did you mean recall@5"):
        RUN.mean["recal@5"]


def test_pooled_counts_gold_items_not_queries():
    assert RUN.pooled == {"recall@1": 1 / 3, "recall@5": 2 / 3, "precision@2": 0.5}
    assert RUN.gold_size == 1.5


def test_pooled_over_many():
    run, gold = random_results_and_gold(4)
    result = karat.evaluate(retrieved=run, gold=gold, metrics="recall@5 precision judged@10 rr f1@5")
    found = sum(1 for q in gold for item in result.gold(q) if item.grade > 0 and (item.rank or 99) <= 5)
    size = sum(grade > 0 for g in gold.values() for grade in g.values())
    assert result.pooled["recall@5"] == pytest.approx(found / size)
    assert set(result.pooled) == {"recall@5", "precision", "judged@10"}


def test_pooled_minds_the_threshold():
    run = karat.evaluate(
        retrieved=[["a"], ["c"]], gold=[{"a": 2, "b": 1, "x": 1}, {"c": 2, "d": 2}], metrics="recall(rel=2)@1 recall@1"
    )
    assert run.pooled == {"recall(rel=2)@1": pytest.approx(2 / 3), "recall@1": pytest.approx(2 / 5)}


def test_a_part_of_a_run():
    part = RUN.take([1, 0])
    assert part.ids == ["b", "a"]
    assert part.hits("a") == RUN.hits("a")
    for rows in ([0, 0], [-1], [9]):
        with pytest.raises(karat.BadArgument, match="rows"):
            RUN.take(rows)


def test_hits_and_gold_of_one_query():
    assert RUN.hits("a") == [(2, "g", 1.0, "same id")]
    assert RUN.gold("a") == [("g", 1.0, 2), ("h", 1.0, None)]
    assert RUN.gold("b") == [("g", 2.0, 1), ("z", 0.0, None)]
    assert RUN.hits("c") == []
    with pytest.raises(karat.UnknownName, match='no query "d"'):
        RUN.hits("d")


def test_duplicates_are_hits_but_earn_nothing():
    run = karat.evaluate(retrieved=[["g", "g"]], gold=[["g"]], metrics="precision@2")
    assert [hit.rank for hit in run.hits(1)] == [1, 2]
    assert run.gold(1) == [("g", 1.0, 1)]
    assert run.mean["precision@2"] == 0.5


def test_slices():
    by = RUN.by("topic")
    assert list(by) == ["(none)", "one", "two"]
    assert by["one"].mean["recall@5"] == 0.5
    assert by["two"].hits("b") == RUN.hits("b")
    assert by.table["queries"].to_list() == [1, 1, 1]
    assert "one" in repr(by)
    assert "<td>one</td>" in by._repr_html_()
    with pytest.raises(karat.UnknownName, match=r'no field "topics"\. Did you mean topic\?'):
        RUN.by("topics")
    with pytest.raises(karat.UnknownName, match='no topic "three"'):
        by["three"]
    assert "three" not in by
    assert by.get("three") is None


CROSSED = karat.evaluate(
    [
        {"retrieved": [found], "gold": ["a"], "topic": topic, "lang": lang}
        for found, topic, lang in [("a", "billing", "en"), ("x", "billing", "de"), ("a", "sharing", "en")] * 4
    ],
    "recall@1",
)


def test_crossed_slices():
    by = CROSSED.by("topic", "lang")
    assert list(by) == ["billing · de", "billing · en", "sharing · en"]
    assert by["billing", "de"] is by["billing · de"]
    assert by["billing", "de"].mean == {"recall@1": 0}
    assert by.table.columns == ["topic", "lang", "queries", "recall@1", "recall@1 low", "recall@1 high"]
    assert list(CROSSED.by("topic,lang")) == list(by)
    with pytest.raises(karat.UnknownName, match='no topic · lang "sharing · de"'):
        by["sharing", "de"]
    with pytest.raises(karat.UnknownName, match=r'no field "lng"\. Did you mean lang\?\n  try  one of: lang, topic'):
        CROSSED.by("topic", "lng")


def test_values_of_slices_are_given_as_in_the_data():
    rows = [{"retrieved": ["a"], "gold": ["a"], "year": year, "lang": "en"} for year in (2021, 2021, None)]
    run = karat.evaluate(rows, "rr")
    slices, crossed = run.by("year"), run.by("year", "lang")
    assert len(slices[2021]) == len(slices["2021"]) == len(slices[2021,]) == len(crossed[2021, "en"]) == 2
    assert len(slices[None]) == len(slices["(none)"]) == 1
    assert 2021 in slices
    assert 2022 not in slices
    assert run.by("lang").get(None) is None  # type: ignore[call-overload]
    with pytest.raises(karat.UnknownName, match='no year "2022"'):
        slices[2022]


def test_values_with_the_separator_stay_apart():
    rows = [{"retrieved": ["a"], "gold": ["a"], "x": x, "y": y} for x, y in [("1 · 2", "3"), ("1", "2 · 3")]]
    by = karat.evaluate(rows, "rr").by("x", "y")
    assert len(by) == 2
    assert len(by["1", "2 · 3"]) == 1


def test_a_field_with_a_comma_is_itself():
    assert list(karat.evaluate([{"retrieved": ["a"], "gold": ["a"], "a,b": 1}], "rr").by("a,b")) == ["1"]


def test_slices_have_intervals():
    assert f"0.500  {span(*CROSSED.by('topic')['billing'].interval()['recall@1'])}" in repr(CROSSED.by("topic"))


def test_the_notes_of_a_slice_are_its_own():
    rows = [{"retrieved": ["a"], "gold": gold, "topic": topic} for gold, topic in ((["a"], "one"), ([], "two"))]
    run = karat.evaluate(rows, "rr")
    facts = (Note("lexical_judge"), Note("judge_agreement", details={"repeats": 3, "alpha": 0.5}), Note("x", 3, 4))
    run = run.replace(provenance=replace(run.provenance, notes=facts, missing=1, skipped=2))
    assert len(run.remarks()) == 7
    one, two = run.by("topic").values()
    assert one.provenance.notes == facts[:1]
    assert len(one.remarks()) == 2
    assert two.remarks()[0] == "1 query is undefined: no relevant gold, not in the mean."


def test_shown():
    text = repr(RUN)
    assert text.startswith("samples · 3 queries · judge: ids (chosen: the items look like ids)")
    assert "1.5 gold items per query" in text
    assert "recall@5      0.750" in text
    assert "2 queries are too few for an interval: it takes at least 5." in text
    assert "1 query is undefined: no relevant gold, not in the mean." in text
    html = RUN._repr_html_()
    assert "<td>recall@5</td><td>0.750</td>" in html
    plain = RUN.to_dict()
    assert plain["mean"] == RUN.mean
    assert plain["provenance"]["judge_reason"] == "the items look like ids"


def test_intervals_are_repeatable_and_hold_the_mean():
    run, gold = random_results_and_gold(8, queries=80)
    result = karat.evaluate(retrieved=run, gold=gold, metrics="recall@5,10 ndcg@10 judged@5")
    once, again = result.interval(), result.interval()
    assert once == again
    for name, (low, high) in once.items():
        assert low <= result.mean[name] <= high
        narrow = result.interval(0.5)[name]
        assert high - low > narrow.high - narrow.low
    with pytest.raises(karat.BadArgument, match="level"):
        result.interval(1.5)
    alone = karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="rr").interval()["rr"]
    assert all(map(math.isnan, alone))


@pytest.mark.parametrize("seed", range(3))
def test_files_bring_a_run_back_whole(tmp_path, seed):
    run, gold = random_results_and_gold(seed)
    result = karat.evaluate(retrieved=run, gold=gold, metrics="recall@1,5 f(beta=2)@5 ndcg ap bpref")
    path = tmp_path / "run.parquet"
    result.save(path)
    back = karat.load(path)
    assert back.table.equals(result.table)
    assert (back.mean, back.pooled, back.undefined) == (result.mean, result.pooled, result.undefined)
    assert back.provenance == result.provenance
    assert back.gold_hash == result.gold_hash
    assert str(back.convention.choices()) == str(result.convention.choices())
    for query in result.ids:
        assert back.hits(query) == result.hits(query)
        assert back.gold(query) == result.gold(query)


def test_files_keep_conventions_and_repeats(tmp_path):
    c = karat.Convention(name="mine", gain="binary", precision_over="returned", rounding=3, empty_gold=0.5)
    result = karat.evaluate(
        retrieved=[["a", "a", "b"], ["c"]], gold=[["a"], []], metrics="precision@2 ap", convention=c
    )
    result.save(tmp_path / "run.parquet")
    back = karat.load(tmp_path / "run.parquet")
    assert back.convention == c
    assert back.all_hits.repeated.tolist() == [False, True]
    assert back.mean == result.mean


@pytest.mark.parametrize("name", sorted(CONVENTIONS))
def test_files_keep_every_choice_of_every_convention(tmp_path, name):
    result = karat.evaluate(retrieved=[["a", "b"]], gold=[["b"]], metrics="recall@5", convention=name)
    result.save(tmp_path / "run.parquet")
    back = karat.load(tmp_path / "run.parquet").convention
    assert [str(getattr(back, f.name)) for f in fields(back)] == [
        str(getattr(result.convention, f.name)) for f in fields(back)
    ]
    assert [type(getattr(back, f.name)) for f in fields(back)] == [
        type(getattr(result.convention, f.name)) for f in fields(back)
    ]


def test_choices_survive_json():
    c = karat.Convention(
        name="mine", both_empty=math.nan, per_rank=("ap",), exceptions={"rr": {"both_empty": math.nan}}
    )
    back = read_choices(json.loads(json.dumps(write_choices(c), allow_nan=False)))
    assert str(back) == str(c)
    assert str(back.choices()) == str(c.choices())
    assert math.isnan(read_choices({"name": "old", "empty_gold": None}).empty_gold)  # as older files have it
    assert read_choices({"name": "old", "both_empty": None}).both_empty is None


def test_any_parquet_reader_can_open_it(tmp_path):
    RUN.save(tmp_path / "run.parquet")
    frame = pd.read_parquet(tmp_path / "run.parquet")
    assert frame["recall@5"].tolist()[:2] == [0.5, 1.0]
    assert frame["meta.topic"].tolist()[:2] == ["one", "two"]
    assert karat.load(tmp_path / "run.parquet").by("topic")["two"].mean == RUN.by("topic")["two"].mean


def test_the_same_input_gives_the_same_bytes(tmp_path):
    code = (
        "import karat, sys; karat.evaluate(retrieved={'q': ['b', 'a'], 'r': ['c']}, gold={'q': ['a', 'z'], 'r': ['d']})"
        ".save(sys.argv[1])"
    )
    for name, seed in (("one", "1"), ("two", "2")):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, tmp_path / name], check=True, env=env)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_gold_hash_knows_the_task_and_not_its_order():
    def digest(gold):
        return karat.evaluate(retrieved={q: ["a"] for q in gold}, gold=gold, metrics="rr").gold_hash

    one = digest({"q": {"a": 1, "b": 2}, "r": {"c": 1}})
    assert one == digest({"r": {"c": 1}, "q": {"b": 2, "a": 1}})
    assert one != digest({"q": {"a": 1, "b": 1}, "r": {"c": 1}})
    assert one != digest({"q": {"a": 1}, "r": {"b": 2, "c": 1}})
    assert one != digest({"p": {"a": 1, "b": 2}, "r": {"c": 1}})


def test_run_files_that_are_none(tmp_path):
    with pytest.raises(karat.RunFileError, match="no run file"):
        karat.load(tmp_path / "none.parquet")
    (tmp_path / "broken.parquet").write_text("nonsense")
    with pytest.raises(karat.RunFileError, match="is not a run file") as caught:
        karat.load(tmp_path / "broken.parquet")
    assert "karat eval" in caught.value.hint
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(karat.RunFileError, match="cut off"):
        karat.load(tmp_path / "cut.parquet")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(karat.RunFileError, match="not a run file"):
        karat.load(tmp_path / "other.parquet")
    with pytest.raises(karat.RunFileError, match="cannot write"):
        RUN.save(tmp_path / "no" / "such" / "folder.parquet")


@pytest.mark.parametrize("about", ["{", "{}", '{"format": 9, "provenance": {"karat": "9"}}', '{"format": 1}'])
def test_damaged_run_files(tmp_path, about):
    pl.DataFrame({"query_id": ["q"]}).write_parquet(tmp_path / "run.parquet", metadata={"karat": about})
    with pytest.raises(karat.RunFileError, match=r"damaged|newer"):
        karat.load(tmp_path / "run.parquet")


@pytest.mark.parametrize("path", ["", ".", "/", "a\0b", "x" * 300])
def test_paths_that_cannot_be_written(path):
    with pytest.raises(karat.RunFileError, match="cannot write"):
        RUN.save(path)
    with pytest.raises(karat.RunFileError):
        karat.load(path)


def test_saving_leaves_no_scraps(tmp_path):
    RUN.save(tmp_path / "run.parquet")
    RUN.save(tmp_path / "run.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["run.parquet"]


def test_meta_of_any_kind_is_kept_or_told_as_text(tmp_path):
    odd = [{1}, {}, 10**50]
    rows = [
        {"retrieved": ["a"], "gold": ["a"], "mixed": value, "n": i, "odd": odd[i], "query": [i]}
        for i, value in enumerate([1, "two", None])
    ]
    karat.evaluate(rows, "rr").save(tmp_path / "run.parquet")
    back = karat.load(tmp_path / "run.parquet")
    assert back.meta["mixed"] == ["1", "two", None]
    assert back.meta["n"] == [0, 1, 2]
    assert back.meta["odd"] == list(map(str, odd))
    assert back.query == ["[0]", "[1]", "[2]"]


def test_runs_can_be_pickled_and_copied():
    for back in (pickle.loads(pickle.dumps(RUN)), copy.deepcopy(RUN)):
        assert repr(back) == repr(RUN)
        assert back.metrics == RUN.metrics
        assert back.hits("a") == RUN.hits("a")


def test_undefined_for_another_reason_is_not_blamed_on_the_gold():
    run = karat.evaluate(retrieved=[["a"], []], gold=[["a"], ["b"]], metrics="judged@5 rr")
    assert "1 query is undefined for judged@5: not in the mean." in run.remarks()


@pytest.mark.parametrize(
    "ending", ["csv", "CSV", "tsv", "json", "jsonl", "html", "md", "xlsx", "txt", "arrow", "feather"]
)
def test_a_name_that_promises_another_format_is_refused(tmp_path, ending):
    path = tmp_path / f"scores.{ending}"
    with pytest.raises(karat.RunFileError, match="a run is saved as Parquet") as error:
        RUN.save(path)
    assert not path.exists()
    assert error.value.got == repr(str(path))
    instead, _, code = error.value.hint.partition(", or ")
    assert instead == str(tmp_path / "scores.parquet")
    if ending != "xlsx":  # needs another library
        eval(code, {"run": RUN})  # the hint is Python that runs
    assert path.exists() == ('("' in code and ending != "xlsx")


@pytest.mark.parametrize("name", ["run.parquet", "run", "run.v2", "run.pq"])
def test_other_names_are_run_files(tmp_path, name):
    RUN.save(tmp_path / name)
    assert karat.load(tmp_path / name).mean == pytest.approx(RUN.mean, nan_ok=True)


def test_the_command_line_refuses_before_it_evaluates(tmp_path):
    for ending, instead in {
        "csv": "karat show run.parquet --format csv > ",
        "html": "karat report run.parquet -o ",
    }.items():
        path = tmp_path / f"x.{ending}"
        for command in (["eval", "no-such-file.jsonl"], ["merge", "no-such-run.parquet"]):
            done = subprocess.run(
                [sys.executable, "-m", "karat", *command, "-o", path], capture_output=True, text=True, check=False
            )
            assert done.returncode == 2
            assert "a run is saved as Parquet" in done.stderr
            assert f"-o run.parquet, then {instead}{path}" in done.stderr


def test_the_table_with_fields(tmp_path):
    rows = [
        {"id": "a", "query": "first?", "retrieved": ["x"], "gold": ["x"], "topic": "one", "rr": 5, "tags": ["u", "v"]},
        {"id": "b", "query": None, "retrieved": ["x"], "gold": ["y"], "topic": None, "rr": None, "tags": []},
    ]
    run = karat.evaluate(rows, "rr recall@1")
    run.save(tmp_path / "run.parquet")
    for one in (run, karat.load(tmp_path / "run.parquet")):
        table = one.to_polars(fields=True)
        assert table.columns == ["query_id", "query", "meta.rr", "tags", "topic", "rr", "recall@1"]
        assert table.row(0) == ("a", "first?", 5, "['u', 'v']", "one", 1.0, 1.0)
        assert table.row(1)[:5] == ("b", None, None, "[]", None)
        assert table.drop("query", "topic", "meta.rr", "tags").equals(one.table)
        assert one.to_polars().equals(one.table)
        pandas = one.to_pandas(fields=True)
        assert list(pandas.columns) == table.columns
        assert pandas["topic"].isna().tolist() == [False, True]
        assert list(one.to_pandas().columns) == one.table.columns


def test_fields_never_hide_each_other():
    meta = {"rr": [1], "meta.rr": [2], "query": [3], "query_id": [4]}
    run = karat.evaluate([{"id": "a", "query": "?", "retrieved": ["x"], "gold": ["x"], "meta": meta}], "rr")
    table = run.to_polars(fields=True)
    assert table.columns == ["query_id", "query", "meta.rr", "meta.query", "meta.query_id", "meta.meta.rr", "rr"]


def test_undefined_scores_are_null_in_tables_and_files(tmp_path):
    rows = [{"retrieved": ["a"], "gold": []}, {"retrieved": ["a"], "gold": ["a"]}]
    run = karat.evaluate(rows, "recall@5")
    run.save(tmp_path / "run.parquet")
    back = karat.load(tmp_path / "run.parquet")
    for table in (run.table, run.to_polars(fields=True), back.table, pl.read_parquet(tmp_path / "run.parquet")):
        assert table["recall@5"].to_list() == [None, 1.0]
        assert table["recall@5"].mean() == run.mean["recall@5"]
    assert math.isnan(back.scores["recall@5"][0])
    assert run.to_pandas()["recall@5"].isna().tolist() == [True, False]
