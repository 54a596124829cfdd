"""What a judge is, and how one is found by its name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Protocol, TypeVar, runtime_checkable

from karat.conventions import Convention
from karat.errors import BadArgument, nearest, unknown
from karat.grammar import Call, parse_call
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
_LATER = ("text", "contains", "fuzzy", "spans", "claims", "relevance")
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
    if wanted in JUDGES:
        return JUDGES[wanted]()
    call = parse_call(wanted)
    if call.name in _LATER:
        import_module(f"karat.judges.{call.name}")
    if call.name not in JUDGES:
        names = sorted(all_judges())
        raise unknown("judge", call.name, names, "one of: " + ", ".join(names))
    maker = JUDGES[call.name]
    _check_settings(maker, call)
    return maker(*call.positional, **call.named)


def _check_settings(maker: Callable[..., Judge], call: Call) -> None:
    """Refuse settings that the judge does not have, naming those that it has."""
    settings = signature(maker).parameters
    unnamed = [name for name, p in settings.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    takes = f"{call.name}({', '.join(f'{name}=…' for name in settings)})" if settings else call.name
    for name in call.named:
        if name not in settings:
            close = nearest(name, settings)
            meant = f" Did you mean {close}?" if close else ""
            raise BadArgument(f'the judge "{call.name}" has no setting "{name}".{meant}', hint=takes)
    if len(call.positional) > len(unnamed):
        value = call.positional[len(unnamed)]
        raise BadArgument(f'a setting of the judge "{call.name}" has no name', got=value, hint=takes)
    for name in unnamed[: len(call.positional)]:
        if name in call.named:
            raise BadArgument(f'{name} of the judge "{call.name}" is given twice', hint=takes)
