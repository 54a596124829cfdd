"""Settings of judges: what each may be, and what to say when it is not."""

from __future__ import annotations

from karat.errors import BadArgument


def share_of_one(name: str, value: object) -> float:
    """A setting that lies between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadArgument(f"{name} is a number between 0 and 1", got=value)
    if not 0 <= value <= 1:
        raise BadArgument(
            f"{name} lies between 0 and 1", got=value, hint=f"{value / 100:g}" if 1 < value <= 100 else None
        )
    return float(value)


def truth(name: str, value: object) -> bool:
    """A setting that is on or off."""
    if not isinstance(value, bool):
        raise BadArgument(f"{name} is True or False", got=value)
    return value
