"""Settings of judges: what each may be, and what to say when it is not."""

from __future__ import annotations

from collections.abc import Iterable

from karat.errors import BadArgument, unknown


def share_of_one(name: str, value: object) -> float:
    """A setting that lies between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadArgument(f"{name} is a number between 0 and 1", got=value)
    if not 0 <= value <= 1:
        raise BadArgument(
            f"{name} lies between 0 and 1", got=value, hint=f"{value / 100:g}" if 1 < value <= 100 else None
        )
    return float(value)


def names_of(kind: str, given: object, known: Iterable[str], hint: str) -> tuple[str, ...]:
    """A setting that is some of several names; one may stand alone, and None is none."""
    if given is None:
        return ()
    if not isinstance(given, str | list | tuple | set | frozenset):
        raise BadArgument(f"a {kind} is given by its name", got=given, hint=hint)
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise unknown(kind, str(name), known, hint)
    return names


def truth(name: str, value: object) -> bool:
    """A setting that is on or off."""
    if not isinstance(value, bool):
        raise BadArgument(f"{name} is True or False", got=value)
    return value
