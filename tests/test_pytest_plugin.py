"""The pytest plugin, driven by real runs of pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import karat
from karat.pytest_plugin import run_path

pytest_plugins = "pytester"

SAMPLES = """
import pytest

def samples(found, of=10):
    return [
        {"id": f"q{i}", "query": f"what is {i}?", "retrieved": ["g"] if i < found else ["x"], "gold": ["g"]}
        for i in range(of)
    ]
"""
TWO = (
    SAMPLES
    + """
@pytest.mark.parametrize("name", ["a/b", "a-b"])
def test_each(karat, name):
    karat.evaluate(samples(8), "recall@5 rr").assert_that("recall@5 >= 0.8", "rr no-drop")

def test_twice(karat):
    karat.evaluate(samples(10), "recall@5")
    karat.evaluate(samples(9), "recall@5")
    karat.evaluate(samples(8), "recall@5", name="bm25")
"""
)


@pytest.fixture(autouse=True, scope="module")
def loaded(tmp_path_factory):
    """Load what karat loads on demand: pytester unloads what only its runs have loaded, and NumPy loads only once."""
    path = tmp_path_factory.mktemp("loaded") / "run.parquet"
    karat.evaluate([{"retrieved": ["g"], "gold": ["g"]}], "recall@5").save(path)
    assert karat.gate(path, "recall@5 >= 1", "recall@5 no-drop 0.1", baseline=path).passed


@pytest.fixture
def tests(pytester):
    def write(code):
        pytester.makepyfile(test_rag=code)
        return pytester

    return write


def test_a_run_that_passes(tests):
    code = (
        SAMPLES
        + """
def test_rag(karat):
    run = karat.evaluate(samples(8))
    run.assert_that("recall@5 >= 0.8", "ndcg@10 >= 0.5")
    assert run.mean["recall@5"] == 0.8
    assert len(run) == 10
    assert isinstance(run, karat.Run)  # the rest of karat is there, too
    run.save("run.parquet")
    assert karat.load("run.parquet").mean == run.mean
    assert run.take([0]).mean["recall@5"] == 1
"""
    )
    tests(code).runpytest("-W", "error").assert_outcomes(passed=1)


def test_a_failure_prints_the_table_and_the_three_worst(tests):
    code = (
        SAMPLES
        + """
def test_rag(karat):
    karat.evaluate(samples(5), "recall@5 rr").assert_that("recall@5 >= 0.8", "rr >= 0.1")
"""
    )
    result = tests(code).runpytest()
    result.assert_outcomes(failed=1)
    out = result.stdout.str()
    for said in (
        'assert_that("recall@5 >= 0.8", "rr >= 0.1")',
        "AssertionError: 1 passed, 0 undecided, 1 failed of 2 checks",
        "FAIL  recall@5 >= 0.80  0.500 [",
        "PASS  rr >= 0.10",
        "· 10 queries · judge: ids",
        "Worst queries",
        'q5  "what is 5?"  recall@5 0.000  g: not retrieved',
        'q7  "what is 7?"',
    ):
        assert said in out
    assert "q8" not in out
    assert "gatekeeping.py" not in out  # the traceback ends where the user's code does


def test_a_rule_that_cannot_be_decided(tests):
    code = (
        SAMPLES
        + """
def test_missing(karat):
    karat.evaluate(samples(5), "recall@5").assert_that("rr >= 0.8")

def test_drop(karat):
    karat.evaluate(samples(5), "recall@5").assert_that("recall@5 >= 0", "recall@5 no-drop")
"""
    )
    result = tests(code).runpytest()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["*UnknownName: no metric in this run*", "*needs a baseline*--karat-baseline was not given*"]
    )
    result = tests(code).runpytest("--karat-baseline", "base")
    result.stdout.fnmatch_lines(["*needs a baseline, and there is no *test_drop.parquet*"])


def test_baselines_are_written_and_held_against(tests):
    code = (
        SAMPLES
        + """
def test_rag(karat):
    karat.evaluate(samples(FOUND, 40), "recall@5").assert_that("recall@5 no-drop", must_pass=["q0"])
"""
    )
    result = tests(code.replace("FOUND", "40")).runpytest("--karat-baseline", "base", "--karat-update-baseline")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["karat: 1 baseline written to *base"])
    tests(code.replace("FOUND", "38")).runpytest("--karat-baseline", "base").assert_outcomes(passed=1)
    result = tests(code.replace("FOUND", "20")).runpytest("--karat-baseline", "base")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*FAIL  recall@5 no-drop  1.000 → 0.500*", "*q20  *1.000 → 0.000  g: 1 → not retrieved"]
    )
    assert karat.load("base/test_rag/test_rag.parquet").mean == {"recall@5": 1.0}
    one = tests(code.replace("FOUND", "20")).runpytest("--karat-baseline", "base/test_rag/test_rag.parquet")
    one.assert_outcomes(failed=1)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_each_run_has_a_file_of_its_own(tests, workers):
    tester = tests(TWO)
    options = ("--karat-save", "runs", "--karat-baseline", "base", *workers)
    result = tester.runpytest_subprocess(*options, "--karat-update-baseline")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["karat: 5 runs written to *runs", "karat: 5 baselines written to *base"])
    files = sorted(
        str(path.relative_to(tester.path / "runs")) for path in Path(tester.path / "runs").rglob("*.parquet")
    )
    assert files == [
        "test_rag/test_each[a%2Fb].parquet",
        "test_rag/test_each[a-b].parquet",
        "test_rag/test_twice.parquet",
        "test_rag/test_twice~2.parquet",
        "test_rag/test_twice~bm25.parquet",
    ]
    assert karat.load(tester.path / "runs" / files[4]).mean == {"recall@5": 0.8}
    tester.runpytest_subprocess(*options).assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--karat-update-baseline"], "needs --karat-baseline DIR"),
        (["--karat-update-baseline", "--karat-baseline", "main.parquet"], "needs --karat-baseline DIR"),
        (["--karat-save", "test_rag.py"], "expected a folder"),
    ],
)
def test_options_that_do_not_fit(tests, options, said):
    result = tests(SAMPLES).runpytest(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}*"])


def test_different_tests_have_different_files():
    names = [
        "t.py::a",
        "t.py::a[1]",
        "t.py::A::a",
        "t.py::a[A::a]",
        "t.py::a[..]",
        "u/t.py::a",
        "t.py::a[%2F]",
        "t.py::a[/]",
    ]
    assert len({run_path(name, None) for name in names}) == len(names)
    assert run_path("../x.py::t[../../y]", None) == Path("%2E%2E/x/t[..%2F..%2Fy].parquet")
    assert run_path("t.py::t@group", None) == run_path("t.py::t", None)
    long = [run_path(f"t.py::t[{'x' * 300}{end}]", None) for end in "ab"]
    assert len(set(long)) == 2
    assert len(long[0].name) < 200
    assert run_path("t.py::t[\x00é\n]", "b/c") == Path("t/t[%00%C3%A9%0A]~b%2Fc.parquet")


def test_a_start_of_pytest_loads_nothing_heavy(tmp_path):
    code = (
        "import sys, pytest; pytest.main(['--help']);"
        "print('loaded', *{'numpy', 'polars', 'msgspec', 'karat.run.run', 'karat.pytest_plugin'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "--karat-update-baseline" in done.stdout
    assert done.stdout.endswith("\nloaded karat.pytest_plugin\n")
