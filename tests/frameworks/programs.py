"""Programs that users copy: the examples, run as they run them, and the code of the documentation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def output_of(name, folder):
    """The lines that an example prints."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name],
        capture_output=True, text=True, check=False, cwd=folder, env=os.environ | {"COLUMNS": "80"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout.splitlines()


def run_page(name, framework, **names):
    """Run the code of a page that needs the framework, with what the page takes for granted; returns its names."""
    blocks = re.findall(rf"```python {framework}\n(.*?)```", (ROOT / "docs" / name).read_text("utf-8"), re.DOTALL)
    assert blocks, f"{name} has no code for {framework}"
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    return names
