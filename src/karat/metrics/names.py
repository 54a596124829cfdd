"""Metric names: `ndcg@10`, `f(beta=2)@1,5`, `iprec@0.5`, the same in Python, on the command line and in files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np

from karat._internal.arrays import Bools, Floats, bool_column
from karat._internal.grammar import Call, parse_call, write
from karat.conventions import Convention
from karat.errors import BadArgument, KaratError, nearest
from karat.hits import Cutoffs, Hits
from karat.metrics.cutoffs import LARGEST, Budget, Cutoff, Level, is_cutoff, ranks_within, read_cutoffs, read_levels
from karat.metrics.registry import MEASURES, METRICS, STORED, Definition, Setting, cached, find_metric, is_alias

DEFAULT = "recall@1,3,5,10 precision@5 ndcg@10 rr"

# Names are separated by white space, semicolons, or commas that are not between two cutoffs.
_SEPARATOR = re.compile(r"[\s;]+|,(?!\s*\d)(?![^()]*\))")
_SPACE_INSIDE = re.compile(r"(?<=[,(=@])\s+(?=[\w.+-]+)|\s+(?=[@)=])|\s+(?=,\s*\d)|(?<=\d,)\s+(?=\d)")
_NAME = re.compile(r"\w+")
_USUAL = 5
_LONG = {"exponential": "exp"}
_AT = re.compile(r"(?P<name>.+?)_(?:at_|cut_)?(?P<k>\d+(?:\.\d+)?t?)")


@dataclass(frozen=True)
class Metric:
    """A metric with its settings and cutoffs. `str(metric)` parses back to the same metric.

    Args:
        name: the name of a registered metric.
        ks: cutoffs, in ranks, as token budgets or as recall levels; empty for no cutoff.
        settings: settings of the metric, such as `{"beta": 2.0}` or `{"gain": "exp"}`; None is the default.

    Example:
        >>> str(karat.Metric("f", (5, 10), {"beta": 2.0}))
        'f(beta=2)@5,10'
    """

    name: str
    ks: tuple[Cutoff, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {name: value for name, value in sorted(self.settings.items()) if value is not None}
        object.__setattr__(self, "settings", MappingProxyType(given))
        if not isinstance(self.ks, tuple) or not all(map(is_cutoff, self.ks)):
            raise BadArgument("cutoffs must be whole numbers from 1 on", got=self.ks, hint="(1, 5, 10)")

    def __reduce__(self) -> tuple[Any, ...]:
        return Metric, (self.name, self.ks, dict(self.settings))

    @cached_property
    def _settings(self) -> dict[str, Setting]:
        """The settings as a dict, which is passed on faster."""
        return dict(self.settings)

    @property
    def definition(self) -> Definition:
        """The registered metric."""
        return find_metric(self.name)

    @cached_property
    def unit(self) -> str:
        """The unit of a measure; empty for a metric, also for one that is not registered here."""
        return MEASURES[self.name].unit if self.name in MEASURES else ""

    @cached_property
    def rel(self) -> float | None:
        """The lowest relevant grade, if it is set."""
        rel = self.settings.get("rel")
        return rel if isinstance(rel, int | float) else None

    @property
    def base(self) -> str:
        """The name with its settings, without cutoffs."""
        inside = ",".join(f"{key}={write(value)}" for key, value in self.settings.items())
        return f"{self.name}({inside})" if inside else self.name

    def __str__(self) -> str:
        return self._text

    def __hash__(self) -> int:
        return hash(self._text)

    @cached_property
    def _text(self) -> str:
        return f"{self.base}@{','.join(map(str, self.ks))}" if self.ks else self.base

    @cached_property
    def columns(self) -> tuple[tuple[str, Cutoff | None], ...]:
        """The full name for each cutoff, with the cutoff."""
        return tuple((f"{self.base}@{k}", k) for k in self.ks) or ((self.base, None),)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The full name for each cutoff, such as `recall@5`."""
        return tuple(name for name, _ in self.columns)

    @cached_property
    def headline(self) -> tuple[str, Cutoff | None]:
        """The name and cutoff that are shown if there is room for one: of several cutoffs, the one nearest to 5."""
        ranks = [(abs(k - _USUAL), k, name) for name, k in self.columns if isinstance(k, int)]
        if not ranks:
            return self.columns[0]
        _, k, name = min(ranks)
        return name, k

    @cached_property
    def has_budget(self) -> bool:
        """True if a cutoff is a token budget."""
        return any(isinstance(k, Budget) for k in self.ks)

    @cached_property
    def at_recall(self) -> bool:
        """True if a cutoff is a recall level: the metric reads the whole ranking."""
        return any(isinstance(k, Level) for k in self.ks)

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """The numbers per query that the metric needs besides hits."""
        return self.definition.sizes

    @cached_property
    def of_aspects(self) -> bool:
        """True if the metric needs gold with aspects; False for one that is not registered here."""
        return self.name in METRICS and METRICS[self.name].of_aspects

    @cached_property
    def of_unanswerable(self) -> bool:
        """True if the metric is about the queries without an answer; False for one that is not registered here."""
        return self.name in METRICS and METRICS[self.name].of_unanswerable

    @cached_property
    def _ranks(self) -> Cutoffs:
        levels = [k.recall if isinstance(k, Level) else k for _, k in self.columns]
        cutoffs = np.array([[inf if k is None else k] for k in levels], float)
        cutoffs.setflags(write=False)  # all formulas share this array
        return cutoffs

    def cutoffs(self, hits: Hits) -> Cutoffs:
        """The cutoffs in ranks, or the recall levels; a token budget has a rank per query."""
        if not self.has_budget:
            return self._ranks
        return np.array([ranks_within(k, hits) for k in self.ks])

    def reach(self, hits: Hits) -> Floats:
        """The number of ranks of each query that the metric reads at its first cutoff; infinite if it reads all."""
        ranks: Floats = np.broadcast_to(inf if self.at_recall else self.cutoffs(hits)[0], hits.queries)
        return ranks

    def scores(self, hits: Hits, c: Convention) -> dict[str, Floats]:
        """One number per query at each cutoff; queries without gold get the value of the convention."""
        c = c.of(self.name, cut=bool(self.ks)) if c.exceptions else c
        definition = self._renamed(c) if c.renames else self.definition
        if c.unjudged == "removed":
            hits = definition.rankings(hits)
        values = self._values(definition, hits, c)
        if definition.unit:
            undefined = hits.without_gold(self.rel) if definition.needs_gold else None
            values = values if undefined is None else np.where(undefined, np.nan, values)
        elif definition.needs_gold:
            values = _edge_cases(values, hits, c, self.rel)
        if c.clamped and not definition.unit:
            values = np.minimum(values, 1.0)
        unanswerable = hits.gold_items.unanswerable
        if definition.of_unanswerable or unanswerable is not None:
            about = _concerned(definition, unanswerable, hits.queries)
            values = values if about is None else np.where(about, values, np.nan)
        return dict(zip(self.names, values, strict=True))

    def concerns(self, unanswerable: Bools) -> Bools | None:
        """Flags of the queries that the metric is about: with an answer, or without one; None if it is about all."""
        known = self.name in METRICS or self.name in MEASURES
        return _concerned(self.definition, unanswerable, len(unanswerable)) if known else None

    def limits(self, c: Convention, hits: Hits) -> tuple[float, Floats | float]:
        """The lowest score and the highest score of each query; custom metrics have no limits, measures no highest."""
        if self.unit:
            return 0.0, inf
        if self.name not in METRICS or not self.definition.built_in:
            return -inf, inf
        c = c.of(self.name, cut=bool(self.ks)) if c.exceptions else c
        definition = self._renamed(c)
        given = [value for value in c.edge_values() if definition.needs_gold]
        high = 1.0 if c.clamped else np.maximum(definition.highest(c, hits), max([1.0, *given]))
        return min([0.0, *given]), high

    def _renamed(self, c: Convention) -> Definition:
        """The metric that the convention computes under this name."""
        return find_metric(c.renames[self.name]) if self.name in c.renames else self.definition

    def _values(self, definition: Definition, hits: Hits, c: Convention) -> Floats:
        """The result of the formula, one row per cutoff."""
        try:
            given = definition.formula(hits, self.cutoffs(hits), c, **self._settings)
            values = np.asarray(given, float)
        except KaratError:
            raise
        except Exception as error:
            raise BadArgument(f"the metric {self.name} failed: {type(error).__name__}: {error}") from error
        if not definition.built_in and np.isinf(values).any():
            raise BadArgument(f"the metric {self.name} returned an infinite score; expected numbers, or NaN")
        rows, queries = len(self.columns), hits.queries
        if values.shape == (rows, queries):
            return values
        if values.shape in ((queries,), (1, queries)):
            return np.broadcast_to(values, (rows, queries))
        problem = f"the metric {self.name} returned an array of shape {values.shape}"
        raise BadArgument(f"{problem}; expected {queries} numbers, one per query")

    def weights(self, hits: Hits, c: Convention) -> dict[str, Floats]:
        """The weight of each query in the pooled score at each cutoff; empty if the metric cannot be pooled."""
        c = c.of(self.name, cut=bool(self.ks)) if c.exceptions else c
        definition = self._renamed(c)
        if (pool := definition.pool) is None:
            return {}
        if c.unjudged == "removed":
            hits = definition.rankings(hits)
        rel = {} if self.rel is None else {"rel": self.rel}
        values = np.broadcast_to(pool(hits, self.cutoffs(hits), c, **rel), (len(self.columns), hits.queries))
        return dict(zip(self.names, values, strict=True))


