"""The tests of each framework, in an environment that has it: `make framework-langchain` installs one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from oracles.test_peers import QUIET

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = sorted(path.relative_to(HERE) for path in HERE.glob("in_*/test_*.py"))
"""The tests of the frameworks, in one folder each."""


@pytest.mark.parametrize("file", FILES, ids=str)
def test_framework(file, tmp_path):
    name = file.parent.name.removeprefix("in_")
    home = Path(os.environ.get("KARAT_FRAMEWORKS", ROOT / ".frameworks")) / name
    if not (home / "ready.stamp").exists():
        pytest.skip(f"needs {name}: make framework-{name}")
    environment = {**os.environ, **QUIET, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}", "HOME": str(tmp_path)}
    environment["KARAT_IN_FRAMEWORK"] = name
    environment |= dict.fromkeys(["NO_PROXY", "no_proxy"], "127.0.0.1,localhost")
    options = [
        "-q",
        "-c",
        os.devnull,
        "--rootdir",
        HERE,
        "--confcutdir",
        HERE,
        "--import-mode=importlib",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [home / "bin" / "python", "-m", "pytest", *options, "--basetemp", tmp_path / "files", HERE / file],
        capture_output=True, text=True, env=environment, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout, "a test of a framework that is installed was skipped"
