"""Files are written atomically: a failure between write and rename leaves the old file and no temporary one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import karat
from karat._internal.output import check_outputs, temporary_folder, write_text

KILLED = """
import os, pathlib, signal, sys
pathlib.Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)
from karat.cli import main
main(sys.argv[1:])
"""


def run_of(queries):
    return karat.evaluate(retrieved=[["a"]] * queries, gold=[["a"]] * queries, metrics="rr")


@pytest.fixture
def saved(tmp_path):
    """The file of a run with one query, in a folder of its own."""
    path = tmp_path / "run.parquet"
    run_of(1).save(path)
    return path


def fail_to_rename(monkeypatch, error):
    """Raise the error where the temporary file, written in full, would replace the target."""
    sizes = []

    def replace(self, target):
        sizes.append(self.stat().st_size)
        raise error

    monkeypatch.setattr(Path, "replace", replace)
    return sizes


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
def test_a_run_file_that_cannot_be_renamed(saved, monkeypatch, error):
    before = saved.read_bytes()
    sizes = fail_to_rename(monkeypatch, error)
    with pytest.raises((karat.KaratError, KeyboardInterrupt)):
        run_of(3).save(saved)
    assert [size > 0 for size in sizes] == [True]
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
    monkeypatch.undo()
    run_of(3).save(saved)
    assert len(karat.load(saved)) == 3


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
def test_a_text_file_that_cannot_be_renamed(tmp_path, monkeypatch, error):
    path = tmp_path / "report.html"
    path.write_text("old")
    fail_to_rename(monkeypatch, error)
    with pytest.raises((karat.KaratError, KeyboardInterrupt)):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_file_that_cannot_be_written_in_full(saved, monkeypatch):
    import polars as pl

    def half(self, file, *args, **options):
        file.write(b"PAR1 and no more")
        raise OSError(28, "No space left on device")

    before = saved.read_bytes()
    monkeypatch.setattr(pl.DataFrame, "write_parquet", half)
    with pytest.raises(karat.KaratError, match="No space left"):
        run_of(3).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_between_write_and_rename(saved, tmp_path):
    """A killed process cannot clean up, but the file that it was about to replace is intact."""
    samples = tmp_path / "samples.jsonl"
    samples.write_text('{"retrieved": ["a"], "gold": ["a"]}\n' * 3)
    before = saved.read_bytes()
    command = [sys.executable, "-c", KILLED, "eval", str(samples), "rr", "-o", str(saved)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -signal.SIGKILL
    assert saved.read_bytes() == before
    left = set(tmp_path.iterdir()) - {saved, samples}
    assert [path.name.startswith(".run.parquet.") for path in left] == [True]
    command = [sys.executable, "-m", "karat", *command[3:]]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert len(karat.load(saved)) == 3


def interrupted_at(number, work):
    """Raise Ctrl-C where Python would, as a function is called, at the call with this number; True if there is one."""
    left = number

    def trace(frame, event, arg):
        nonlocal left
        left -= 1
        if not left:
            sys.settrace(None)
            raise KeyboardInterrupt
        return None if left > 0 else trace  # only calls

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def in_a_folder():
    with temporary_folder() as folder:
        (folder / "file").touch()


@pytest.mark.parametrize("work", ["save", "check", "folder"])
def test_ctrl_c_at_any_call_leaves_no_temporary_file(tmp_path, monkeypatch, work):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "out"
    works = {
        "save": lambda: write_text(path, "new"),
        "check": lambda: check_outputs({"-o": path}),
        "folder": in_a_folder,
    }
    number = 0
    while True:
        number += 1
        path.write_text("old")
        if not interrupted_at(number, works[work]):
            break
        assert [file.name for file in tmp_path.iterdir()] == ["out"], f"call {number}"
        assert path.read_text() in {"old", "new"}
    assert number > 10
