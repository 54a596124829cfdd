"""The protocol of judges, the registry of judges by name, and the checks of their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, TypeVar, overload, runtime_checkable

from karat._internal.grammar import Call, parse_call
from karat.conventions import Convention
from karat.errors import BadArgument, nearest, unknown
from karat.hits import Hits
from karat.samples import Field, Samples

if TYPE_CHECKING:
    from karat._internal.model_settings import ModelSettings

Compares = Literal["id", "doc", "text", "quote", "span", "claim"]
"""Kinds of things to compare: ids, documents, whole texts, texts inside texts, ranges of documents, or claims."""


class Judge:
    """Decides for all samples which retrieved item satisfies which gold item.

    The base class of all judges, with the defaults: a custom judge needs only `name` and `__call__`.
    """

    name: str
    """The judge as it is written: `ids`, or `fuzzy(threshold=0.8)`."""
    compares: Compares = "text"
    fields: tuple[Field, ...] = ("text",)
    """The fields that identify an item: two items of a ranking that agree in all of them are copies."""
    settings: Mapping[str, Any] = {}
    """The settings as plain JSON values, stored with a run."""
    needs_gold: bool = True
    """True if samples must have gold items."""
    makes_gold: bool = False
    """True if the judge creates the gold items, such as the claims of an answer."""
    complete_gold: bool = True
    """True if the gold is complete, so that recall is defined."""
    parallel: bool = True
    """True if queries may be judged in batches, by several processes or machines."""
    model: ModelSettings | None = None
    """The settings of the language model; None if the judge calls no model."""

    def start(self) -> None:
        """Begin an evaluation, in which the judge may be called several times with the same samples."""

    def same(self, text: str) -> str:
        """The normal form of a field: two items whose fields have the same forms are copies."""
        return text

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Judge every sample."""
        raise NotImplementedError


@runtime_checkable
class BareJudge(Protocol):
    """A custom judge that is not derived from `Judge`, and declares nothing but its name."""

    name: str

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Judge every sample."""


class CustomJudge(Judge):
    """A bare judge with the defaults; `like` fits these to the data."""

    def __init__(self, judge: BareJudge) -> None:
        self.name = judge.name
        self._judge = judge

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Call the custom judge."""
        return self._judge(samples, convention)

    def like(self, other: Judge) -> Self:
        """The same judge, which compares what another judge does."""
        fitted = copy(self)
        fitted.compares, fitted.fields = other.compares, other.fields
        return fitted


JudgeLike: TypeAlias = str | Judge | Callable[[Any, Any], Any]
"""A judge, its name, an object with a name that is called with samples and a convention, or a pairwise function."""
JUDGES: dict[str, Callable[..., Any]] = {}
"""The registered judges by name. A built-in judge registers when its module is imported."""
T = TypeVar("T", bound=Callable[..., Any])


@overload
def judge(name: str, /) -> Callable[[T], T]: ...
@overload
def judge(given: T, /) -> T: ...
def judge(given: Any, /) -> Any:
    """Register a judge by name: `@karat.judge("name")`, or `@karat.judge` to use the name of the function or class.

    Then `judge="name(setting=value)"` finds it, also on the command line with `--import file.py`.

    Args:
        given: the name, or the function or class itself. A function compares one gold item with one retrieved item
            and returns True, False or a similarity from 0 to 1; items are strings, or dicts if they are records. Its
            keyword-only arguments are the settings. A class has a `name` and is called with all samples and a
            convention; the arguments of its constructor are the settings. A name can be registered again, except
            those of karat's own judges.

    Returns:
        The function or class, unchanged.

    Example:
        >>> @karat.judge("first-letters")
        ... def first_letters(gold, item, *, size=3):
        ...     return gold[:size] == item[:size]
        >>> karat.score("recall@1", ["golden"], ["gold"], judge="first-letters")
        1.0
    """
    return partial(_register, given) if isinstance(given, str) else _register(getattr(given, "__name__", ""), given)


def _register(name: str, given: T) -> T:
    if not callable(given) or parse_call(name) != Call(name, (), {}):
        raise BadArgument("expected a name and a function or class", got=(name, given), hint='@karat.judge("my-judge")')
    _import(name)
    if name in JUDGES and _built_in(JUDGES[name]) and not _built_in(given):
        raise BadArgument(f'karat has a judge "{name}"; choose another name')
    if isinstance(given, type):
        JUDGES[name] = given
    else:
        from karat.judges.pairwise import pairwise_maker

        JUDGES[name] = pairwise_maker(name, given)
    return given


