"""Judges: which retrieved item satisfies which gold item? One protocol, from equal ids to language models."""

from karat.judges.auto import Auto, Choice, choose
from karat.judges.contains import Contains
from karat.judges.equality import Exact, Ids
from karat.judges.fuzzy import Fuzzy
from karat.judges.protocol import JUDGES, Judge, find_judge, judge
from karat.judges.spans import Spans
from karat.judges.text import Text

__all__ = [
    "JUDGES",
    "Auto",
    "Choice",
    "Contains",
    "Exact",
    "Fuzzy",
    "Ids",
    "Judge",
    "Spans",
    "Text",
    "choose",
    "find_judge",
    "judge",
]
