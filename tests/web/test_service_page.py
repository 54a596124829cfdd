"""docs/service.md: its commands run, against a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text("utf-8")
BLOCKS = [block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if "curl" in block]
SAMPLES = [{"id": f"q{i}", "retrieved": ["x", "y"], "gold": ["xyz"[i % 3]]} for i in range(6)]

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("curl", "jq", "bash"))), reason="no curl or jq to run the commands with"
)


@pytest.fixture
def folder(tmp_path):
    for name, rows in (("samples", SAMPLES), ("branch", [one | {"retrieved": one["gold"]} for one in SAMPLES])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pl.DataFrame(SAMPLES).write_parquet(tmp_path / "samples.parquet")
    (tmp_path / "bm25.run").write_text("q1 Q0 a 1 2.0 bm25\nq1 Q0 b 2 1.0 bm25\n")
    (tmp_path / "qrels.txt").write_text("q1 0 b 1\n")
    (tmp_path / "body.json").write_text(json.dumps({"samples": SAMPLES}))
    (tmp_path / "karat").write_text(f'#!/bin/sh\nexec {sys.executable} -m karat "$@"\n')
    (tmp_path / "karat").chmod(0o755)
    return tmp_path


def run(server, folder, commands):
    commands = re.sub(r"(?m)^(pip|karat) .*$", "", commands).replace("http://127.0.0.1:5272", server.url)
    env = os.environ | {"KARAT": server.url, "NO_PROXY": "*", "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"title"' not in done.stdout, done.stdout
    return done.stdout


def test_the_commands_run(server, folder):
    printed = [run(server, folder, block) for block in BLOCKS]
    assert '"mean":{"recall@1":0.0,"recall@5":1.0,"rr":0.5}' in printed[0]
    assert "query_id,rr" in printed[1]
    assert '"ap":0.5' in printed[1]
    assert '"retrieved":[{"rank":1,"id":"x"' in printed[2]
    assert printed[3].rstrip().endswith("true")
    assert "branch" in (folder / "comment.md").read_text()
    assert "/v1/jobs/" in printed[4]
