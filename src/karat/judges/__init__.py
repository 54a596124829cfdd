"""Judges: which retrieved item satisfies which gold item? One protocol, from equal ids to language models."""

from karat.judges.auto import Auto, Choice, choose
from karat.judges.equality import Exact, Ids
from karat.judges.protocol import JUDGES, Judge, find_judge, judge

__all__ = ["JUDGES", "Auto", "Choice", "Exact", "Ids", "Judge", "choose", "find_judge", "judge"]
