"""A run as one HTML page: curves, slices, causes, and every query opened into its texts."""

from __future__ import annotations

import os
from pathlib import Path

from karat.errors import BadArgument
from karat.run import Run


def report(
    run: Run,
    path: str | os.PathLike[str],
    *,
    baseline: Run | str | os.PathLike[str] | None = None,
    allow: bool = False,
) -> None:
    """Write the page.

    A baseline of another task is refused, as by `karat.compare`; with `allow` the queries that both have are compared.
    """
    from karat.comparison import compare
    from karat.diagnosis import diagnose
    from karat.outfile import write_text
    from karat.report.html.page import page

    if Path(path).suffix == ".parquet":
        raise BadArgument("a report is an HTML page, and would replace a run", got=str(path), hint="report.html")
    comparison = None
    if baseline is not None:
        name = "baseline" if isinstance(baseline, Run) else Path(baseline).stem
        comparison = compare(baseline, run, names=(name, "this run"), allow=allow)
    write_text(path, page(run, diagnose(run), comparison))
