"""Stages: values computed by hand, a plain slow twin, ideal rerankings by brute force, and bad input."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import karat
from karat.cli import main
from support.staged import SAMPLES, moves, sample


@pytest.fixture
def stages():
    return karat.stages(SAMPLES, "recall@2 rr")


def test_every_stage_is_an_ordinary_run(stages):
    assert list(stages.runs) == ["bm25", "dense", "reranked"]
    for name, run in stages.runs.items():
        alone = karat.evaluate(
            [row | {"retrieved": row["stages"][name], "stages": None} for row in SAMPLES], "recall@2 rr"
        )
        assert run.mean == alone.mean
        assert run.table.equals(alone.table)
        assert run.gold_hash == alone.gold_hash
        assert run.items("q1") == alone.items("q1")
    assert [run.mean["recall@2"] for run in stages.runs.values()] == [0.5, 0.2, 0.6]


def test_ceilings_by_hand(stages):
    assert {name: one.mean for name, one in stages.ceiling.items()} == {"bm25": 0.7, "dense": 0.5, "reranked": 0.8}
    assert stages.ceiling["bm25"].queries == {"q1": 1, "q2": 1, "q3": 0.5, "q4": 1, "q5": 0}
    assert stages.ceiling["bm25"][1:3] == (4, 6)
    assert stages.candidates.legs == ("bm25", "dense")
    assert stages.candidates.ceiling[:3] == (0.8, 5, 6)
    assert stages.candidates.ceiling.missing == 1


def test_ideals_by_hand(stages):
    assert stages.ideal["bm25"].mean == {"recall@2": 0.7, "rr": 0.8}
    assert stages.ideal["dense"].mean == {"recall@2": 0.5, "rr": 0.6}
    assert stages.ideal["reranked"].mean == {"recall@2": 0.8, "rr": 0.8}
    assert stages.candidates.ideal.mean == {"recall@2": 0.8, "rr": 0.8}


def test_lifted_and_pushed_out_by_hand(stages):
    assert stages.k == 2
    assert moves(stages.lifted) == [
        ("q1", "a", {"bm25": 3, "dense": 3}, 1),
        ("q3", "d", {"bm25": None, "dense": 3}, 2),
    ]
    assert moves(stages.pushed_out) == [("q4", "e", {"bm25": 1, "dense": 2}, 3)]
    assert stages.lifted[0].query == "q1?"
    assert stages.conclusion == (
        "reranked lifts 2 gold items into the top 2 and pushes 1 out; 17 % of the gold (1 of 6 items) is not among its "
        "candidates."
    )


def test_the_cutoff_can_be_chosen():
    found = karat.stages(SAMPLES, "recall@2", k=1)
    assert [move.gold for move in found.lifted] == ["a", "b"]
    assert [move.gold for move in found.pushed_out] == ["e"]
    assert karat.stages(SAMPLES, "ndcg@10 recall@1,5,20").k == 5


def test_consecutive_stages_are_compared_and_corrected_together():
    rows = [
        sample(f"q{i}", "a", bm25="xyza" if i % 3 else "axyz", dense="xayz" if i % 5 else "xyza", reranked="axyz")
        for i in range(30)
    ]
    found = karat.stages(rows, "recall@2 rr")
    pairs = [("bm25", "dense"), ("dense", "reranked")]
    assert [(one.before, one.after, one.queries) for one in found.comparison] == [(*pair, 30) for pair in pairs]
    raw = {}
    for one, (before, after) in zip(found.comparison, pairs, strict=True):
        alone = karat.compare(found.runs[before], found.runs[after])
        for row, same in zip(one.rows, alone.rows, strict=True):
            assert row[:5] == same[:5]
            assert row[6:9] == same[6:9]
            raw[before, row.metric] = karat.compare(found.runs[before], found.runs[after], metrics=row.metric).rows[0].p
    corrected = [row.p for one in found.comparison for row in one.rows]
    order = sorted(raw.values())
    expected = dict(zip(order, np.maximum.accumulate([p * (4 - i) for i, p in enumerate(order)]), strict=True))
    assert corrected == pytest.approx([min(expected[p], 1) for p in raw.values()])


def test_two_stages():
    found = karat.stages(SAMPLES, "recall@2", names=["bm25", "reranked"])
    assert list(found.runs) == ["bm25", "reranked"]
    assert found.candidates.legs == ("bm25",)
    assert found.candidates.ideal.mean == found.ideal["bm25"].mean
    assert [move.gold for move in found.lifted] == ["a", "d"]
    assert (found.new_items.new, found.new_items.items, found.new_items.queries) == (2, 15, 2)
    assert found.new_gold == 1
    assert "2 of its 15 items (2 queries) are in no stage before it; 1 gold item is found by it alone." in str(found)


def test_items_of_the_last_stage_alone_are_counted():
    rows = [row | {"stages": row["stages"] | {"reranked": ["new", *row["stages"]["reranked"]]}} for row in SAMPLES]
    found = karat.stages(rows, "recall@2")
    assert (found.new_items.new, found.new_items.items, found.new_items.queries) == (5, 20, 5)
    assert found.new_gold == 0
    assert "reranked does more than rerank: 5 of its 20 items (5 queries) are in no stage before it." in found.remarks()
    assert not any("does more" in line for line in karat.stages(SAMPLES, "recall@2").remarks())


def test_texts_of_moved_gold_are_known():
    texts = {"a": "Alpha text", "x": "Something", "y": "Else", "z": "Other"}

    def records(ids):
        return [{"id": one, "text": texts[one]} for one in ids]

    rows = [{"gold": records("a"), "stages": {"bm25": records("xya"), "reranked": records("axy")}}]
    found = karat.stages(rows, "recall@1")
    (move,) = found.lifted
    assert move.text == "Alpha text"
    assert move.query_id == "1"
    assert "Alpha text" in str(found)
    (move,) = karat.stages(rows, "recall@1", judge="text").lifted
    assert move.gold == "Alpha text"


def test_a_stage_missing_for_some_queries_is_counted():
    without = {name: ranking for name, ranking in SAMPLES[4]["stages"].items() if name != "dense"}
    rows = [*SAMPLES[:3], SAMPLES[3] | {"stages": SAMPLES[3]["stages"] | {"dense": None}}]
    found = karat.stages([*rows, SAMPLES[4] | {"stages": without}], "recall@2")
    assert list(found.runs) == ["bm25", "dense", "reranked"]
    assert [len(run) for run in found.runs.values()] == [5, 3, 5]
    assert [change.queries for change in found.comparison] == [3, 3]
    assert [note.kind for note in found.notes] == ["stage_missing", "stages_shared"]
    assert "dense is missing for 2 of 5 queries (q4, q5)." in found.remarks()
    assert any("over the 3 queries with every stage" in line for line in found.remarks())
    assert found.pushed_out == []
    assert found.candidates.ceiling[1:3] == (4, 4)
    assert found.ceiling["bm25"][1:3] == (4, 6)
    assert "queries" in str(found).splitlines()[2]


def test_stages_are_ordered_as_in_the_queries():
    rows = [
        {"gold": ["a"], "stages": {"bm25": ["a"], "last": ["a"]}},
        {"gold": ["a"], "stages": {"dense": ["a"], "last": ["a"]}},
        {"gold": ["a"], "stages": {"bm25": ["a"], "dense": ["a"], "last": ["a"]}},
    ]
    assert list(karat.stages(rows, "rr").runs) == ["bm25", "dense", "last"]


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet", "frame", "columns", "runs", "paths", "by name"])
def test_every_source_gives_the_same_result(tmp_path, form):
    usual = karat.stages(SAMPLES, "recall@2 rr")
    source = tmp_path / f"stages.{form}"
    if form == "jsonl":
        source.write_text("\n".join(map(json.dumps, SAMPLES)))
    elif form == "json":
        source.write_text(json.dumps(SAMPLES))
    elif form == "parquet":
        pl.DataFrame(SAMPLES).write_parquet(source)
    elif form == "frame":
        source = pl.DataFrame(SAMPLES)
    elif form == "columns":
        source = {name: [row[name] for row in SAMPLES] for name in SAMPLES[0]}
    else:
        for name, run in usual.runs.items():
            run.save(tmp_path / f"{name}.parquet")
        source = {name: tmp_path / f"{name}.parquet" for name in usual.runs}
        source = source if form == "by name" else list(source.values())
        source = [karat.load(path) for path in source] if form == "runs" else source
    names = list(usual.runs) if form == "runs" else None
    found = karat.stages(source, names=names, metrics=None if form in ("runs", "paths", "by name") else "recall@2 rr")
    assert found.to_dict() == usual.to_dict()


def test_records_in_parquet(tmp_path):
    """A frame has every field in every record, null where it was not given: such fields are not there."""
    rows = [
        {
            "gold": ["a"],
            "stages": {"one": [{"id": "x", "score": 2.0}, {"id": "a", "score": 1.0}], "two": [{"id": "a"}]},
        },
        {"gold": ["a"], "stages": {"one": None, "two": [{"id": "x"}, {"id": "a"}]}},
    ]
    record = pl.List(pl.Struct({"id": pl.String, "score": pl.Float64}))
    schema = {"gold": pl.List(pl.String), "stages": pl.Struct({"one": record, "two": record})}
    pl.DataFrame(rows, schema).write_parquet(tmp_path / "s.parquet")
    found, same = karat.stages(tmp_path / "s.parquet", "rr"), karat.stages(rows, "rr")
    assert found.to_dict() == same.to_dict()
    assert [len(run) for run in found.runs.values()] == [1, 2]
    assert [run.mean["rr"] for run in found.runs.values()] == [0.5, 0.75]


def test_run_files_that_do_not_store_every_item(tmp_path):
    rows = [sample(f"q{i}", "a", bm25="a", last="a") for i in range(5)]
    for row in rows:
        row["stages"] = {name: [f"{name}{i}" for i in range(150)] + ["a"] for name in row["stages"]}
    found = karat.stages(rows, "recall@2")
    assert found.new_items.new == 5 * 150
    for name, run in found.runs.items():
        run.save(tmp_path / f"{name}.parquet")
    again = karat.stages([tmp_path / "bm25.parquet", tmp_path / "last.parquet"])
    assert again.new_items is None
    assert "it is not known if last has items of its own" in str(again)
    assert again.ideal["bm25"].mean == found.ideal["bm25"].mean


@pytest.mark.parametrize("form", [list, dict, "pairs", "records"])
def test_items_have_every_form_of_retrieved(form):
    forms = {
        list: list,
        dict: lambda ids: {one: -place for place, one in enumerate(ids)},
        "pairs": lambda ids: [(one, -place) for place, one in enumerate(ids)],
        "records": lambda ids: [{"id": one, "score": -place} for place, one in enumerate(ids)],
    }
    rows = [row | {"stages": {n: forms[form](ids) for n, ids in row["stages"].items()}} for row in SAMPLES]
    found, same = karat.stages(rows, "recall@2 rr", judge="ids"), karat.stages(SAMPLES, "recall@2 rr", judge="ids")
    assert found.to_dict() == same.to_dict()


def test_queries_that_could_not_be_judged_are_left_out():
    class Failing(karat.Ids):
        name = "failing"

        def __call__(self, samples, convention):
            hits = super().__call__(samples, convention)
            failed = {0: "no answer"} if "z" in samples.retrieved.columns["id"][0] else {}
            return hits.replace(failed=failed)

    found = karat.stages(SAMPLES, "recall@2", judge=Failing())
    assert [run.judged for run in found.runs.values()] == [5, 4, 5]
    assert [move.gold for move in found.lifted] == ["d"]
    assert found.ceiling["dense"][1:3] == (2, 5)
    assert np.isnan(found.ideal["dense"].scores["recall@2"][0])
    assert found.candidates.ceiling[1:3] == (4, 5)
    assert any(line.startswith("dense: 1 of 5 queries") for line in found.remarks())


def test_metrics_of_queries_without_an_answer_have_no_ideal():
    samples = [*SAMPLES, {**SAMPLES[0], "id": "none", "gold": [], "answerable": False}]
    found = karat.stages(samples, "recall@2 false_alarm@2")
    assert np.isnan(found.ideal["bm25"].mean["false_alarm@2"])
    assert str(found).partition("ideal reranking")[2].splitlines()[1].split() == ["recall@2", "ceiling"]
    assert "The ideal reranking puts gold first; it is not one for false_alarm@2." in found.remarks()


def test_measures_are_shown_beside_metrics():
    found = karat.stages(SAMPLES, "recall@2 full_rank")
    assert found.metrics == ["recall@2"]
    assert found.ideal["bm25"].measure_summary["full_rank"].median == 1
    assert "full_rank (median)" in str(found)
    assert found.to_dict()["stages"]["bm25"]["measures"]["full_rank"]["never"] == 2


# The command


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stages.jsonl").write_text("\n".join(map(json.dumps, SAMPLES)))
    return "stages.jsonl"


def shown(capsys, *arguments, code=0):
    assert main(list(arguments)) == code
    out, err = capsys.readouterr()
    return err if code else out


def test_the_command_shows_what_python_shows(file, capsys, stages):
    assert shown(capsys, "stages", file, "recall@2", "rr").strip() == str(stages).strip()
    assert shown(capsys, "stages", file, "--metrics", "recall@2", "rr").strip() == str(stages).strip()
    found = json.loads(shown(capsys, "stages", file, "recall@2 rr", "--format", "json"))
    assert found["conclusion"] == stages.conclusion
    assert found["lifted"][1] == {
        "query_id": "q3", "query": "q3?", "gold": "d", "text": None, "grade": 1.0, "before": {"bm25": None, "dense": 3},
        "after": 2,
    }  # fmt: skip
    assert shown(capsys, "stages", file, "recall@2 rr", "--format", "markdown").strip() == stages.to_markdown()
    table = pl.read_csv(shown(capsys, "stages", file, "recall@2 rr", "--format", "csv").encode())
    assert table["stage"].to_list() == ["bm25", "bm25", "dense", "dense", "reranked", "reranked"]
    assert table["ideal"].to_list() == [0.7, 0.8, 0.5, 0.6, 0.8, 0.8]
    assert table["difference"].to_list()[:3] == [None, None, pytest.approx(-0.3)]


def test_options_of_the_command(file, capsys):
    assert "Lifted into the top 1 by reranked: 2 gold items" in shown(capsys, "stages", file, "recall@2", "-k", "1")
    one = shown(capsys, "stages", file, "recall@2", "-n", "1")
    assert "and 1 more query" in one
    assert "q3  q3?" not in one
    assert "bm25 → reranked" in shown(capsys, "stages", file, "recall@2", "--names", "bm25", "reranked")
    assert "ranx" in shown(capsys, "stages", file, "recall@2", "--convention", "ranx")


def test_run_files(file, capsys, stages):
    for name, run in stages.runs.items():
        run.save(f"{name}.parquet")
    paths = [f"{name}.parquet" for name in stages.runs]
    assert shown(capsys, "stages", *paths).strip() == str(stages).strip()
    assert "recall@2" not in shown(capsys, "stages", *paths, "rr")
    assert "one, two → three" in shown(capsys, "stages", *paths, "--names", "one", "two", "three")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("stages stages.jsonl recal@2", 'no metric "recal"'),
        ("stages stages.jsonl none.parquet", "not a run file"),
        ("stages none.jsonl", "none.jsonl"),
        ("stages none.parquet other.parquet", "no run file none.parquet"),
        ("stages stages.jsonl --judge relevance(gpt-4o-mini)", "does not estimate its cost"),
        ("stages stages.jsonl -k x", "invalid int value"),
    ],
)
def test_mistakes(file, capsys, line, message):
    assert message in " ".join(shown(capsys, *line.split(), code=2).split())


def test_hostile_names_are_shown_but_do_nothing():
    name = "<b>|x`\x1b[31m@someone::error::"
    rows = [{"gold": ["a"], "stages": {name: ["x", "a"], f"{name}2": ["a"]}}]
    found = karat.stages(rows, "recall@1")
    assert "\x1b" not in str(found)
    assert "<b>" not in found._repr_html_()
    assert "\x1b" not in found.to_markdown()
    assert found.lifted[0].before == {name: 2}
