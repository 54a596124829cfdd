"""`karat gate` in a job of GitHub Actions: annotations, step summary, outputs; and nothing of it elsewhere."""

from __future__ import annotations

import json
import os

import pytest

import karat
from karat.report.github import SUMMARY_BYTES, find_places, step_summary, workflow_command
from support.forked import run_karat

EVIL = "50%\n::error::pwned,line=1:##[add-mask]x"


def golden(path, found, ids=("q1", "q2", "q3", "q4", "q5", "q6")):
    rows = [
        {"id": query, "retrieved": ["g"] if yes else ["x"], "gold": ["g"]}
        for query, yes in zip(ids, found, strict=True)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return karat.evaluate(path, "recall@1")


def gate(folder, *arguments, github=True):
    names = ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_WORKSPACE")
    env = {name: value for name, value in os.environ.items() if name not in names}
    given = ("true", folder / "summary.md", folder / "output.txt", folder)
    env |= dict(zip(names, map(str, given), strict=True)) if github else {}
    done = run_karat("gate", "run.parquet", *arguments, text=True, cwd=folder, env=env)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    golden(tmp_path / "data/golden.jsonl", [1, 0, 1, 1, 0, 1]).save(tmp_path / "run.parquet")
    (tmp_path / "must.txt").write_text("q1\n\nq2  # the demo\nq5\n")
    return tmp_path


def test_failed_queries_are_marked_in_the_golden_file(folder):
    done = gate(folder, "recall@1 >= 0.9", "--must-pass", "must.txt", "--gold", "data/golden.jsonl")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "::error title=karat gate::recall@1 >= 0.90: 0.667 " + done.stderr.partition("0.667 ")[2].partition("\n")[0],
        "::error file=data/golden.jsonl,line=2,title=karat gate::must-pass, q2: recall@1 0.000, expected 1",
        "::error file=data/golden.jsonl,line=5,title=karat gate::must-pass, q5: recall@1 0.000, expected 1",
    ]


def test_the_file_of_the_run_is_the_default_and_else_the_list_of_ids(folder):
    rule = ("recall@1 >= 0", "--must-pass", "must.txt")
    assert "::error file=data/golden.jsonl,line=2," in gate(folder, *rule).stderr
    (folder / "data/golden.jsonl").unlink()
    assert "::error file=must.txt,line=3," in gate(folder, *rule).stderr


