"""Methods of fusion: one function each, from a matrix of legs × candidates to one score per candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Literal

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.grammar import parse_call, write, write_call
from karat.errors import BadArgument, unknown
from karat.fusion.candidates import NORMS, Candidates

_WITHOUT_SCORES = ("rank", "borda")
"""The normalisations that need ranks only."""

Formula = Callable[..., Floats]
"""Called with the matrix, NaN where a leg did not retrieve an item; with weights if it takes them; and its settings."""


@dataclass(frozen=True)
class FusionMethod:
    """A registered method."""

    name: str
    formula: Formula
    by: Literal["rank", "points", "score"]
    """The matrix that the formula reads: ranks, Borda points, or normalised scores."""
    weighted: bool
    """True if the legs may have weights."""
    limits: Mapping[str, tuple[float, float]]
    """The least and the greatest value of each setting."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings with their default values; methods of scores have a normalisation."""
        own = dict(getattr(self.formula, "__kwdefaults__", None) or {})
        return own | ({"norm": "min-max"} if self.by == "score" else {})

    @property
    def help(self) -> str:
        """The first line of the docstring."""
        return (self.formula.__doc__ or "").strip().partition("\n")[0]


FUSIONS: dict[str, FusionMethod] = {}


def _method(
    by: Literal["rank", "points", "score"], *, weighted: bool = False, **limits: tuple[float, float]
) -> Callable[[Formula], Formula]:
    """Register a function as a method: its name, its keyword-only arguments as settings, its docstring as help."""

    def register(formula: Formula) -> Formula:
        FUSIONS[formula.__name__] = FusionMethod(formula.__name__, formula, by, weighted, limits)
        return formula

    return register


def _sum(values: Floats) -> Floats:
    """The sum over the legs, the smallest first: legs in another order give the same digits, so ties stay ties."""
    given = np.where(np.isnan(values), 0.0, values)
    total: Floats = (np.sort(given, axis=0) if len(given) > 2 else given).sum(axis=0)
    return total


def _count(values: Floats) -> Floats:
    """The number of legs that retrieved each candidate."""
    count: Floats = (~np.isnan(values)).sum(axis=0).astype(float)
    return count


@_method("rank", weighted=True, k=(0, inf))
def rrf(rank: Floats, weights: Floats, *, k: float = 60) -> Floats:
    """Reciprocal rank fusion: the sum of weight / (k + rank); weights are 1 unless given."""
    return _sum(weights / (k + rank))


@_method("rank")
def isr(rank: Floats) -> Floats:
    """Inverse square rank: the sum of 1 / rank², times the number of legs that retrieved the item."""
    return _sum(1 / rank**2) * _count(rank)


@_method("rank", phi=(0, 1))
def rbc(rank: Floats, *, phi: float = 0.8) -> Floats:
    """Rank-biased centroid: the sum of (1 - phi) · phi^(rank - 1)."""
    return _sum((1 - phi) * phi ** (rank - 1))


@_method("points")
def borda(points: Floats) -> Floats:
    """Borda count: c - rank + 1 points of c candidates; those that a leg did not retrieve share the rest."""
    return _sum(points)


@_method("score", weighted=True)
def wsum(score: Floats, weights: Floats) -> Floats:
    """Weighted sum of the scores; without weights their mean, 0 where a leg did not retrieve the item."""
    return _sum(weights * score)


@_method("score")
def combsum(score: Floats) -> Floats:
    """Sum of the scores."""
    return _sum(score)


@_method("score")
def combmnz(score: Floats) -> Floats:
    """Sum of the scores, times the number of legs that retrieved the item."""
    return _sum(score) * _count(score)


@_method("score")
def combanz(score: Floats) -> Floats:
    """Mean of the scores over the legs that retrieved the item."""
    return _sum(score) / _count(score)


@_method("score")
def combmax(score: Floats) -> Floats:
    """Greatest score over the legs that retrieved the item."""
    greatest: Floats = np.fmax.reduce(score, axis=0)
    return greatest


@_method("score")
def combmin(score: Floats) -> Floats:
    """Least score over the legs that retrieved the item."""
    least: Floats = np.fmin.reduce(score, axis=0)
    return least


