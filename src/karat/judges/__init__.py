"""Samples → hits. Judges decide which retrieved item satisfies which gold item: by id, text, range, or language model.

A judge is one file of this folder with `@judge("name")`. Its module is imported when the judge is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from karat.judges.auto import Auto, Choice, choose, fit, has_fields
from karat.judges.ids import Exact, Ids
from karat.judges.protocol import Judge, JudgeLike, all_judges, find_judge, judge

if TYPE_CHECKING:
    from karat.judges.claims import Claims as Claims
    from karat.judges.contains import Contains as Contains
    from karat.judges.fuzzy import Fuzzy as Fuzzy
    from karat.judges.relevance import Relevance as Relevance
    from karat.judges.spans import Spans as Spans
    from karat.judges.text import Text as Text

__all__ = [
    "Auto", "Choice", "Exact", "Ids", "Judge", "JudgeLike", "all_judges", "choose", "find_judge", "fit",
    "has_fields", "judge",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The class of a built-in judge, from the module of the same name in lower case."""
    if name.istitle():
        try:
            return vars(import_module(f"karat.judges.{name.lower()}"))[name]
        except (ModuleNotFoundError, KeyError):
            pass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
