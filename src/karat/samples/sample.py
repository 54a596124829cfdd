"""One query: what was asked, what came back, what should have come back."""

from __future__ import annotations

from typing import Any

import msgspec


class Sample(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One query of a test set.

    An item of `retrieved` or `gold` is a string, or a record with any of
    `id, text, doc, start, end, score, grade, group`.
    """

    retrieved: list[Any] | dict[str, float]
    gold: list[Any] | dict[str, float]
    id: str | int | None = None
    query: str | None = None
    answer: str | None = None
    """The reference answer."""
    response: str | None = None
    """What the system answered."""
    meta: dict[str, Any] = {}
    """Anything else, by which results can be sliced."""
