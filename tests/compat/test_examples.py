"""The examples for those who come from another library run as they stand, and print something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("from_*.py"))


def printed_by(example, folder):
    command = [sys.executable, "-W", "error", example]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    assert len(printed_by(example, tmp_path).splitlines()) > 1
    assert list(tmp_path.iterdir()) == []


def test_what_the_one_from_ragas_prints(tmp_path):
    example = next(path for path in EXAMPLES if path.stem == "from_ragas")
    printed = printed_by(example, tmp_path)
    assert "0.25 of the ids" in printed
    assert "'id_based_context_recall': 0.5000" in printed
    assert "'id_based_context_precision': 0.5000 (1 of 3 undefined or failed)" in printed
