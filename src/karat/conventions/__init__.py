"""Conventions: how each known library defines its metrics."""

from __future__ import annotations

from karat.conventions.convention import STANDARD, Convention, questions
from karat.conventions.libraries import CONVENTIONS
from karat.errors import BadArgument, unknown

__all__ = ["CONVENTIONS", "STANDARD", "Convention", "find_convention", "questions"]


def find_convention(convention: str | Convention) -> Convention:
    """The convention with this name, or the record itself."""
    if isinstance(convention, Convention):
        known = CONVENTIONS.get(convention.name, convention)
        if str(known.choices()) != str(convention.choices()):
            raise BadArgument(f'"{convention.name}" is the name of another convention; choose another one')
        return convention
    if (
        isinstance(convention, str)
        and (name := convention.lower().replace("_", "-").replace("trec-", "trec_")) in CONVENTIONS
    ):
        return CONVENTIONS[name]
    raise unknown("convention", str(convention), CONVENTIONS, "`karat conventions` for a list")
