"""What a diagnosis says of one missed gold item."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

Cause = Literal[
    "crowded out",
    "below k",
    "case or white space",
    "nearly equal",
    "cut differently",
    "split over chunks",
    "right document",
    "nowhere in the run",
    "not retrieved",
]
"""Why a gold item was missed, in the order in which causes are tried: the first that applies is taken."""
CAUSES: tuple[Cause, ...] = get_args(Cause)


class Finding(NamedTuple):
    """A cause, the measured sentence, and the ranks of the retrieved items that it is about."""

    cause: Cause
    text: str
    ranks: tuple[int, ...] = ()


class Miss(NamedTuple):
    """A gold item that the top k lack, and why."""

    query_id: str
    query: str | None
    gold: str
    grade: float
    rank: int | None
    """Where it was found, if it was."""
    cause: Cause
    text: str
    """The cause with its numbers."""
    ranks: tuple[int, ...] = ()
    """The ranks of the retrieved items that the cause is about."""
    item: int = 0
    """Which of `run.gold(query_id)` it is."""
