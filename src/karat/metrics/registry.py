"""The metric registry: `@metric` turns a function into a metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, TypeVar, overload

from karat._internal.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument, UnknownName, unknown
from karat.hits import Cutoffs, Hits

T = TypeVar("T")
_RESERVED = frozenset(
    (
        "query_id", "query", "depth", "failed", "gold", "gold_items", "hits", "queries", "retrieved", "trajectory",
        "places", "unanswerable",
    )
)  # fmt: skip
"""Names of other columns in run files and tables."""


class Formula(Protocol):
    """The function of a metric; settings are keyword-only."""

    def __call__(self, hits: Hits, k: Cutoffs, c: Convention, /, **settings: Any) -> Floats:
        """One number per query, in one row per cutoff."""


Setting: TypeAlias = float | str | None
"""The value of a setting: a number, or a word if the metric declares it; None is the default."""
Highest: TypeAlias = Callable[[Convention, Hits], Floats | float]
"""The highest score of each query, or of all."""


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A registered metric."""

    name: str
    formula: Formula
    symbol: str
    cutoff: bool
    """True if the metric takes a cutoff `@k`."""
    needs_gold: bool
    """True if the metric is undefined for queries without relevant gold."""
    needs_all_gold: bool
    """True if the metric needs the complete gold, as recall does."""
    pool: Formula | None
    """The weight of a query in pooled scores: the denominator of the metric, if it has one."""
    highest: Highest
    """The highest score that each query can have in karat's own metric."""
    aliases: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The words that a setting takes, if it is not a number."""
    at_recall: bool = False
    """True if the cutoffs are recall levels from 0 to 1, as in `iprec@0.5`."""
    of_sets: bool = False
    """True if the metric ignores the order of the ranking."""
    of_steps: bool = False
    """True if the metric needs samples with steps."""
    of_aspects: bool = False
    """True if the metric needs gold with aspects."""
    reads_tokens: bool = False
    """True if the metric needs the number of tokens read."""
    unit: str = ""
    """The unit of a measure, such as "ranks"; empty for a metric, whose scores are from 0 to 1."""
    more_is_better: bool = True
    """False if a lower number is better, as for false_alarm and for most measures."""
    of_unanswerable: bool = False
    """True if the metric is about the queries without an answer, and undefined for the others."""
    sizes: tuple[str, ...] = ()
    """The numbers per query that the metric needs besides hits: "different" or "cited", see `judges/sizes.py`."""
    of_judgements: bool = False
    """True if the metric counts judgements, so that a convention cannot remove what is unjudged."""

    @cached_property
    def built_in(self) -> bool:
        """True if the metric is karat's own."""
        return (self.formula.__module__ or "").startswith("karat.")

    def rankings(self, hits: Hits) -> Hits:
        """The hits that the metric reads if the convention removes unjudged items from the rankings."""
        return hits if self.of_judgements or self.of_steps or self.of_unanswerable else hits.condensed

    @property
    def help(self) -> str:
        """The first line of the docstring."""
        return (self.formula.__doc__ or "").strip().partition("\n")[0]


def always_one(c: Convention, hits: Hits) -> float:
    """The highest score of metrics that no convention lets exceed 1; it has a name, so that it can be pickled."""
    return 1.0


METRICS: dict[str, Definition] = {}
MEASURES: dict[str, Definition] = {}
"""Measures, which have a unit instead of a score from 0 to 1. They are asked for by name, as metrics are."""
STORED: dict[str, bool] = {}
"""True if more is better, for each custom metric of a loaded run file; a registered metric of the name comes first."""
_ALIASES: dict[str, str] = {}
_ABSENT = {"nerr_ia": "err_ia", "alpha_dcg": "alpha_ndcg", "nnrbp": "nrbp"}
"""Measures of ndeval that karat lacks, each with the metric from which only the ideal differs: it is no typo of it."""


@lru_cache(maxsize=256)
def cached(parse: Callable[[str], T], text: str) -> T:
    """`parse(text)`, cached until another metric is registered."""
    return parse(text)


