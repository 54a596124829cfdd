"""Standard streams that are closed, full, or read no further: files are written, exit codes are right."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import karat
from karat._internal.output import check_outputs, text_file

KARAT = f"{sys.executable} -m karat"
PASSED, FAILED = "recall@1 >= 0.5", "recall@1 < 0.5"
FULL = "cannot write the output: No space left on device"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("samples.jsonl").write_text('{"id": "q", "query": "who?", "retrieved": ["a"], "gold": ["a"]}\n')
    karat.evaluate("samples.jsonl", "recall@1").save("run.parquet")
    return tmp_path


def shell(line, **environment):
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {KARAT} {line}"],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("streams", "rule", "code"),
    [
        ("2>&-", FAILED, 1), ("2>/dev/full", FAILED, 1), ("2>/dev/full", PASSED, 0), ("2>/dev/full", "recall@7 > 0", 2),
        (">&- 2>&- <&-", PASSED, 0), (">/dev/full", PASSED, 2), (">/dev/full 2>/dev/full", FAILED, 2),
    ],
)  # fmt: skip
def test_a_gate_writes_its_files(folder, streams, rule, code):
    done = shell(f"gate run.parquet '{rule}' --markdown m.md --junit j.xml {streams}", GITHUB_ACTIONS="true")
    assert done.returncode == code
    verdict = "could not decide" if "@7" in rule else "passed" if rule is PASSED else "failed"
    assert f"karat gate {verdict}" in Path("m.md").read_text("utf-8")
    assert '<testsuite name="karat gate"' in Path("j.xml").read_text("utf-8")


@pytest.mark.parametrize(
    ("streams", "code"), [("2>/dev/full", 0), (">&-", 0), ("| true", 0), (">/dev/full 2>/dev/full", 2)]
)
def test_a_run_is_saved(folder, streams, code):
    assert shell(f"eval samples.jsonl -o new.parquet {streams}").returncode == code
    assert len(karat.load("new.parquet")) == 1


@pytest.mark.parametrize("line", ["gat run.parquet", "gate", "eval nothing.jsonl", ""])
def test_an_error_that_cannot_be_printed_has_its_exit_code(folder, line):
    assert shell(f"{line} 2>/dev/full").returncode == 2


def test_a_pipe_that_is_closed_does_not_change_the_verdict(folder):
    ids = [f"{n} {'x' * 90}" for n in range(1500)]  # more than a pipe holds
    Path("ids").write_text("\n".join(ids))
    row = '{{"id": "{}", "retrieved": ["b"], "gold": ["a"]}}\n'
    Path("many.jsonl").write_text("".join(map(row.format, ids)))
    karat.evaluate("many.jsonl", "recall@1").save("many.parquet")
    line = f"gate many.parquet '{PASSED}' --must-pass ids --baseline many.parquet --format json"
    for outputs in ("--junit j.xml", "--junit j.xml --markdown /dev/stdout"):
        done = shell(f"{line} {outputs} | true")
        assert (done.returncode, done.stderr) == (1, "")
        assert "could not decide" not in Path("j.xml").read_text("utf-8")


def test_a_page_on_standard_output_ends_quietly(folder):
    done = shell("report run.parquet -o /dev/stdout | true")
    assert (done.returncode, done.stderr) == (0, "")
    done = shell("report run.parquet -o /dev/stdout")
    assert done.stdout.rstrip().endswith("</html>")
    assert done.stderr == "Saved to /dev/stdout\n"
    done = shell("report run.parquet -o /dev/stdout > /dev/full")
    assert (done.returncode, done.stderr) == (2, "karat: cannot write /dev/stdout: No space left on device\n")


def write_lines(path, lines):
    with text_file(path) as write:
        for line in lines:
            write(line)


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("no number"), BrokenPipeError()])
def test_an_error_of_the_writer_is_not_one_of_the_file(tmp_path, error):
    def lines():
        yield "half"
        raise error

    with pytest.raises(type(error)) as raised:
        write_lines(tmp_path / "out", lines())
    assert raised.value is error
    assert not list(tmp_path.iterdir())


def test_an_error_of_the_file_names_it():
    for text in ("x", "x" * 100_000):
        with pytest.raises(karat.BadArgument, match="cannot write /dev/full: No space"):
            write_lines("/dev/full", [text])


def test_the_demo_writes_its_files_before_it_prints(folder):
    assert shell("demo -o shown | true").returncode == 0
    done = shell("demo -o full > /dev/full")
    assert (done.returncode, done.stderr) == (2, f"karat: {FULL}\n")
    assert len(list(Path("shown").iterdir())) == len(list(Path("full").iterdir())) == 5


def test_standard_input_that_is_closed(folder):
    done = shell("eval - <&-")
    assert done.returncode == 2
    assert done.stderr.startswith("karat: standard input: cannot be read: it is closed")


def test_a_terminal_is_input_and_output():
    _, terminal = pty.openpty()
    before = os.dup(0)
    try:
        os.dup2(terminal, 0)
        check_outputs({"-o": os.ttyname(terminal)}, ["-"])
    finally:
        os.dup2(before, 0)