def _built_in(maker: Callable[..., Any]) -> bool:
    return maker.__module__.startswith("karat.judges.")


def all_judges() -> dict[str, Callable[..., Any]]:
    """The constructors of all judges by name."""
    for module in _modules():
        import_module(f"karat.judges.{module}")
    return dict(sorted(JUDGES.items()))


def _modules() -> list[str]:
    return [module.name for module in iter_modules([str(Path(__file__).parent)])]


def _import(name: str) -> None:
    """Import the module that has the name of a judge, if there is one."""
    if name not in JUDGES and name in _modules():
        import_module(f"karat.judges.{name}")


def find_judge(wanted: JudgeLike) -> Judge:
    """The judge with this name and settings, or a judge made of an object with a name, or of a pairwise function."""
    if isinstance(wanted, str):
        return _by_name(wanted)
    if isinstance(wanted, Judge):
        return wanted
    if not isinstance(wanted, type):
        if isinstance(wanted, BareJudge) and isinstance(wanted.name, str):
            return CustomJudge(wanted)
        if callable(wanted):
            from karat.judges.pairwise import PairwiseJudge

            return PairwiseJudge(wanted)
    raise BadArgument(
        "expected a judge: its name, an object with a name that is called with samples and a convention, "
        "or a function of a gold item and a retrieved item",
        got=wanted,
        hint='judge="ids"',
    )


def _by_name(wanted: str) -> Judge:
    if wanted in JUDGES:  # a name without settings, such as "ids": nothing to parse or check
        return _made(wanted, JUDGES[wanted]())
    call = parse_call(wanted)
    _import(call.name)
    if call.name not in JUDGES:
        names = sorted(all_judges())
        if call.name not in names:
            raise unknown("judge", call.name, names, "one of: " + ", ".join(names))
    maker = JUDGES[call.name]
    _check_settings(maker, call)
    return _made(call.name, maker(*call.positional, **call.named))


def _made(name: str, made: Any) -> Judge:
    """The judge that a registered class or function made."""
    if not isinstance(made, Judge) and not isinstance(made, BareJudge):
        raise BadArgument(f'judge "{name}" needs an attribute `name` and a method `__call__`', got=made)
    return find_judge(made)


def _check_settings(maker: Callable[..., Any], call: Call) -> None:
    """Refuse settings that the judge does not have; the error lists those that it has."""
    settings = signature(maker).parameters
    positional = [name for name, p in settings.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    usage = f"{call.name}({', '.join(f'{name}=…' for name in settings)})" if settings else call.name
    for name in call.named:
        if name not in settings:
            close = nearest(name, settings)
            meant = f" Did you mean {close}?" if close else ""
            raise BadArgument(f'judge "{call.name}" has no setting "{name}".{meant}', hint=usage)
    if len(call.positional) > len(positional):
        value = call.positional[len(positional)]
        raise BadArgument(f'judge "{call.name}": a setting has no name', got=value, hint=usage)
    for name in positional[: len(call.positional)]:
        if name in call.named:
            raise BadArgument(f'judge "{call.name}": {name} is given twice', hint=usage)


def share_of_one(name: str, value: object) -> float:
    """A setting between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadArgument(f"{name} must be a number between 0 and 1", got=value)
    if not 0 <= value <= 1:
        hint = f"{value / 100:g}" if 1 < value <= 100 else None
        raise BadArgument(f"{name} must be between 0 and 1", got=value, hint=hint)
    return float(value)


def check_names(kind: str, given: object, known: Iterable[str], hint: str) -> tuple[str, ...]:
    """A setting of several names; a single name may be given alone, and None means none."""
    if given is None:
        return ()
    if not isinstance(given, str | list | tuple | set | frozenset):
        raise BadArgument(f"a {kind} is given by its name", got=given, hint=hint)
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise unknown(kind, str(name), known, hint)
    return names


def check_bool(name: str, value: object) -> bool:
    """A setting that is True or False."""
    if not isinstance(value, bool):
        raise BadArgument(f"{name} must be True or False", got=value)
    return value
