"""Where a run came from: enough to tell whether two runs may be compared."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from karat.hits import Gold


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
