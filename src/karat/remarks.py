"""What a reader of the means should know: what is not in them, and how the data were read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from karat.tables import clean, many

if TYPE_CHECKING:
    from karat.run import Run

_SHOWN = 3


def remarks(run: Run) -> list[str]:
    """One line for each thing to know."""
    p = run.provenance
    said = [*_failed(run), *_undefined(run), *_copies(run)]
    if p.missing:
        how = "counted as 0" if run.convention.missing == "zero" else "left out"
        said.append(f"{many(p.missing, 'query', 'queries')} of the gold missing from the run, {how}.")
    if p.extra:
        said.append(f"{many(p.extra, 'query', 'queries')} of the run without gold, ignored.")
    if p.skipped:
        said.append(f"{many(p.skipped, 'row', 'rows')} could not be read, skipped.")
    return [clean(remark) for remark in (*said, *p.notes)]


def _failed(run: Run) -> list[str]:
    """How many queries were judged, why the others were not, and what the means could be at worst and at best."""
    failed = run.failures
    if not failed:
        return []
    causes = Counter(failed.values()).most_common()
    why = "; ".join(f"{cause} ({count:,})" for cause, count in causes[:_SHOWN])
    more = f"; {len(causes) - _SHOWN} other causes" if len(causes) > _SHOWN else ""
    said = [f"Judged {len(run) - len(failed):,} of {len(run):,} queries; the others are in no mean: {why}{more}."]
    ends = [f"{name} {low:.3f} to {high:.3f}" for name, (low, high) in run.bounds().items()]
    return [*said, f"Were all of them 0, or all 1: {', '.join(ends)}."]


def _copies(run: Run) -> list[str]:
    """Copies are easily overlooked, and cost places."""
    c, hits = run.convention, run.all_hits
    queries = len(set(hits.query[hits.repeated].tolist()))
    if not queries or c.duplicates != "once" or c.per_rank:
        return []
    which = many(queries, "query has a relevant item", "queries have a relevant item")
    return [f"{which} more than once: a copy takes a place, and counts once."]


def _undefined(run: Run) -> list[str]:
    said = []
    judged = ~np.isin(np.arange(len(run)), list(run.all_hits.failed))
    without_gold = (run.all_hits.gold_count() == 0) & judged
    alike: dict[bytes, list[str]] = {}
    for name, values in run.scores.items():
        alike.setdefault((np.isnan(values) & judged).tobytes(), []).append(name)
    for rows, names in sorted(alike.items(), key=lambda pair: sum(pair[0])):
        if count := sum(rows):
            which = "" if len(alike) == 1 else f" for {', '.join(names)}"
            why = "no relevant gold, " if rows == without_gold.tobytes() else ""
            said.append(f"{many(count, 'query is', 'queries are')} undefined{which}: {why}not in the mean.")
    return said
