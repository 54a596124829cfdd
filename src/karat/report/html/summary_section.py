"""The section on summaries beyond the mean: a table of them, and their differences from the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from karat._internal.display import number, p_value
from karat.analysis.compare import Comparison, compare
from karat.report import summaries
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.scores import difference, table
from karat.run import Run
from karat.run.summaries import read_statistics


def summary_section(run: Run, wanted: str | Sequence[str], comparison: Comparison | None = None) -> Element | None:
    """The section; None if no summary was requested."""
    names = [str(statistic) for statistic in read_statistics(wanted)]
    if not names:
        return None
    found = summaries.summaries(run, names)
    rows: list[list[Child]] = [[name, *map(data, cells)] for name, *cells in summaries.rows(run, found)]
    header = [data(cell) for cell in summaries.header(found)]
    changes = [] if comparison is None else [_changes(comparison, name) for name in names if name != "mean"]
    return h(
        "section",
        h("h2", "Summaries"),
        table("Every metric", header, rows, text=range(0, len(header), 2)),
        *(h("p.note", data(remark)) for remark in summaries.remarks(run, names)),
        *(part for parts in changes for part in parts),
        id="summaries",
    )


def _changes(comparison: Comparison, name: str) -> list[Element]:
    """One summary of both runs, over the queries that both have, and the sentences on its test."""
    found = compare(
        *comparison.runs[:2],
        names=comparison.names[:2],
        metrics=list(comparison.scores[0]),
        allow_mismatch=True,  # the comparison of the means has checked and reported it
        summary=name,
    )
    rows: list[list[Child]] = [
        [
            row.metric,
            *map(number, row.means),
            *difference(row),
            p_value(row.p),
            f"{row.won:,} / {row.tied:,} / {row.lost:,}",
            data(found.winner(row) or row.verdict),
        ]
        for row in found.rows
    ]
    before, after = map(data, found.names)
    p = "p (Holm)" if len(rows) > 1 else "p"
    header: list[Child] = ["metric", before, after, "difference", "95 % interval", p, "won / tied / lost", "winner"]
    notes = [h("p.note", data(remark)) for remark in summaries.compared_remarks(found)[1:]]
    return [table(f"{name} of both runs", header, rows, text=(0, 7)), *notes]
