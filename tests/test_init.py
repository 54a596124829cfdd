"""`karat init`: what it writes runs, and it never overwrites."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import karat

KARAT = str(Path(sys.executable).with_name("karat"))


def run(*command, cwd, code=0):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def evaluated(project):
    return run(sys.executable, "retrieval/evaluate.py", cwd=project)


def gated(project, code=0):
    """The command of the workflow, as it stands there."""
    text = (project / ".github/workflows/retrieval.yml").read_text("utf-8")
    command = re.search(r"run: \|\n((?: {10}.*\n)+)", text)[1].replace("karat", KARAT, 1)
    env = f'GITHUB_STEP_SUMMARY="{project}/summary.md"; '
    done = subprocess.run(["sh", "-c", env + command], capture_output=True, text=True, check=False, cwd=project)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_what_it_writes_runs(tmp_path):
    out = run(KARAT, "init", cwd=tmp_path)
    for name in ("golden.jsonl", "evaluate.py", "must-pass.txt"):
        assert f"wrote  retrieval/{name}" in out
    assert "Next\n  python retrieval/evaluate.py" in out
    assert "recall@5" in evaluated(tmp_path)
    assert "There is no baseline yet: retrieval/baseline.parquet does not exist." in gated(tmp_path)
    shutil.copy(tmp_path / "retrieval/run.parquet", tmp_path / "retrieval/baseline.parquet")
    assert "exit 0" in gated(tmp_path)
    assert "karat gate passed" in (tmp_path / "summary.md").read_text("utf-8")
    kept = karat.load(tmp_path / "retrieval/run.parquet")
    assert len(kept) == 8
    assert 0.7 < kept.mean["recall@5"] < 1  # something is left to be found


def test_a_worse_retriever_is_stopped(tmp_path):
    run(KARAT, "init", cwd=tmp_path)
    evaluated(tmp_path)
    (tmp_path / "retrieval/run.parquet").rename(tmp_path / "retrieval/baseline.parquet")
    script = tmp_path / "retrieval/evaluate.py"
    script.write_text(script.read_text("utf-8").replace("if shared", "if not shared"), "utf-8")
    evaluated(tmp_path)
    out = gated(tmp_path, code=1)
    assert re.search("FAIL +must-pass, password", out)
    assert re.search("FAIL +recall@5 no-drop", out)


def test_the_next_steps_are_commands_that_run(tmp_path):
    out = run(KARAT, "init", "my project", cwd=tmp_path)
    assert (tmp_path / "my project/retrieval/golden.jsonl").is_file()
    steps = re.findall(r"^  (python|cp|\S*karat) (.*?)(?:  .*)?$", out, re.MULTILINE)
    assert [step[0].rpartition("/")[2] for step in steps] == ["python", "cp", "karat"]
    for program, arguments in steps:
        command = {"python": sys.executable, "karat": KARAT}.get(program, program)
        done = subprocess.run(f"{command} {arguments}", shell=True, cwd=tmp_path / "my project", check=False)
        assert done.returncode == 0, arguments


def test_it_never_overwrites(tmp_path):
    (tmp_path / "retrieval").mkdir()
    (tmp_path / "retrieval/golden.jsonl").write_text("mine")
    out = run(KARAT, "init", cwd=tmp_path)
    assert "kept   retrieval/golden.jsonl  (exists already)" in out
    assert (tmp_path / "retrieval/golden.jsonl").read_text() == "mine"
    assert (tmp_path / "retrieval/evaluate.py").is_file()
    (tmp_path / "retrieval/evaluate.py").write_text("mine too")
    assert run(KARAT, "init", cwd=tmp_path).count("kept") == 4
    assert (tmp_path / "retrieval/evaluate.py").read_text() == "mine too"


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "retrieval").write_text("a file")
    assert "cannot write" in run(KARAT, "init", cwd=tmp_path, code=2)
    assert (tmp_path / "retrieval").read_text() == "a file"


def test_the_workflow_is_yaml(tmp_path):
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the workflow: pip install pyyaml")
    run(KARAT, "init", cwd=tmp_path)
    read = yaml.safe_load((tmp_path / ".github/workflows/retrieval.yml").read_text("utf-8"))
    assert read["jobs"]["gate"]["steps"][0] == {"uses": "actions/checkout@v4"}
