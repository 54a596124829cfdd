"""How a function becomes a metric: its name, its settings and what it needs, told once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, overload

from karat._internal.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument, unknown
from karat.hits import Cutoffs, Hits

_RESERVED = frozenset(("query_id", "query", "depth", "failed", "gold", "gold_items", "hits", "queries", "retrieved"))
"""Other columns of run files and tables."""


class Formula(Protocol):
    """A metric's function: hits in, one number per query out; settings are keyword-only."""

    def __call__(self, hits: Hits, k: Cutoffs, c: Convention, /, **settings: float | None) -> Floats:
        """One number per query, in a row for each cutoff."""
        ...


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A metric as the registry knows it."""

    name: str
    formula: Formula
    symbol: str
    cutoff: bool
    """Whether `@k` may be asked of it."""
    needs_gold: bool
    """Whether a query without relevant gold is undefined."""
    needs_all_gold: bool
    """True if the metric asks how much of all gold was found, so that the gold must be complete."""
    pool: Formula | None
    """What a query weighs when queries are pooled: the denominator of the metric, if it has one."""
    aliases: tuple[str, ...] = ()
    settings: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def built_in(self) -> bool:
        """True if karat defines it."""
        return self.formula.__module__.startswith("karat.")

    @property
    def help(self) -> str:
        """The first line of the function's own description."""
        return (self.formula.__doc__ or "").strip().partition("\n")[0]


METRICS: dict[str, Definition] = {}
_ALIASES: dict[str, str] = {}
PARSED: dict[str, Any] = {}
"""Texts that were read before; forgotten when a metric is defined."""


@overload
def metric(formula: Callable[..., Floats], /) -> Callable[..., Floats]: ...
@overload
def metric(
    *,
    symbol: str | None = None,
    aliases: tuple[str, ...] = (),
    cutoff: bool = True,
    needs_gold: bool = True,
    needs_all_gold: bool = False,
    pool: Callable[..., Floats] | None = None,
) -> Callable[[Callable[..., Floats]], Callable[..., Floats]]: ...
def metric(
    formula: Callable[..., Floats] | None = None,
    /,
    *,
    symbol: str | None = None,
    aliases: tuple[str, ...] = (),
    cutoff: bool = True,
    needs_gold: bool = True,
    needs_all_gold: bool = False,
    pool: Callable[..., Floats] | None = None,
) -> Callable[..., Floats] | Callable[[Callable[..., Floats]], Callable[..., Floats]]:
    """Make a metric of a function `(hits, k, convention, *, settings…) → one number per query`.

    Its name is the function's, its settings are the keyword-only arguments, and its help is the
    docstring. Defining a name again replaces it, so that a notebook's cell may run twice; karat's
    own names are not replaced.
    """

    def register(formula: Callable[..., Floats]) -> Callable[..., Floats]:
        name = getattr(formula, "__name__", "")
        _check(name, aliases, formula)
        METRICS[name] = Definition(
            name=name,
            formula=formula,
            symbol=symbol or name,
            cutoff=cutoff,
            needs_gold=needs_gold,
            needs_all_gold=needs_all_gold,
            pool=pool,
            aliases=aliases,
            settings=dict(getattr(formula, "__kwdefaults__", None) or {}),
        )
        _ALIASES.update(dict.fromkeys(aliases, name))
        PARSED.clear()
        return formula

    return register if formula is None else register(formula)


def register_all(definitions: Mapping[str, Definition]) -> None:
    """Register metrics that another process defined."""
    if any(METRICS.get(name) is not own for name, own in definitions.items()):
        METRICS.update(definitions)
        PARSED.clear()


def find_metric(name: str) -> Definition:
    """The metric of this name or alias."""
    for spelling in (name, name.lower()):
        known = spelling if spelling in METRICS else _ALIASES.get(spelling, "")
        if known in METRICS:
            return METRICS[known]
    raise unknown("metric", name, [*METRICS, *_ALIASES], "`karat metrics`, which lists all of them")


def _check(name: str, aliases: tuple[str, ...], formula: Callable[..., Floats]) -> None:
    """Refuse a metric that would hide another, or a column of the run file, or that cannot be called."""
    home = getattr(formula, "__module__", None)
    for wanted in (name, *aliases):
        old = METRICS.get(_ALIASES.get(wanted, wanted))
        theirs = home if old is None else old.formula.__module__
        replaces_ours = theirs != home and str(theirs).startswith("karat.")
        hides_another = wanted in METRICS and wanted != name
        if replaces_ours or hides_another or wanted in _RESERVED:
            raise BadArgument(f'karat uses the name "{wanted}" already; give your metric another one')
    needed = getattr(getattr(formula, "__code__", None), "co_kwonlyargcount", 0)
    if needed > len(getattr(formula, "__kwdefaults__", None) or {}):
        raise BadArgument(f'every setting of the metric "{name}" needs a default value')