def register_all(definitions: Mapping[str, Definition]) -> None:
    """Register metrics and measures, here or from another process."""
    for name, own in definitions.items():
        known = MEASURES if own.unit else METRICS
        if known.get(name) is not own:
            known[name] = own
            _ALIASES.update(dict.fromkeys(own.aliases, name))
            cached.cache_clear()


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
    highest: Highest = ...,
    of_sets: bool = False,
    of_steps: bool = False,
    of_aspects: bool = False,
    more_is_better: bool = True,
    of_unanswerable: bool = False,
    sizes: tuple[str, ...] = (),
    of_judgements: bool = False,
    words: Mapping[str, tuple[str, ...]] = ...,
    at_recall: bool = False,
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
    highest: Highest = always_one,
    of_sets: bool = False,
    of_steps: bool = False,
    of_aspects: bool = False,
    more_is_better: bool = True,
    of_unanswerable: bool = False,
    sizes: tuple[str, ...] = (),
    of_judgements: bool = False,
    words: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    at_recall: bool = False,
) -> Callable[..., Floats] | Callable[[Callable[..., Floats]], Callable[..., Floats]]:
    """Register a function as a metric.

    The function is called with `(hits, k, convention)`, computes all queries and cutoffs at once, and returns one
    number per query (or a row of them per cutoff). Its name is the metric's name, its keyword-only arguments are
    the settings, and the first line of its docstring is the help. Registering a custom name again replaces the
    metric, so that a notebook cell can run twice; karat's own metrics cannot be replaced.

    Args:
        formula: the function, if the decorator is used without arguments.
        symbol: a short name for tables; the name by default.
        aliases: other names under which the metric can be requested.
        cutoff: False if the metric takes no `@k`.
        needs_gold: False if the metric is defined for queries without relevant gold.
        needs_all_gold: True if the metric needs the complete gold, as recall does. Judges that only grade what was
            retrieved refuse such metrics.
        pool: the denominator of the metric as a function with the same arguments, used as the weight of a query
            in pooled (micro-averaged) scores; None if the metric cannot be pooled.
        highest: for karat's own metrics, the highest score of each query, a function of `(convention, hits)`. The
            scores of custom metrics may be any finite number.
        of_sets: True if the metric ignores the order of the ranking, so that it is defined for a set.
        of_steps: True if the metric needs samples with steps, which it reads from `hits.steps`.
        of_aspects: True if the metric needs gold with aspects, which it reads from `hits.gold_items.aspects`.
        more_is_better: False if a lower score is better: comparisons and gates then say so.
        of_unanswerable: True if the metric is about the queries marked `"answerable": false`. It is then undefined for
            all others, as other metrics that need gold are for these; combine it with `needs_gold=False`.
        sizes: numbers per query that the metric reads from `hits.totals.sizes`: "different" (different items
            retrieved) or "cited" (items that the answer cites). They are counted only if a metric needs them.
        of_judgements: True if the metric counts judgements, as judged@k does: it then reads the whole ranking even if
            the convention removes unjudged items.
        words: settings that take a word instead of a number, with the words: `{"gain": ("linear", "exp")}`.
        at_recall: True if the cutoffs are recall levels from 0 to 1, as in `iprec@0.5`.

    Returns:
        The function, unchanged.

    Example:
        >>> @karat.metric
        ... def at_least(hits, k, c, *, n=2.0):
        ...     '''1 if the top k contain at least n gold items.'''
        ...     return (hits.found(k, c) >= n).astype(float)
        >>> karat.score("at_least(n=1)@5", ["a", "b"], ["b"])
        1.0
    """

    def register(formula: Callable[..., Floats]) -> Callable[..., Floats]:
        name = getattr(formula, "__name__", "")
        _check(name, aliases, formula)
        definition = Definition(
            name=name,
            formula=formula,
            symbol=symbol or name,
            cutoff=cutoff,
            needs_gold=needs_gold,
            needs_all_gold=needs_all_gold,
            pool=pool,
            highest=highest,
            aliases=aliases,
            of_sets=of_sets,
            of_steps=of_steps,
            of_aspects=of_aspects,
            more_is_better=more_is_better,
            of_unanswerable=of_unanswerable,
            settings=dict(getattr(formula, "__kwdefaults__", None) or {}),
            sizes=sizes,
            of_judgements=of_judgements,
            words=dict(words),
            at_recall=at_recall,
        )
        register_all({name: definition})
        return formula

    return register if formula is None else register(formula)


def measure(unit: str, *, symbol: str, **facts: Any) -> Callable[[Callable[..., Floats]], Callable[..., Floats]]:
    """Register one of karat's own functions as a measure; `facts` are other fields of its definition."""

    def register(formula: Callable[..., Floats]) -> Callable[..., Floats]:
        known: dict[str, Any] = {"needs_gold": True, "needs_all_gold": False, "more_is_better": False, "cutoff": False}
        definition = Definition(
            name=formula.__name__,
            formula=formula,
            symbol=symbol,
            pool=None,
            highest=always_one,
            settings=dict(formula.__kwdefaults__ or {}),
            unit=unit,
            **(known | facts),
        )
        register_all({definition.name: definition})
        return formula

    return register


def find_metric(name: str) -> Definition:
    """The metric or measure of this name or alias."""
    if name in METRICS:
        return METRICS[name]
    for spelling in (name, name.lower()):
        known = _ALIASES.get(spelling, spelling)
        for registered in (METRICS, MEASURES):
            if (own := spelling if spelling in registered else known) in registered:
                return registered[own]
    if similar := _ABSENT.get(name.lower().replace("-", "_")):
        raise UnknownName(f'no metric "{name}"; {similar} is divided by another ideal', hint="karat metrics")
    raise unknown("metric", name, [*METRICS, *MEASURES, *_ALIASES], "karat metrics")


def is_alias(name: str) -> bool:
    """True if the text is another name of a metric, such as `11pt_avg`, which the grammar of names does not allow."""
    return name in _ALIASES


def _check(name: str, aliases: tuple[str, ...], formula: Callable[..., Floats]) -> None:
    """Refuse a metric that hides another or a column of run files, or whose settings lack defaults."""
    home = getattr(formula, "__module__", None)
    for other in (name, *aliases):
        old = METRICS.get(_ALIASES.get(other, other)) or MEASURES.get(other)
        theirs = home if old is None else old.formula.__module__
        replaces_ours = theirs != home and str(theirs).startswith("karat.")
        hides_another = other in METRICS and other != name
        if replaces_ours or hides_another or other in _RESERVED:
            raise BadArgument(f'the name "{other}" is already used by karat; choose another one')
    needed = getattr(getattr(formula, "__code__", None), "co_kwonlyargcount", 0)
    if needed > len(getattr(formula, "__kwdefaults__", None) or {}):
        raise BadArgument(f'every setting of the metric "{name}" needs a default value')
