"""What a judge is, and how one is found by its name."""

from __future__ import annotations

from collections.abc import Callable
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

J = TypeVar("J", bound=Callable[..., Judge])


def judge(name: str) -> Callable[[J], J]:
    """Enter a class of judges under this name; its arguments are the judge's settings."""

    def enter(maker: J) -> J:
        JUDGES[name] = maker
        return maker

    return enter


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
    if call.name not in JUDGES:
        raise unknown("judge", call.name, JUDGES, "one of: " + ", ".join(JUDGES))
    try:
        return JUDGES[call.name](*call.positional, **call.named)
    except TypeError as error:
        raise BadArgument(f'the judge "{call.name}" does not take these settings: {wanted}') from error
