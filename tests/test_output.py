"""Files are written atomically, and JSON holds every value that a result may have."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import karat
from karat._internal.output import atomic_path, write_text
from karat._internal.writers import plain, to_json
from karat.cli import cache
from karat.cli.demo import screen
from karat.compat import ragas

KILLED_BEFORE_RENAME = """
import os, sys
from pathlib import Path
import karat
Path.replace = lambda self, target: os._exit(9)
karat.evaluate(retrieved=[["a"]] * 3, gold=[["a"]] * 3, metrics="rr").save(sys.argv[1])
"""


class Pair(NamedTuple):
    name: str
    values: tuple[int, ...]


@dataclass
class Record:
    pair: Pair
    share: float


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "run.parquet"
    karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="rr").save(path)
    return path


def fail_halfway(place):
    place.write_text("half a")
    place.write_text(str(1 / 0))


def fail(*_):
    raise OSError(28, "No space left on device")


def test_failure_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_path(path) as place:
        fail_halfway(place)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_failure_before_the_rename_leaves_the_old_file(tmp_path, run_file, monkeypatch):
    before = run_file.read_bytes()
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(karat.RunFileError, match="No space left on device"):
        karat.evaluate(retrieved=[["a"]] * 3, gold=[["a"]] * 3, metrics="rr").save(run_file)
    with pytest.raises(karat.BadArgument, match=r"cannot write .*No space left"):
        write_text(tmp_path / "new.txt", "text")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == {run_file: before}


def test_process_killed_before_the_rename_leaves_the_old_file(run_file):
    code = subprocess.run([sys.executable, "-c", KILLED_BEFORE_RENAME, str(run_file)], check=False).returncode
    assert code == 9
    assert len(karat.load(run_file)) == 1


def test_links_and_devices(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    write_text(os.devnull, "nothing")
    assert not Path(os.devnull).is_file()


def test_plain_values():
    assert plain(
        {"r": Record(Pair("a", (1, 2)), 0.5), "n": np.float64(0.25), "a": np.array([[1], [2]]), "s": None}
    ) == {
        "r": {"pair": {"name": "a", "values": [1, 2]}, "share": 0.5},
        "n": 0.25,
        "a": [[1], [2]],
        "s": None,
    }


def test_json_of_odd_values():
    text = to_json(
        {"nan": float("nan"), "inf": np.inf, "half": "\ud800", "bell": "\a\u202e", "far": "\U000e0001", "é": True}
    )
    assert text.isprintable() is False  # indented
    assert all(char.isprintable() or char == "\n" for char in text)
    assert json.loads(text) == {
        "nan": None, "inf": None, "half": "\\ud800", "bell": "\a\u202e", "far": "\U000e0001", "é": True,
    }  # fmt: skip


WRITERS = {
    "a dataset of ragas": lambda path: ragas.EvaluationDataset.from_list([{"response": "new"}]).to_jsonl(path),
    "an export of a cache": lambda path: cache.exported(None, path),
    "the samples of the demo": lambda path: screen.write(path.parent, force=True),
    "a report": lambda path: karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="rr").report(path),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_every_file_is_written_atomically(tmp_path, monkeypatch, writer):
    path = tmp_path / "samples.jsonl"
    path.write_text("old")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises((OSError, karat.KaratError), match="No space left"):
        WRITERS[writer](path)
    assert [file.read_text() for file in tmp_path.glob("samples.*")] == ["old"]
    monkeypatch.undo()
    WRITERS[writer](path)
    assert path.read_text() != "old"


def test_no_other_code_opens_a_file_to_write():
    """Only what `atomic_path` yields, called `place`."""
    source = Path(karat.__file__).parent
    direct = re.compile(r"\.write_(text|bytes)\(|\bopen\([^)]*[\"'][wx]b?[\"']")
    found = {
        f"{path.relative_to(source)}: {line.strip()}"
        for path in source.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if direct.search(line) and "place.open(" not in line and path.name != "output.py" and "atomic_path" not in line
    }
    assert not found