@_method("score")
def combmed(score: Floats) -> Floats:
    """Median of the scores over the legs that retrieved the item."""
    ordered, count = np.sort(score, axis=0), _count(score).astype(np.int64)  # NaN is sorted last
    column = np.arange(score.shape[1])
    median: Floats = (ordered[(count - 1) // 2, column] + ordered[count // 2, column]) / 2
    return median


@dataclass(frozen=True)
class Fuser:
    """A method with its settings, and the weights of the legs."""

    name: str
    settings: Mapping[str, Any]
    weights: tuple[float, ...] | None = None

    @property
    def method(self) -> FusionMethod:
        """The registered method."""
        return FUSIONS[self.name]

    @property
    def needs_scores(self) -> bool:
        """True if every leg needs scores."""
        return self.method.by == "score" and self.settings["norm"] not in _WITHOUT_SCORES

    def __str__(self) -> str:
        return write_call(self.name, **self.settings)

    def described(self) -> str:
        """The method and the weights, for people."""
        weights = "" if self.weights is None else f", weights {', '.join(map(write, self.weights))}"
        return f"{self}{weights}"

    def __call__(self, candidates: Candidates) -> Floats:
        """The fused score of each candidate."""
        method, legs = self.method, candidates.legs
        settings = {name: value for name, value in self.settings.items() if name != "norm"}
        values = (
            candidates.rank
            if method.by == "rank"
            else candidates.points
            if method.by == "points"
            else candidates.normalised(self.settings["norm"])
        )
        if not method.weighted:
            return method.formula(values, **settings)
        equal = 1 / legs if method.by == "score" else 1.0
        weights = np.array([equal] * legs if self.weights is None else self.weights, float)
        return method.formula(values, weights[:, None], **settings)


def parse_fuser(text: str, weights: Sequence[float] | str | None = None, legs: int | None = None) -> Fuser:
    """The method that a text such as `rrf(60)` or `wsum(norm=zmuv)` names, with weights for a number of legs."""
    if not isinstance(text, str):
        raise BadArgument("a method of fusion is a text", got=text, hint='"rrf(60)"')
    call = parse_call(text)
    method = FUSIONS.get(call.name.lower())
    if method is None:
        raise unknown("method of fusion", call.name, FUSIONS, f"one of: {', '.join(FUSIONS)}")
    known = method.settings
    if len(call.positional) > len(known):
        takes = f"takes {len(known)}" if known else "takes none"
        raise BadArgument(f"{method.name} has too many settings: it {takes}", got=text, hint=str(_example(method)))
    given = dict(zip(known, call.positional, strict=False))
    for name, value in call.named.items():
        if name not in known:
            raise unknown(f"setting of {method.name}", name, known, f"one of: {', '.join(known) or 'none'}")
        if name in given:
            raise BadArgument(f'"{name}" is given twice', got=text)
        given[name] = value
    settings = {name: _checked(method, name, value) for name, value in (known | given).items()}
    return Fuser(method.name, settings, check_weights(method, weights, legs))


def _example(method: FusionMethod) -> str:
    return write_call(method.name, **method.settings)


def _checked(method: FusionMethod, name: str, value: Any) -> Any:
    """The value of a setting: a normalisation, or a number within its limits."""
    if name == "norm":
        if not isinstance(value, str) or value not in NORMS:
            raise unknown("normalisation", str(value), NORMS, f"one of: {', '.join(NORMS)}")
        return value
    low, high = method.limits[name]
    number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    inside = number and (low <= value if high == inf else low < value < high)
    if not inside:
        wanted = f"a number from {low:g} on" if high == inf else f"between {low:g} and {high:g}"
        raise BadArgument(f"{name} of {method.name} must be {wanted}", got=value, hint=_example(method))
    return value


def check_weights(
    method: FusionMethod, weights: Sequence[float] | str | None, legs: int | None = None
) -> tuple[float, ...] | None:
    """The weights as numbers, one per leg; None if none are given."""
    if weights is None:
        return None
    hint = ", ".join(["0.7", "0.3", *["0.3"] * ((legs or 2) - 2)])
    if not method.weighted:
        others = " and ".join(name for name, own in FUSIONS.items() if own.weighted)
        raise BadArgument(f"{method.name} takes no weights: {others} do", got=weights, hint=f"wsum with weights {hint}")
    parts: Any = weights.replace(",", " ").split() if isinstance(weights, str) else weights
    try:
        numbers = tuple(float(part) for part in parts)
    except (TypeError, ValueError):
        raise BadArgument("weights are numbers, one per leg", got=weights, hint=hint) from None
    if legs is not None and len(numbers) != legs:
        raise BadArgument(f"expected {legs} weights, one per leg", got=weights, hint=hint)
    if not all(isfinite(number) and number >= 0 for number in numbers) or not any(numbers):
        raise BadArgument("weights must be finite, not below 0, and not all 0", got=weights, hint=hint)
    return numbers
