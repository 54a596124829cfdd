"""The calls of ragas programs and their outcomes, stored in ragas_outcomes.json for the documentation.

`PYTHONPATH=src:tests python tests/oracles/ragas_results.py` makes the calls and stores the outcomes.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PYTHON = ROOT / ".oracles" / "ragas" / "bin" / "python"
STORED = FOLDER / "ragas_outcomes.json"
DIFFERENCES = FOLDER / "ragas_differences.json"
QUIET = {"RAGAS_DO_NOT_TRACK": "true", "LANGSMITH_TRACING": "false"}  # nothing is sent to anybody


def made():
    """Every call, made now: the verdict, and the outcomes in ragas and in karat."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    done = subprocess.run(
        [PYTHON, "-W", "ignore", FOLDER / "in_ragas_and_karat.py"],
        capture_output=True, text=True, check=False, env=os.environ | QUIET | {"PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def short(outcome):
    """A result, or the class of an error."""
    return outcome["class"] if "class" in outcome else json.dumps(outcome["result"], ensure_ascii=False)


def stored_form(calls):
    """What is stored: the verdict of each call, and both outcomes where they differ."""
    both = {name: [short(one[library]) for library in ("ragas", "karat")] for name, one in calls.items()}
    return {name: [one["verdict"], *(() if one["verdict"] == "same" else both[name])] for name, one in calls.items()}


def stored():
    return json.loads(STORED.read_text("utf-8"))


def differences():
    """The reasons of all differences, each with its calls."""
    return json.loads(DIFFERENCES.read_text("utf-8"))


if __name__ == "__main__":
    lines = [f" {json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in stored_form(made()).items()]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
