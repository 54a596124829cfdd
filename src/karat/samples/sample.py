"""The `karat.Sample` record, in a separate file because it alone needs msgspec at import."""

from __future__ import annotations

from typing import Any

import msgspec


class Sample(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One query of a test set, with what was retrieved and what should have been.

    An item of `retrieved` or `gold` is a string, or a dict with any of the fields
    `id, text, doc, start, end, score, grade, group, hop, aspects`. A dict of items gives scores or grades.

    Args:
        gold: the relevant items, or a dict of grades.
        retrieved: the results, best first, whatever their scores; or a dict of scores.
        steps: in place of `retrieved`, the searches in their order, each a dict with its own `retrieved`.
        stages: in place of `retrieved`, several rankings by name, for `karat.stages`.
        error: in place of `retrieved`, the error if the retrieval failed.
        id: the id of the query; its row number by default.
        query: the text of the query.
        answer: the reference answer.
        response: the answer of the system.
        cited: the ids of the items that the response cites.
        exclude: the ids of items that are removed from the results before scoring.
        answerable: False if the query has no answer, so that nothing should be retrieved; then `gold` may be None.
        meta: anything else, by which results can be sliced.

    Example:
        >>> sample = karat.Sample(query="…", retrieved=["doc-4", "doc-9"], gold=["doc-9"])
        >>> karat.evaluate([sample], "rr").mean["rr"]
        0.5
    """

    gold: list[Any] | dict[str, float] | None = None
    retrieved: list[Any] | dict[str, float] | None = None
    steps: list[Any] | None = None
    stages: dict[str, Any] | None = None
    error: str | None = None
    id: str | int | None = None
    query: str | None = None
    answer: str | None = None
    response: str | None = None
    cited: list[Any] | None = None
    exclude: list[Any] | None = None
    answerable: bool | None = None
    meta: dict[str, Any] = {}
