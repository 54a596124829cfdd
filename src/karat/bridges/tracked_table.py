"""The table of queries under flat names, separate because several trackers of experiments take it."""

from __future__ import annotations

from typing import Any

from karat.metrics.flat_names import flat_name
from karat.run import Run


def tracked_facts(run: Run) -> dict[str, str]:
    """The facts that make numbers comparable: the version of karat, the judge and the convention."""
    known = run.provenance
    return {"version": known.karat, "judge": known.judge, "convention": known.convention}


def tracked_table(run: Run) -> dict[str, list[Any]]:
    """The columns of `run.to_polars(fields=True)`, with flat names of metrics; None is undefined."""
    table = run.to_polars(fields=True)
    return {flat_name(name) if name in run.columns else name: table[name].to_list() for name in table.columns}