def sign_of(column: str) -> float:
    """-1 for a metric of which less is better, such as `false_alarm@5`, else 1: times a difference, it is a gain."""
    return -1.0 if more_is_better(column) is False else 1.0


def more_is_better(column: str) -> bool | None:
    """The direction of a metric that is registered, or that a loaded run file describes; None if it is not known."""
    found = _NAME.match(column)
    name = found[0] if found else ""
    known = METRICS.get(name) or MEASURES.get(name)
    return STORED.get(name) if known is None else known.more_is_better


def _concerned(definition: Definition, unanswerable: Bools | None, queries: int) -> Bools | None:
    """Flags of the queries that a metric is about; None if it is about all of them."""
    if definition.of_unanswerable:
        return bool_column(unanswerable, queries)
    if unanswerable is None or not (definition.needs_gold or definition.of_judgements):
        return None
    return ~unanswerable


def _edge_cases(values: Floats, hits: Hits, c: Convention, rel: float | None) -> Floats:
    """The scores with the convention's values where there is no gold, or nothing was retrieved or found."""
    if c.none_found != 0:
        values = np.where(hits.retrieved_count(c, rel) > 0, values, c.none_found)
    if c.empty_retrieved != 0:
        values = np.where(hits.depth > 0, values, c.empty_retrieved)
    if (undefined := hits.without_gold(rel)) is None:
        return values
    values = np.where(undefined, c.empty_gold, values)
    if c.nothing_judged is not None:
        values = np.where(hits.judged_nothing(), c.nothing_judged, values)
    if c.both_empty is not None:
        values = np.where(undefined & (hits.depth == 0), c.both_empty, values)
    return values


