"""Comparisons to read: the matrix of several runs, every form of it, and the command as a user runs it."""

from __future__ import annotations

import csv
import io
import json

import pytest

import karat
from karat.stats import holm, paired_test
from support.compared import METRICS, rows, run
from support.forked import run_karat
from support.markdown import outside_code

EVIL = "\x1b[31m\u202e\x00$\\input{x}_%&#|<script>`[a](http://b)`"
ACTIVE = {"\x1b", "\u202e", "\x00", "\x07"}


def command(*arguments, code=0):
    done = run_karat("compare", *arguments, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, found, seed in (("main", 0.3, 1), ("branch", 0.5, 2), ("best", 0.95, 3)):
        run(found, seed=seed).save(folder / f"{name}.parquet")
    return [folder / f"{name}.parquet" for name in ("main", "branch", "best")]


@pytest.fixture
def three(files):
    return karat.compare(*files)


def test_letters_are_holm_over_the_pairs_of_a_metric(three):
    for row in three.rows:
        scores = [one.scores[row.metric] for one in three.runs]
        pairs = [(0, 1), (0, 2), (1, 2)]
        ps = holm([paired_test(scores[i], scores[j]).p for i, j in pairs])
        assert [(pair.first, pair.second, pair.p) for pair in row.pairs] == [
            (*pair, p) for pair, p in zip(pairs, ps, strict=True)
        ]
        beats = {
            (j, i) if row.means[j] > row.means[i] else (i, j) for (i, j), p in zip(pairs, ps, strict=True) if p < 0.05
        }
        assert {(i, j) for i in range(3) for j in row.beaten(i)} == beats
    assert three.rows[0].beaten(2) == [0, 1]
    assert three.rows[0].beaten(0) == []


def test_a_worse_run_that_comes_last_is_beaten(files):
    row = karat.compare(*files[::-1]).rows[0]
    assert row.beaten(0) == [1, 2]
    assert row.beaten(2) == []


def test_matrix(three):
    lines = repr(three).splitlines()
    assert lines[0] == "main, branch, best · 60 queries · judge: ids · convention: standard"
    assert lines[2].split() == ["recall@5", "ndcg@10", "rr"]
    assert lines[5].split()[:2] == ["c", "best"]
    assert lines[5].split()[2] == f"{three.rows[0].means[2]:.3f}ᵃᵇ"
    assert "Holm correction over the 3 pairs of a metric" in lines[6]
    assert f"{three.rows[0].means[2]:.3f}<sup>ab</sup>" in three.to_markdown()
    assert f"& best & {three.rows[0].means[2]:.3f}$^{{ab}}$ &" in three.to_latex()
    assert "ᵃᵇ</td>" in three._repr_html_()


def test_latex_has_as_many_columns_as_it_says(three, files):
    for text in (three.to_latex(), karat.compare(*files[:2]).to_latex()):
        columns = text.splitlines()[1].removeprefix(r"\begin{tabular}{").rstrip("}")
        inside = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert {line.count("&") + 1 for line in inside} == {len(columns)}
        assert len(inside) == 4


def test_at_most_as_many_runs_as_there_are_letters():
    runs = [run(queries=4)] * 26
    with pytest.raises(karat.BadArgument, match="at most 25 runs"):
        karat.compare(*runs)
    assert karat.compare(*runs[:25], metrics="rr").names[-1] == "Z"


def test_command(files):
    out = command(*files[:2])
    assert out == repr(karat.compare(*files[:2])) + "\n"
    lines = out.splitlines()
    assert lines[2].split()[:3] == ["main", "branch", "difference"]
    assert "winner       p (Holm)  branch won / tied / lost" in lines[2]
    assert any(line.startswith("  ▲ q") and '"what is ' in line for line in lines)
    assert "not retrieved → " in out


def test_command_with_more_runs(files):
    assert "ᵃᵇ" in command(*files)


def test_metrics_of_the_command(files):
    out = command(*files[:2], "--metrics", "mrr recall@5", "--format", "json")
    assert [row["metric"] for row in json.loads(out)["rows"]] == ["rr", "recall@5"]
    assert command(*files[:2], "--metrics", "mrr", "recall@5", "--format", "json") == out
    assert 'no metric in every run "ap"' in command(*files[:2], "--metrics", "ap", code=2)


def test_formats(files):
    found = karat.compare(*files[:2])
    read = json.loads(command(*files[:2], "--format", "json"))
    assert read["names"] == ["main", "branch"]
    assert read["rows"][0]["means"] == dict(zip(read["names"], found.rows[0].means, strict=True))
    assert read["rows"][0]["p"] == found.rows[0].p
    assert read["moved"][0]["gold"][0].keys() == {"label", "before", "after"}
    table = list(csv.DictReader(io.StringIO(command(*files[:2], "--format", "csv"))))
    assert [float(row["difference"]) for row in table] == [row.difference for row in found.rows]
    assert len(list(csv.DictReader(io.StringIO(command(*files, "--format", "csv"))))) == 9
    assert command(*files[:2], "--format", "markdown").startswith("| metric | `main` | `branch` |")
    assert r"\begin{tabular}" in command(*files[:2], "--format", "latex")


def test_the_winner_is_named(files):
    found = karat.compare(files[2], files[0])
    assert {row.verdict for row in found.rows} == {"worse"}
    assert {line.split()[6] for line in repr(found).splitlines()[3:6]} == {"best"}
    assert "| best |" in found.to_markdown()
    assert found.to_dict()["rows"][0]["winner"] == "best"
    assert set(found.table["winner"]) == {"best"}
    same = karat.compare(files[0], files[0], names=["a", "b"])
    assert same.to_dict()["rows"][0]["winner"] is None
    assert set(same.table["winner"]) == {None}


def test_no_correction_for_one_metric(files):
    one = karat.compare(*files[:2], metrics="rr")
    for shown in (repr(one), one.to_markdown(), one.to_latex(), one._repr_html_()):
        assert "Holm" not in shown
    assert "Holm" in repr(karat.compare(*files[:2]))


def test_differences_have_one_sign_in_every_form(tmp_path):
    """A difference of -0.0004 rounds to 0.000 everywhere."""
    made = [{"id": f"q{i}", "retrieved": ["g"], "gold": ["g"]} for i in range(2500)]
    a = karat.evaluate(made, "recall@1")
    b = karat.evaluate([{**made[0], "retrieved": ["x"]}, *made[1:]], "recall@1")
    found = karat.compare(a, b, names=["a", "b"])
    assert found.rows[0].difference == -0.0004
    b.report(tmp_path / "page.html", baseline=a)
    for shown in (repr(found), found.to_markdown(), found.to_latex(), (tmp_path / "page.html").read_text("utf-8")):
        for wrong in ("-0.000", "−0.000", "+0.000"):
            assert wrong not in shown
    assert "  0.000  [-0.002, +0.001]" in repr(found)


@pytest.fixture(scope="module")
def sliced(tmp_path_factory):
    folder, paths = tmp_path_factory.mktemp("sliced"), []
    for name, found, seed in (("main", 0.2, 1), ("branch", 0.6, 2), ("best", 0.95, 3)):
        made = [
            {**row, "topic": "ab"[i % 2], "lang": "de" if i < 6 else "en"}
            for i, row in enumerate(rows(found, seed=seed))
        ]
        paths.append(folder / f"{name}.parquet")
        karat.evaluate(made, "recall@5 rr", judge="ids").save(paths[-1])
    return paths


def test_slices_are_corrected_together(sliced):
    found = karat.compare(*sliced[:2])
    main, branch = (run.by("topic") for run in found.runs)
    by = found.by("topic")
    assert list(by) == ["a", "b"]
    tests = [
        paired_test(main[value].scores[metric], branch[value].scores[metric])
        for value in by
        for metric in ("recall@5", "rr")
    ]
    ps = holm([test.p for test in tests])
    for row, test, p in zip([row for slices in by.values() for row in slices], tests, ps, strict=True):
        assert (row.difference, row.low, row.high, row.p, row.n) == (test.difference, test.low, test.high, p, 30)


def test_slices_in_every_form(sliced):
    row = karat.compare(*sliced[:2]).by("topic")["b"][0]
    cells = [f"{row.means[0]:.3f}", f"{row.means[1]:.3f}", f"{row.difference:+.3f}", f"[{row.low:+.3f},"]
    given = (*sliced[:2], "--by", "topic", "--by", "topic,lang")
    out = command(*given)
    line = f"  b       30  {'   '.join(cells[:2])}  {cells[2]} [{row.low:+.2f}, {row.high:+.2f}]"
    assert line in out.partition("recall@5 by topic\n")[2]
    assert "By topic: the tests are corrected for 2 slices × 2 metrics (Holm)" in out
    assert "a · de" in out
    assert f"| `b` | 30 | {' | '.join(cells)}" in command(*given, "--format", "markdown")
    read = json.loads(command(*given, "--format", "json"))["by"]
    assert read["topic"]["b"][0]["low"] == row.low
    assert list(read["topic,lang"]) == ["a · de", "a · en", "b · de", "b · en"]
    table = list(csv.DictReader(io.StringIO(command(*given, "--format", "csv"))))
    assert [(one["by"], one["slice"]) for one in table[1:4]] == [("", ""), ("topic", "a"), ("topic", "a")]
    paper = command(*given, "--format", "latex")
    assert f"  recall@5 & b & 30 & {cells[0]} & {cells[1]} & ${cells[2]}$ & ${cells[3]}" in paper
    assert paper.count(r"\begin{tabular}") == 3
    assert "one of: lang, topic" in command(*sliced[:2], "--by", "topik", code=2)


def test_slices_of_three_runs(sliced):
    matrix = karat.compare(*sliced, by="topic")
    assert "ᵃ" in repr(matrix).partition("by topic")[2]
    assert "<sup>a" in matrix.to_markdown().partition("by topic")[2]
    assert "$^{a" in matrix.to_latex().partition("by topic")[2]
    assert "by topic</caption>" in matrix._repr_html_()


def test_refusals_of_the_command(files, tmp_path):
    other = tmp_path / "other.parquet"
    karat.evaluate(rows(0.5, 40), METRICS, judge="exact").save(other)
    said = command(files[0], other, code=2)
    assert "karat: main and other cannot be compared: their judges differ: main has ids, other has exact" in said
    assert "20 queries only in main" in said
    assert "--allow-mismatch" in said
    allowed = command(files[0], other, "--allow-mismatch")
    assert "40 queries" in allowed.splitlines()[0]
    assert "Compared over the 40 queries in every run: main has 60, other has 40." in allowed
    assert "no run file" in command(files[0], tmp_path / "none.parquet", code=2)
    (tmp_path / "samples.jsonl").write_text("{}")
    assert 'no column "retrieved"' in command(files[0], tmp_path / "samples.jsonl", code=2)  # compared without gold
    assert "RUN" in command(files[0], code=2)


def evil_run(retrieved):
    made = [{"id": EVIL, "query": EVIL, "retrieved": retrieved, "gold": [EVIL], "topic": EVIL}]
    return karat.evaluate(made, "rr", judge="ids")


@pytest.mark.parametrize("count", [2, 3])
def test_hostile_text_is_harmless(count):
    runs = [evil_run([EVIL]), evil_run(["x", EVIL]), evil_run(["x"])][:count]
    found = karat.compare(*runs, names=[f"{EVIL}{i}" for i in range(count)])
    page, paper, html = found.to_markdown(), found.to_latex(), found._repr_html_()
    for shown in (repr(found), page, paper, html, found.table.write_csv()):
        assert not ACTIVE & set(shown)
    for shown in (page, html):
        assert "<script" not in outside_code(shown)
    assert "](http" not in outside_code(page)
    assert {line.count("|") for line in outside_code(page).splitlines() if line.startswith("|")} == (
        {9, 6} if count == 2 else {4}
    )
    assert r"\input" not in paper
    assert r"\textbackslash{}input\{x\}\_\%\&\#" in paper


@pytest.mark.parametrize("count", [2, 3])
def test_hostile_slices_are_harmless(count):
    runs = [evil_run([EVIL]), evil_run(["x", EVIL]), evil_run(["x"])][:count]
    found = karat.compare(*runs, names=[f"{EVIL}{i}" for i in range(count)], by="topic")
    page, paper, html = found.to_markdown(), found.to_latex(), found._repr_html_()
    for shown in (repr(found), page, paper, html, found.table.write_csv()):
        assert not ACTIVE & set(shown)
    for shown in (page, html):
        assert "<script" not in outside_code(shown)
    assert "](http" not in outside_code(page)
    assert r"\input" not in paper
    table = outside_code(page.partition("| metric | `by topic`")[2].partition("\n\n")[0])
    assert {line.count("|") for line in table.splitlines()[1:]} == {10 if count == 2 else 7}


def test_hostile_text_in_files(tmp_path):
    paths = [tmp_path / "\x1b[31m\u202e.parquet", tmp_path / "b.parquet"]
    for path, retrieved in zip(paths, ([EVIL], ["x", EVIL]), strict=True):
        evil_run(retrieved).save(path)
    for form in ("table", "json", "csv", "markdown", "latex"):
        assert not ACTIVE & set(command(*paths, "--format", form))


def test_hostile_text_in_a_refusal(tmp_path):
    path = tmp_path / "\x1b[31m\u202e.parquet"
    evil_run([EVIL]).save(path)
    run().save(tmp_path / "b.parquet")
    assert not ACTIVE & set(command(path, tmp_path / "b.parquet", code=2))