def test_summary_and_outputs(folder):
    (folder / "summary.md").write_text("before\n")
    done = gate(folder, "recall@1 >= 0.5", "recall@1 no-drop", "--baseline", "none.parquet", "--format", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == "passed"
    assert done.stderr.startswith("::warning title=karat gate::1 passed, 1 undecided, 0 failed of 2 checks. There")
    assert (folder / "summary.md").read_text().startswith("before\n### ✅ karat gate passed: 1 passed, 1 undecided")
    assert (folder / "output.txt").read_text().splitlines() == [
        "passed=true", "verdict=passed", "checks=2", "checks_passed=1", "checks_failed=0", "checks_undecided=1",
        "metric=recall@1", "mean=0.666667",
    ]  # fmt: skip


def test_the_summary_is_written_once(folder):
    gate(folder, "recall@1 >= 0.5", "--markdown", str(folder / "summary.md"))
    assert (folder / "summary.md").read_text().count("### ") == 1


def test_an_error_is_reported(folder):
    done = gate(folder, "recall@7 >= 0.5")
    assert done.returncode == 2
    assert '::error title=karat gate::no metric in this run "recall@7"' in done.stderr
    assert "could not decide" in (folder / "summary.md").read_text()
    assert (folder / "output.txt").read_text() == "passed=false\nverdict=undecided\n"


def test_elsewhere_there_is_none_of_it(folder):
    done = gate(folder, "recall@1 >= 0.9", github=False)
    assert done.returncode == 1
    assert done.stderr == ""
    assert not (folder / "summary.md").exists()
    assert not (folder / "output.txt").exists()


def test_at_most_ten_errors(tmp_path):
    ids = [f"q{i}" for i in range(30)]
    golden(tmp_path / "golden.jsonl", [0] * 30, ids).save(tmp_path / "run.parquet")
    (tmp_path / "must.txt").write_text("\n".join(ids))
    lines = gate(tmp_path, "recall@1 >= 0", "--must-pass", "must.txt").stderr.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("::error file=golden.jsonl,line=1,")
    assert lines[-1].startswith("::error title=karat gate::21 more checks failed: 1 passed, 0 undecided, 30 failed")


def test_hostile_ids_are_no_commands(tmp_path):
    golden(tmp_path / "golden.jsonl", [0] * 2, [EVIL, "q"]).save(tmp_path / "run.parquet")
    must_pass = karat.gate(tmp_path / "run.parquet", "recall@1 >= 0", must_pass=[EVIL])
    assert must_pass.exit_code == 1
    (tmp_path / "must.txt").write_text("::error::x ##[error]y")
    done = gate(tmp_path, "recall@1 >= 0", "--must-pass", "must.txt")
    assert [line.partition(" ")[0] for line in done.stderr.splitlines()] == ["::error", "karat:", ""]
    assert "##[" not in done.stderr.partition("\n")[2]


def test_hostile_values_are_escaped():
    line = workflow_command("error", EVIL, file=EVIL)
    assert line == (
        "::error file=50%25%0A%3A%3Aerror%3A%3Apwned%2Cline=1%3A##[add-mask]x"
        "::50%25 ::error::pwned,line=1:# #[add-mask]x"
    )


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.jsonl", '{"id": "a"}\n\n{"query_id": "q", "gold": [{"id": "z"}]}\n', 3),
        ("a.jsonl", '{"gold": [{"id": "q"}]}\n{"qid": "q"}\n', 2),
        ("a.json", '[\n  {\n    "id": "q",\n    "gold": []\n  }\n]', 3),
        ("a.csv", 'topic,query_id,gold\n"x, y",q,a\n', 2),
        ("a.tsv", "qid\tdoc\nq\ta\n", 2),
        ("long.csv", "id,QUERY_ID,doc_id\nq,p,a\nx,q,a\n", 3),
        ("long.csv", "query,doc_id\np,a\nq,a\n", 3),
        ("wide.csv", f'id,answer,gold\np,"{"x" * 140_000}",a\nq,b,a\n', 3),
        ("lines.csv", 'id,answer,gold\n\np,"one\n\nq,two",a\nq,"b\nc",a\n', 6),
        ("a.jsonl", '{"id": "p", "query": "a\u2028b\u0085c\x0cd"}\n{"id": "q"}\n', 2),
        ("a.jsonl", '{"id": "q", "query_id": "p", "doc_id": "d"}\n{"id": "x", "query_id": "q", "doc_id": "d"}\n', 2),
        ("a.jsonl", '{"query_id": "p", "id": "q", "user_input": "?", "contexts": []}\n', 1),
        ("a.jsonl", '{"id": true}\n[1]\n{"id": "q"}\n', 3),
        ("a.json", '[\n {"id": "\\x"},\n {"id": 1.5},\n {"id": "q"}\n]', 4),
        ("qrels.txt", "p 0 d 1\nq 0 d 1\nq 0 e 1\n", 2),
    ],
)
def test_queries_are_found_in_every_format(tmp_path, name, text, line):
    (tmp_path / name).write_text(text)
    assert find_places(["q"], [tmp_path / name], None, tmp_path) == {"q": (name, line)}


def test_a_large_cell_of_the_golden_file(tmp_path):
    (tmp_path / "golden.csv").write_text(f'id,query,gold\nq1,"{"x" * 140_000}",g\nq2,b,g\n')
    golden(tmp_path / "data.jsonl", [1, 0], ["q1", "q2"]).save(tmp_path / "run.parquet")
    for query, code in (("q1", 0), ("q2", 1)):
        (tmp_path / "must.txt").write_text(query)
        done = gate(tmp_path, "recall@1 >= 0", "--must-pass", "must.txt", "--gold", "golden.csv")
        assert done.returncode == code
        assert done.stderr.count("::error file=golden.csv,line=3,") == code


def test_files_are_not_read_if_no_query_failed(tmp_path):
    assert find_places([], [tmp_path], tmp_path / "none.txt", None) == {}


def test_a_line_of_the_list_ends_at_a_line_feed(tmp_path):
    (tmp_path / "must.txt").write_text("p # one\u2028two\nq\n")
    assert find_places(["q", "two"], [], tmp_path / "must.txt", tmp_path) == {"q": ("must.txt", 2)}


def test_queries_without_ids_are_numbered(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"query": "x"}\n\n{"query": "y", "id": null}\n')
    assert find_places(["2"], [tmp_path / "a.jsonl"], None, None)["2"].line == 3
    (tmp_path / "a.jsonl").write_bytes(b"\xff\xfe")
    assert find_places(["2"], [tmp_path / "a.jsonl", tmp_path / "none"], None, None) == {}


def test_a_long_summary_is_cut_in_a_stated_way():
    text = "### title\n\n<details><summary>more</summary>\n\n" + "| é | row |\n" * 200_000 + "\n</details>\n"
    cut = step_summary(text)
    assert SUMMARY_BYTES - 100 < len(cut.encode()) <= SUMMARY_BYTES
    assert cut.count("</details>") == 1
    assert "The summary was cut here: GitHub shows at most 1 MB." in cut
    assert len(step_summary(text, 900_000).encode()) <= 100_000
    assert step_summary("short") == "short"
