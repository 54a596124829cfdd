"""What a judge is, and how one is found by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from karat._internal.grammar import Call, parse_call
from karat.conventions import Convention
from karat.errors import BadArgument, nearest, unknown
from karat.hits import Hits
from karat.samples import Field, Samples

if TYPE_CHECKING:
    from karat.llm import ModelSettings

Compares = Literal["id", "doc", "text", "quote", "span", "claim"]
"""What a judge compares: ids, documents, whole texts, texts inside texts, ranges of documents, or claims."""


@runtime_checkable
class Judge(Protocol):
    """Decides for all samples which retrieved item satisfies which gold item."""

    @property
    def name(self) -> str:
        """The judge as it is written: `ids`, or `fuzzy(threshold=0.8)`."""
        ...

    @property
    def compares(self) -> Compares:
        """What is compared."""
        ...

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields by which two items of a ranking are told apart."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings as plain values, stored with a run."""
        ...

    @property
    def needs_gold(self) -> bool:
        """True if samples must have gold items."""
        ...

    @property
    def makes_gold(self) -> bool:
        """True if the judge makes gold items itself, such as the claims of an answer."""
        ...

    @property
    def complete_gold(self) -> bool:
        """True if the gold is complete, so that recall is defined."""
        ...

    @property
    def parallel(self) -> bool:
        """True if queries may be judged in batches, by several processes or machines."""
        ...

    @property
    def model(self) -> ModelSettings | None:
        """The settings of the language model that the judge calls; None if it calls none."""
        ...

    def same(self, text: str) -> str:
        """The normal form of a text: two items with the same form are copies."""
        ...

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Judge every sample."""
        ...


class JudgeBase:
    """The defaults of the protocol. A judge derived from it needs a `name` and `__call__`."""

    compares: Compares = "text"
    fields: tuple[Field, ...] = ("text",)
    settings: Mapping[str, Any] = {}
    needs_gold = True
    makes_gold = False
    complete_gold = True
    parallel = True
    model: ModelSettings | None = None

    def same(self, text: str) -> str:
        """The text itself: only equal texts are copies."""
        return text


class CustomJudge(JudgeBase):
    """A custom judge that has only a name and a call, with the defaults of the protocol."""

    def __init__(self, judge: Any) -> None:
        self.name: str = judge.name
        self._judge = judge

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Let the custom judge decide."""
        hits: Hits = self._judge(samples, convention)
        return hits


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
        if callable(wanted) and not isinstance(wanted, type) and isinstance(getattr(wanted, "name", None), str):
            return CustomJudge(wanted)
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
