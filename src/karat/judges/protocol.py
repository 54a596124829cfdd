"""What a judge is, and how one is found by its name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Protocol, TypeVar, runtime_checkable

from karat.conventions import Convention
from karat.errors import BadArgument, unknown
from karat.grammar import parse_call
from karat.hits import Hits
from karat.samples import Samples


@runtime_checkable
class Judge(Protocol):
    """Looks at all samples and says which retrieved item satisfies which gold item."""

    @property
    def name(self) -> str:
        """The judge as it is written: `ids`, or `fuzzy(threshold=0.8)`."""
        ...

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Judge every sample."""
        ...


JUDGES: dict[str, Callable[..., Judge]] = {}
_LATER = ("text", "contains", "fuzzy", "spans")
"""Judges of texts live in a module of their name, which is loaded when one of them is first wanted."""

J = TypeVar("J", bound=Callable[..., Judge])


def judge(name: str) -> Callable[[J], J]:
    """Enter a class of judges under this name; its arguments are the judge's settings."""

    def enter(maker: J) -> J:
        JUDGES[name] = maker
        return maker

    return enter


def all_judges() -> dict[str, Callable[..., Judge]]:
    """Every judge by its name."""
    for name in _LATER:
        import_module(f"karat.judges.{name}")
    return JUDGES


def find_judge(wanted: str | Judge) -> Judge:
    """The judge of this name with these settings, or the object itself."""
    if not isinstance(wanted, str):
        if isinstance(wanted, Judge) and not isinstance(wanted, type):
            return wanted
        raise BadArgument(
            "a judge has a name and is called with samples and a convention", got=wanted, hint='judge="ids"'
        )
    call = parse_call(wanted)
    if call.name in _LATER:
        import_module(f"karat.judges.{call.name}")
    if call.name not in JUDGES:
        names = sorted(all_judges())
        raise unknown("judge", call.name, names, "one of: " + ", ".join(names))
    try:
        return JUDGES[call.name](*call.positional, **call.named)
    except TypeError as error:
        raise BadArgument(f'the judge "{call.name}" does not take these settings: {wanted}') from error
