"""No file of the current folder is executed or imported unless it is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

MODULES = [
    "argparse", "csv", "dataclasses", "html", "io", "json", "karat_trap", "logging", "msgspec", "multiprocessing",
    "numpy", "openai", "pickle", "pkgutil", "polars", "re", "runpy", "shutil", "signal", "sitecustomize", "socket",
    "sqlite3", "tempfile", "typing", "unicodedata", "usercustomize", "yaml",
]  # fmt: skip
METRIC = "import karat\n@karat.metric\ndef some(hits, k, c):\n    return hits.found(k, c) / hits.gold_count()\n"


@pytest.fixture
def traps(tmp_path):
    """A folder with samples, and files named as modules that karat imports; each leaves a trace if it is executed."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'a').write('{name} ')\n")
    rows = [{"query": "a", "retrieved": [f"text {i}", "other"], "gold": [f"text {i}"]} for i in range(40)]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def run(folder, *arguments, code=0, program=("-m", "karat"), **env):
    start = [sys.executable, *program, *map(str, arguments)]
    done = subprocess.run(start, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **env})
    assert done.returncode == code, done.stderr
    assert not (folder / "executed").exists(), (folder / "executed").read_text()
    return done.stdout + done.stderr


def test_commands(traps):
    run(traps, "eval", "samples.jsonl", "recall@1", "--judge", "contains", "-o", "run.parquet")
    run(traps, "report", "run.parquet")
    run(traps, "gate", "run.parquet", "recall@1 >= 0", "--format", "json")
    run(traps, "cache", "info", "--cache", "cache.sqlite")


def test_worker_processes(traps):
    run(traps, "eval", "samples.jsonl", "recall@1", "--judge", "contains", "--jobs", 2)
    script = (
        "import sys; sys.path.remove('')\n"
        "import karat\n"
        "if __name__ == '__main__': karat.evaluate('samples.jsonl', 'rr', judge='contains', jobs=2)"
    )
    run(traps, program=("-c", script))


def test_only_the_named_file_is_imported(traps):
    (traps / "mine.py").write_text(METRIC)
    (traps / "pack").mkdir()
    (traps / "pack/mine.py").write_text(METRIC)
    for name in ("mine.py", "./mine.py", traps / "mine.py", "pack/mine.py"):
        assert "some@1" in run(traps, "eval", "samples.jsonl", "some@1", "--judge", "exact", "--import", name)
    assert "try  ./mine.py" in run(traps, "metrics", "--import", "mine", code=2)
    assert "try  ./pack/mine.py" in run(traps, "metrics", "--import", "pack.mine", code=2)
    assert "cannot import nothing" in run(traps, "metrics", "--import", "nothing", code=2)
    run(traps, "metrics", "--import", "karat_trap", code=2)
    run(traps, "metrics", "--import", "numpy")


def test_an_installed_module_is_imported(traps, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    (folder / "their_metrics.py").write_text(METRIC)
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(folder))))
    assert "some" in run(traps, "metrics", "some", "--import", "their_metrics", PYTHONPATH=path)
