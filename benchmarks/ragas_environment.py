"""The environment of ragas, in which karat is installed, too: both are timed in one process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from benchmarks.outcome import Outcome, read_outcomes

_PYTHON = Path(__file__).parents[1] / ".oracles" / "ragas" / "bin" / "python"
_QUIET = {"RAGAS_DO_NOT_TRACK": "true", "LANGSMITH_TRACING": "false"}  # no telemetry


def run_with_ragas(module: str) -> list[Outcome]:
    """The outcomes that a module of this package prints there if its argument is `here`."""
    if not _PYTHON.exists():
        raise FileNotFoundError(f"{_PYTHON} does not exist: `make bench` installs ragas there")
    command = [str(_PYTHON), "-m", f"benchmarks.{module}", "here"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | _QUIET)
    return read_outcomes(done.stdout)
