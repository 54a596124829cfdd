"""Judges: which retrieved item satisfies which gold item? One protocol, from equal ids to language models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karat.judges.auto import Auto, Choice, choose
from karat.judges.ids import Exact, Ids
from karat.judges.protocol import Judge, all_judges, find_judge, judge

if TYPE_CHECKING:
    from karat.judges.claims import Claims
    from karat.judges.contains import Contains
    from karat.judges.fuzzy import Fuzzy
    from karat.judges.relevance import Relevance
    from karat.judges.spans import Spans
    from karat.judges.text import Text

__all__ = [
    "Auto",
    "Choice",
    "Claims",
    "Contains",
    "Exact",
    "Fuzzy",
    "Ids",
    "Judge",
    "Relevance",
    "Spans",
    "Text",
    "all_judges",
    "choose",
    "find_judge",
    "judge",
]


def __getattr__(name: str) -> Any:
    """A judge of texts, which is loaded when it is first wanted."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return all_judges()[name.lower()]
