"""The numbers of a run for trackers of experiments: `--format metrics`, `--metrics-file` and the table of queries."""

from __future__ import annotations

import json

import pytest

import karat
from karat.bridges.tracked_table import tracked_facts, tracked_table
from karat.cli import main
from karat.report.flat_metrics import flat_metrics

ROWS = [
    {"id": "q1", "query": "where?", "retrieved": ["x", "a"], "gold": ["a", "b"], "topic": "x"},
    {"id": "q2", "query": "when?", "retrieved": ["c"], "gold": ["c"], "topic": "y"},
    {"id": "q3", "query": "why?", "retrieved": ["d"], "gold": [], "topic": "y"},
]
METRICS = "recall@5 precision(rel=2)@5 iprec@0.5 first_rank"


@pytest.fixture
def run():
    return karat.evaluate(ROWS, METRICS)


def test_numbers_of_a_run(run):
    found = flat_metrics(run)
    assert found == {
        "queries": 3, "failed_queries": 0, "recall_at_5": 0.75, "iprec_at_0_5": 0.75,
        "first_rank__mean": 1.5, "first_rank__median": 1.5, "first_rank__p90": pytest.approx(1.9),
    }  # fmt: skip
    assert "precision__rel_2_at_5" not in found, "undefined for every query"


def test_a_measure_that_some_query_never_reaches_has_no_mean():
    rows = [{"retrieved": ["a"], "gold": ["a"]}] * 3 + [{"retrieved": ["x"], "gold": ["a"]}]
    found = flat_metrics(karat.evaluate(rows, "rr first_rank"))
    assert found == {"queries": 4, "failed_queries": 0, "rr": 0.75, "first_rank__median": 1.0}


def test_summaries_intervals_and_bounds():
    run = karat.evaluate([{"retrieved": ["a", "x"][i % 2 :], "gold": ["a"]} for i in range(10)], "recall@1")
    found = flat_metrics(run, summary=["median,gm"], bounds=True)
    low, high = run.interval()["recall@1"]
    assert (found["recall_at_1__low"], found["recall_at_1__high"]) == (low, high)
    assert found["recall_at_1__median"] == run.summary("median")["recall@1"].value
    assert found["recall_at_1__gm"] == run.summary("gm")["recall@1"].value
    assert found["recall_at_1__lowest"] <= found["recall_at_1"] <= found["recall_at_1__highest"]


def test_the_table_of_queries(run):
    table = tracked_table(run)
    assert table["query_id"] == ["q1", "q2", "q3"]
    assert table["topic"] == ["x", "y", "y"]
    assert table["recall_at_5"] == [0.5, 1.0, None]
    assert table["precision__rel_2_at_5"] == [None, None, None]
    assert tracked_facts(run) == {"version": karat.__version__, "judge": "ids", "convention": "standard"}


@pytest.fixture
def samples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    return tmp_path


def test_the_format_metrics(samples, capsys, run):
    assert main(["eval", "samples.jsonl", METRICS, "-o", "run.parquet", "--format", "metrics"]) == 0
    assert json.loads(capsys.readouterr().out) == flat_metrics(run)
    assert main(["show", "run.parquet", "--format", "metrics", "--by", "topic", "--summary", "p10"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["recall_at_5__p10"] == run.summary("p10")["recall@5"].value
    assert shown["by"]["topic"]["x"]["recall_at_5"] == 0.5
    assert shown["by"]["topic"]["y"]["queries"] == 2


def test_the_metrics_file_is_written_besides_the_table(samples, capsys, run):
    assert main(["eval", "samples.jsonl", METRICS, "--metrics-file", "metrics.json"]) == 0
    assert "recall@5" in capsys.readouterr().out
    assert json.loads((samples / "metrics.json").read_text()) == flat_metrics(run)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--metrics-file", "samples.jsonl"], "cannot write samples.jsonl"),
        (["--metrics-file", "nowhere/metrics.json"], "cannot write nowhere/metrics.json"),
        (["--metrics-file", "run.parquet", "-o", "run.parquet"], "name the same file"),
    ],
)
def test_metrics_files_that_cannot_be_written(samples, capsys, options, said):
    before = (samples / "samples.jsonl").read_text()
    assert main(["eval", "samples.jsonl", "recall@5", *options]) == 2
    assert said in capsys.readouterr().err
    assert (samples / "samples.jsonl").read_text() == before


@pytest.mark.parametrize("kept", ['{"acc": 1}', "some text", "[1]"])
def test_a_metrics_file_of_something_else_is_kept(samples, capsys, kept):
    file = samples / "metrics.json"
    file.write_text(kept)
    arguments = ["eval", "samples.jsonl", "recall@5", "--metrics-file", "metrics.json"]
    assert main(arguments) == 2
    assert "--metrics-file new-metrics.json, or --force" in capsys.readouterr().err
    assert file.read_text() == kept
    assert main([*arguments, "--force"]) == 0
    assert "recall_at_5" in file.read_text()
    assert main([*arguments[:3], "rr", *arguments[3:]]) == 0
    assert "rr" in json.loads(file.read_text())
