"""What a judge is, and how one is found by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import Protocol, TypeVar, runtime_checkable

from karat._internal.grammar import Call, parse_call
from karat.conventions import Convention
from karat.errors import BadArgument, nearest, unknown
from karat.hits import Hits
from karat.samples import GoldItems, Samples


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


def check_measurable(judge: Judge, metrics: Iterable[str]) -> None:
    """Refuse metrics that need what the judge cannot know, before anything is asked or paid for."""
    cannot = [name for name in metrics if name in getattr(judge, "cannot_measure", ())]
    if cannot:
        problem = f'{", ".join(cannot)} asks how much of all gold was found; "{judge.name}" sees only what came back'
        raise BadArgument(problem, hint='precision, ndcg, rr, hit, err or rbp; or judge="claims(…)" with answers')


def with_gold_of(hits: Hits, samples: Samples, judge: Judge) -> Samples:
    """The samples with the gold that the judge made, so that a run shows it as any other."""
    if not getattr(judge, "makes_gold", False):
        return samples
    return replace(samples, gold=GoldItems({"text": list(hits.of.label)}, hits.of.grade, hits.of.start))


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