def parse(text: str) -> Metric:
    """Parse one metric.

    Args:
        text: a name with optional settings and cutoffs, such as `ndcg@10` or `f(beta=2)@5,10`, or an alias such as
            `mrr` or `recall_at_5`.

    Returns:
        The `Metric`; raises `UnknownName` or `BadArgument` if the text is not one.

    Example:
        >>> karat.parse("recall_at_5") == karat.Metric("recall", (5,))
        True
    """
    whole = text.strip()
    call_text, at, cutoffs = whole.partition("@")
    if (other := _AT.fullmatch(call_text)) and not at:
        call_text, at, cutoffs = other["name"], "@", other["k"]
    call = Call(call_text, (), {}) if is_alias(call_text) else parse_call(call_text)
    definition = find_metric(call.name)
    if call.positional:
        first = next(iter(definition.settings), None)
        hint = f"{definition.name}({first}={write(call.positional[0])})" if first else definition.name
        raise BadArgument(f'a setting of "{whole}" has no name', hint=hint)
    ks = () if not at else read_levels(cutoffs, whole) if definition.at_recall else read_cutoffs(cutoffs, whole)
    if ks and not definition.cutoff:
        raise BadArgument(f"{definition.name} takes no cutoff", got=whole, hint=definition.name)
    return Metric(definition.name, ks, _settings(call.named, definition, whole))


