"""The output of an example program, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def output_of(name, folder):
    """The lines that an example prints; it may fail neither by its exit code nor by a message."""
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:karat", EXAMPLES / name],
        capture_output=True, text=True, check=False, cwd=folder, env=os.environ | {"COLUMNS": "80"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout.splitlines()
