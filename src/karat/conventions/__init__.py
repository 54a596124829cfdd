"""Conventions: how each known library defines its metrics."""

from __future__ import annotations

from karat.conventions.convention import STANDARD, Convention, questions
from karat.conventions.libraries import CONVENTIONS
from karat.errors import BadArgument, unknown

__all__ = ["CONVENTIONS", "STANDARD", "Convention", "find_convention", "questions"]


def find_convention(wanted: str | Convention) -> Convention:
    """The convention with this name, or the record itself."""
    if isinstance(wanted, Convention):
        known = CONVENTIONS.get(wanted.name, wanted)
        if str(known.choices()) != str(wanted.choices()):
            raise BadArgument(f'"{wanted.name}" is the name of another convention; choose another one')
        return wanted
    if isinstance(wanted, str) and (name := wanted.lower().replace("_", "-").replace("trec-", "trec_")) in CONVENTIONS:
        return CONVENTIONS[name]
    raise unknown("convention", str(wanted), CONVENTIONS, "`karat conventions` for a list")