def parse_stored(text: str) -> Metric:
    """Parse the text form of a metric that may not be registered here."""
    base, _, cutoffs = text.partition("@")
    call = parse_call(base)
    settings = {name: value for name, value in call.named.items() if isinstance(value, int | float | str)}
    known = METRICS.get(call.name)
    at_recall = "." in cutoffs or "0" in cutoffs.split(",") if known is None else known.at_recall
    read = read_levels if at_recall else read_cutoffs
    return Metric(call.name, read(cutoffs, text) if cutoffs else (), settings)


def parse_all(metrics: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Parse several metrics, from one text or from a list."""
    if isinstance(metrics, str):
        return _parse_text(metrics)
    if isinstance(metrics, Metric):
        return (parse(str(metrics)),)
    if not isinstance(metrics, Iterable) or isinstance(metrics, Mapping):
        raise BadArgument("expected metric names", got=metrics, hint=f'"{DEFAULT}"')
    read: list[Metric] = []
    for one in metrics:
        if not isinstance(one, str | Metric):
            raise BadArgument("expected a metric name", got=one, hint='"recall@5"')
        read += (parse(str(one)),) if isinstance(one, Metric) else _parse_text(one)
    if not read:
        raise BadArgument("no metric was requested", hint=f'"{DEFAULT}"')
    return tuple(read)


def _parse_text(text: str) -> tuple[Metric, ...]:
    read: tuple[Metric, ...] = cached(_parse_several, text)
    return read


def _parse_several(text: str) -> tuple[Metric, ...]:
    joined = _SPACE_INSIDE.sub("", text.strip())
    read = tuple(parse(part) for part in _SEPARATOR.split(joined) if part)
    if not read:
        raise BadArgument("no metric was requested", hint=f'"{DEFAULT}"')
    return read


def _settings(named: dict[str, object], definition: Definition, whole: str) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for name, value in named.items():
        if name not in definition.settings:
            close = nearest(name, definition.settings)
            takes = ", ".join(definition.settings) or "none"
            meant = f" Did you mean {close}?" if close else ""
            raise BadArgument(f'{definition.name} has no setting "{name}".{meant} It takes: {takes}')
        if (words := definition.words.get(name)) is not None:
            settings[name] = _word(str(value), words, f'"{name}" in "{whole}"')
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
            raise BadArgument(f'"{name}" in "{whole}" must be a number', got=value)
        settings[name] = float(value)
    return settings


def _word(value: str, words: tuple[str, ...], what: str) -> str:
    """A word that a setting takes; a longer form of it is accepted, such as exponential for exp."""
    for word in words:
        if value.lower() == word or (value.lower() in _LONG and _LONG[value.lower()] == word):
            return word
    raise BadArgument(f"{what} must be one of {', '.join(words)}", got=value, hint=nearest(value, words) or words[0])
