"""Choosing a judge by what the data have, and saying why."""

from __future__ import annotations

from typing import NamedTuple

from karat.conventions import Convention
from karat.errors import InputError
from karat.hits import Hits
from karat.judges.equality import Exact, Ids
from karat.judges.protocol import Judge, find_judge, judge
from karat.samples import Samples

_LOOKED_AT = 50


class Choice(NamedTuple):
    """A judge, and the reason that it was taken."""

    judge: Judge
    reason: str


def choose(samples: Samples) -> Choice:
    """The cheapest judge that fits the items of both sides."""
    both = samples.retrieved.fields & samples.gold.fields
    if "id" not in both and both >= {"doc", "start", "end"}:
        return Choice(find_judge("spans"), "both sides have ranges")
    if not both & {"id", "text"} and "doc" in both:
        return Choice(Ids(at="doc"), "both sides name documents")
    both &= {"id", "text"}
    if not both:
        raise InputError(
            "the items of retrieved and gold have nothing in common to be compared by",
            got=f"retrieved: {', '.join(sorted(samples.retrieved.fields))}; "
            f"gold: {', '.join(sorted(samples.gold.fields))}",
            hint="give both sides ids, or both texts",
        )
    if both == {"text"}:
        return Choice(Exact(), "not both sides have ids")
    if both == {"id"} or not (samples.retrieved.plain or samples.gold.plain):
        return Choice(Ids(), "both sides have ids")
    items = list(map(str, samples.gold.columns["text"][:_LOOKED_AT]))
    # Ids hold no white space; a sentence does.
    if " " in "".join(items) and sum(" " in item for item in items) > len(items) / 2:
        return Choice(Exact(), "the items read like texts")
    return Choice(Ids(), "the items read like ids")


@judge("auto")
class Auto:
    """Takes `ids`, `exact` or `spans`, by what the data have."""

    name = "auto"

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Judge with whichever judge fits."""
        return choose(samples).judge(samples, convention)
