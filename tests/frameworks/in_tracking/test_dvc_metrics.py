"""The numbers of a run in DVC: a real project without Git, whose metrics the program `dvc` reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = [
    {"id": "q1", "retrieved": ["x", "a"], "gold": ["a", "b"], "topic": "x"},
    {"id": "q2", "retrieved": ["c"], "gold": ["c"], "topic": "y"},
]
STAGE = """\
stages:
  evaluate:
    cmd: {python} -m karat eval samples.jsonl "recall@5 precision(rel=2)@5 f(beta=0.5)@5" -o run.parquet --by topic
      --metrics-file metrics.json
    deps: [samples.jsonl]
    outs: [run.parquet]
    metrics:
      - metrics.json:
          cache: false
"""


def dvc(*arguments):
    command = [Path(sys.executable).with_name("dvc"), *arguments]
    environment = os.environ | {"DVC_NO_ANALYTICS": "true"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dvc("init", "--no-scm", "--quiet")
    Path("samples.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    Path("dvc.yaml").write_text(STAGE.format(python=sys.executable))
    return tmp_path


def test_dvc_reads_the_metrics(project):
    dvc("repro", "--quiet")
    shown = json.loads(dvc("metrics", "show", "--json"))[""]["data"]["metrics.json"]["data"]
    assert shown == json.loads(Path("metrics.json").read_text())
    assert shown["recall_at_5"] == 0.75
    assert shown["f__beta_0_5_at_5"] > 0
    assert "precision__rel_2_at_5" not in shown, "undefined for every query"
    assert shown["by"]["topic"]["x"]["recall_at_5"] == 0.5
    assert "recall_at_5" in dvc("metrics", "show", "--md")
