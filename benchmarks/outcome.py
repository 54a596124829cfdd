"""Outcomes: one measurement each, with its target and whether the target was met."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One row of the table; None if there is no value."""

    case: str
    peer: str = ""
    karat_ms: float | None = None
    peer_ms: float | None = None
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    note: str = ""


def speedup(case: str, peer: str, *, ours: float, theirs: float, target: float | None, note: str = "") -> Outcome:
    """The peer's time divided by karat's; higher is better. Times are in seconds; without a target, for comparison."""
    outcome = _timed(case, peer, ours, theirs, theirs / ours, note)
    if target is None:
        return outcome
    return replace(outcome, target=f"≥ {target:g}", met=theirs / ours >= target)


def slowdown(case: str, peer: str, *, ours: float, theirs: float, target: float, note: str = "") -> Outcome:
    """The time of karat divided by the peer's; lower is better. Times are in seconds."""
    outcome = _timed(case, peer, ours, theirs, ours / theirs, note)
    return replace(outcome, target=f"≤ {target:g}", met=ours / theirs <= target)


def _timed(case: str, peer: str, ours: float, theirs: float, ratio: float, note: str) -> Outcome:
    return Outcome(case=case, peer=peer, karat_ms=ours * 1e3, peer_ms=theirs * 1e3, ratio=ratio, note=note)


def write_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print the outcomes as the last line, for the process that started this one."""
    print(json.dumps([asdict(outcome) for outcome in outcomes]))


def read_outcomes(printed: str) -> list[Outcome]:
    """The outcomes that another process printed."""
    return [Outcome(**values) for values in json.loads(printed.splitlines()[-1])]
