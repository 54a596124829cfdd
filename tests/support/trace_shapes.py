"""Samples of traces without what differs from one recording to the next: ids, times and latencies.

The tests of frameworks record traces with each tool's own instrumentation, and compare them with the fixtures. Such a
file, run as a program, writes its fixtures anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "traces"
_VARYING = {"id", "trace_id", "span_id", "span_ids", "start_time", "latency"}


def shape(samples):
    """The samples in the order of their queries, without what varies."""
    rows = [{name: value for name, value in row.items() if name not in _VARYING} for row in samples]
    for row in rows:
        if "steps" in row:
            row["steps"] = [{k: v for k, v in step.items() if k not in _VARYING} for step in row["steps"]]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def same_shape(path, name):
    """True if a trace and the fixture of this name give the same samples."""
    import karat

    return shape(karat.read_traces(path)) == shape(karat.read_traces(FIXTURES / name))


def fixture(name):
    """The path of a fixture that is written anew."""
    path = FIXTURES / name
    path.unlink(missing_ok=True)
    return path


def clean():
    """Remove paths of the machine from all fixtures that are texts."""
    for path in [*FIXTURES.glob("*.json*")]:
        path.write_text(re.sub(r"(?:\\*/[\w.@+-]+){3,}", "…", path.read_text()))
