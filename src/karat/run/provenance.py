"""Where a run came from: enough to tell whether two runs may be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from karat._internal.display import clean, many
from karat.hits import Gold

if TYPE_CHECKING:
    from karat.run.run import Run


class Provenance(NamedTuple):
    """How a run was made. No time and no machine: the same input gives the same bytes."""

    karat: str
    metrics: tuple[str, ...]
    judge: str
    judge_reason: str
    """Why the judge was taken, if karat chose it."""
    convention: str
    source: str
    notes: tuple[str, ...]
    """What a reader should know: columns recognised, defaults taken, ties that rounding made."""
    missing: int
    """Gold queries that were not in the run; they score as the convention says."""
    extra: int
    """Queries of the run without an entry in the gold; they were ignored."""
    skipped: int
    """Rows that could not be read and were left out on request."""
    tokens: str = ""
    """Who counted the tokens, if there is a budget of them."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self._asdict().items()}


def gold_digest(ids: Sequence[str], gold: Gold) -> str:
    """A digest of queries and gold that does not depend on the order in which either stands."""
    each = []
    bounds = gold.start.tolist()
    grades = gold.grade.tolist()
    for row, query in enumerate(ids):
        items = range(bounds[row], bounds[row + 1])
        parts = sorted(f"{len(gold.label[i])}:{gold.label[i]}={grades[i]!r}" for i in items)
        text = f"{len(query)}:{query}>" + ";".join(parts)
        each.append(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    return blake2b(b"".join(sorted(each)), digest_size=16).hexdigest()


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
