"""What is wrong with a test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "not in the corpus",
    "conflicting gold",
    "no gold",
    "empty gold",
    "duplicate queries",
    "repeated gold",
    "no alternatives",
    "saturated",
    "small",
]
"""What can be wrong, the worst first."""
EXAMPLES = 3


@dataclass(frozen=True)
class Problem:
    """One kind of problem: how often it occurs, and the first few places."""

    kind: Kind
    serious: bool
    """Whether scores are wrong because of it, rather than less telling."""
    count: int
    text: str
    examples: list[str]


class Found:
    """Places at which a problem was seen, in order."""

    def __init__(self) -> None:
        self.count = 0
        self.examples: list[str] = []

    def add(self, example: str) -> None:
        """It was seen once more."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)

    def problem(self, kind: Kind, text: str, *, serious: bool) -> list[Problem]:
        """The problem, if it was seen at all."""
        return [Problem(kind, serious, self.count, text, self.examples)] if self.count else []
