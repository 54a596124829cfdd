"""Cutoffs of metrics: ranks, as in `recall@5`, token budgets (`recall@500t`) and recall levels (`iprec@0.5`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.grammar import write
from karat.errors import BadArgument
from karat.hits import Hits

LARGEST = 10**12
"""The largest cutoff, and the largest number of a setting."""


@dataclass(frozen=True)
class Budget:
    """A token budget as a cutoff, written `500t`: the longest prefix of the ranking that fits."""

    tokens: int

    def __str__(self) -> str:
        return f"{self.tokens}t"


@dataclass(frozen=True)
class Level:
    """A recall level from 0 to 1 as the cutoff of a metric such as `iprec@0.5`."""

    recall: float

    def __str__(self) -> str:
        return write(float(self.recall))


Cutoff: TypeAlias = int | Budget | Level


def is_cutoff(k: object) -> bool:
    """True for a valid cutoff."""
    if isinstance(k, Level):
        return 0 <= k.recall <= 1
    number = k.tokens if isinstance(k, Budget) else k
    return type(number) is int and 1 <= number <= LARGEST


def ranks_within(k: Cutoff, hits: Hits) -> Floats:
    """The number of ranks of each query within a cutoff."""
    if not isinstance(k, Budget):
        return np.full(hits.queries, k.recall if isinstance(k, Level) else float(k))
    if "tokens" not in hits.totals.at_rank:
        raise BadArgument(f"@{k} is a token budget, but these hits have no token counts", hint="karat.evaluate(…)")
    return hits.totals.ranks_within("tokens", k.tokens)


def read_cutoffs(text: str, whole: str) -> tuple[Cutoff, ...]:
    """The ranks and token budgets of a metric, which is named in errors."""
    hint = f"{whole.partition('@')[0]}@1,5,10"
    ks: list[Cutoff] = []
    for part in text.split(","):
        digits = part.strip().removesuffix("t")
        if not (digits.isascii() and digits.removeprefix("-").isdecimal()):
            problem = "a cutoff is a whole number, or a token budget such as 500t"
            budget = re.fullmatch(r"(\d+)\s*(?:T|tok|tokens?)", part.strip())
            base = whole.partition("@")[0]
            raise BadArgument(problem, got=whole, hint=f"{base}@{budget[1]}t" if budget else hint)
        if len(digits) > len(str(LARGEST)) or not 1 <= int(digits) <= LARGEST:
            raise BadArgument("a cutoff is at least 1 and at most 10^12", got=whole, hint=hint)
        ks.append(Budget(int(digits)) if part.strip().endswith("t") else int(digits))
    return tuple(dict.fromkeys(ks))


def read_levels(text: str, whole: str) -> tuple[Cutoff, ...]:
    """The recall levels of a metric that takes these instead of ranks."""
    ks: list[Cutoff] = []
    for part in text.split(","):
        if not re.fullmatch(r"[01]|[01]?\.\d{1,9}|[01]\.", part.strip()) or float(part) > 1:
            hint = f"{whole.partition('@')[0]}@0.1,0.5,1"
            problem = "the cutoff of this metric is a recall level from 0 to 1, with at most 9 decimal places"
            raise BadArgument(problem, got=whole, hint=hint)
        ks.append(Level(float(part)))
    return tuple(dict.fromkeys(ks))
