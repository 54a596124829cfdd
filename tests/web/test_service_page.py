"""docs/service.md: its commands run, one after another, against a real server; its step for CI fails if it should."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.served import served

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text("utf-8")
BLOCKS = [block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if "new-key" not in block]
(GATE,) = (block for block in BLOCKS if "/v1/gate" in block)
ROWS = [{"id": f"q{i}", "retrieved": ["x", "y"], "gold": ["xy"[i % 2]]} for i in range(30)]
WORSE = [one | {"retrieved": ["z"]} for one in ROWS]
NOWHERE = "http://127.0.0.1:9"

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("curl", "jq", "bash"))), reason="no curl or jq to run the commands with"
)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A server with a store of its own."""
    with served("--store", tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bin").mkdir()
    for name, command in (("karat", f"{sys.executable} -m karat"), ("python", sys.executable)):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def bash(commands, folder, url, *options):
    env = os.environ | {"KARAT": url, "NO_PROXY": "*", "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", *options, "-c", commands], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_the_commands_run(own, folder):
    commands = "\necho '=== next'\n".join(BLOCKS).replace("http://127.0.0.1:5272", own.url)
    commands = re.sub(r"(?m)^(pip|karat serve) .*$", "", commands)
    done = bash(commands, folder, "unset", "-euo", "pipefail")
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"title"' not in done.stdout, done.stdout
    first, evaluated, stored, _, gate, job = done.stdout.split("=== next\n")
    assert '"mean":{"recall@1":0.0,"recall@5":1.0,"rr":0.5}' in first
    assert evaluated.count('"recall@5":0.80') == 2
    assert "query_id,rr\nq01," in evaluated
    assert '"ap":0.5' in evaluated
    assert '"retrieved":[{"rank":1,"id":"password-requirements"' in stored
    assert gate.rstrip().endswith("true")
    assert "passed: recall@5 >= 0.50: " in gate
    assert "branch" in (folder / "karat-demo" / "comment.md").read_text()
    assert "/v1/jobs/" in job


@pytest.fixture(scope="module")
def main_run(own):
    assert own.ask("/v1/evaluate", {"samples": ROWS, "metrics": "recall@5 rr", "store": "main"}).status == 200


def written(folder, rows):
    (folder / "branch.jsonl").write_text("\n".join(map(json.dumps, rows)))


def test_a_good_branch_passes_the_step(own, main_run, folder):
    written(folder, ROWS)
    done = bash(GATE, folder, own.url)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "true")


def test_a_worse_branch_fails_the_step_and_the_checks_are_shown(own, main_run, folder):
    written(folder, WORSE)
    done = bash(GATE, folder, own.url)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "false")
    assert "failed: recall@5 >= 0.50: " in done.stdout


@pytest.mark.parametrize("last", [6, 5, 4, 3, 2, 1])
def test_without_a_server_the_step_fails(folder, last):
    """All of it, and its last commands alone."""
    written(folder, ROWS)
    done = bash("\n".join(GATE.rstrip().splitlines()[-last:]), folder, NOWHERE)
    assert done.returncode != 0
    assert "true" not in done.stdout


def test_with_an_unknown_run_the_step_fails_and_says_why(own, main_run, folder):
    written(folder, ROWS)
    for name in ("compare", "gate"):
        (command,) = (line for line in GATE.splitlines() if f"/v1/{name}" in line)
        done = bash(command.replace('"main"', '"nothing"'), folder, own.url)
        assert done.returncode == 1
        assert "there is no such run" in done.stdout
