"""Outcomes: what was measured, what was asked for, and whether the one meets the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One line of the table; None stands where there is nothing to say."""

    case: str
    peer: str = ""
    karat_ms: float | None = None
    peer_ms: float | None = None
    ratio: float | None = None
    asked: str = ""
    met: bool | None = None
    note: str = ""


def faster(case: str, peer: str, *, ours: float, theirs: float, asked: float, note: str = "") -> Outcome:
    """How many times as long as karat the peer takes, in seconds each; so many are asked for."""
    outcome = _timed(case, peer, ours, theirs, theirs / ours, note)
    return replace(outcome, asked=f"≥ {asked:g}", met=theirs / ours >= asked)


def not_slower(case: str, peer: str, *, ours: float, theirs: float, asked: float, note: str = "") -> Outcome:
    """How many times as long as the peer karat takes, where it may take no more than so many."""
    outcome = _timed(case, peer, ours, theirs, ours / theirs, note)
    return replace(outcome, asked=f"≤ {asked:g}", met=ours / theirs <= asked)


def _timed(case: str, peer: str, ours: float, theirs: float, ratio: float, note: str) -> Outcome:
    return Outcome(case=case, peer=peer, karat_ms=ours * 1e3, peer_ms=theirs * 1e3, ratio=ratio, note=note)


def tell(outcomes: Sequence[Outcome]) -> None:
    """Hand the outcomes to the process that asked for them, as the last line printed."""
    print(json.dumps([asdict(outcome) for outcome in outcomes]))


def hear(printed: str) -> list[Outcome]:
    """The outcomes that another process told."""
    return [Outcome(**told) for told in json.loads(printed.splitlines()[-1])]
