"""Conventions: how each known library defines its metrics."""

from __future__ import annotations

from typing import Any

from karat._internal.grammar import parse_call
from karat.conventions.convention import STANDARD, Convention, questions
from karat.conventions.libraries import CONVENTIONS
from karat.errors import BadArgument, unknown

__all__ = ["CONVENTIONS", "STANDARD", "Convention", "find_convention", "questions"]


def find_convention(convention: str | Convention, **settings: Any) -> Convention:
    """The convention with this name and settings, `standard(ties=given)`, or the record itself; then adjusted."""
    found = _checked(convention) if isinstance(convention, Convention) else _by_name(str(convention))
    if not settings:
        return found
    base = CONVENTIONS.get(found.name.partition("(")[0])
    return found.adjusted(settings) if base is None else base.adjusted(parse_call(found.name).named | settings)


def _checked(convention: Convention) -> Convention:
    """The record, if its name is not that of another one."""
    known = _by_name(convention.name) if convention.name.partition("(")[0] in CONVENTIONS else convention
    if known is not convention and str(known.choices()) != str(convention.choices()):
        raise BadArgument(f'"{convention.name}" is the name of another convention; choose another one')
    return convention


def _by_name(text: str) -> Convention:
    if text in CONVENTIONS:  # without settings: nothing to parse
        return CONVENTIONS[text]
    call = parse_call(text)
    name = call.name.lower().replace("_", "-").replace("trec-", "trec_")
    if name not in CONVENTIONS:
        raise unknown("convention", call.name, CONVENTIONS, "karat conventions")
    if call.positional:
        raise BadArgument(f'convention "{name}": a setting has no name', got=text, hint=f"{name}(ties=given)")
    return CONVENTIONS[name].adjusted(call.named)
