"""How well repeated judgements agree with one another."""

from __future__ import annotations

from collections.abc import Sequence

from karat.agreement import Kind, alpha


def agreement_note(votes: Sequence[Sequence[float]], repeats: int, kind: Kind = "nominal") -> tuple[str, ...]:
    """A sentence on repeats and their agreement, if there were any."""
    if repeats < 2 or not votes:
        return ()
    value = alpha(votes, kind)
    told = "cannot be told, for all judgements are the same" if value != value else f"is {value:.2f}"
    return (f"judged {repeats} times, the majority counts; the agreement (Krippendorff's alpha) {told}",)
