"""Choosing a judge by what the data have, and saying why."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from karat.conventions import Convention
from karat.errors import InputError
from karat.hits import Hits
from karat.judges.ids import Exact, Ids
from karat.judges.protocol import Judge, JudgeBase, find_judge, judge
from karat.judges.text import fold_space
from karat.samples import Samples
from karat.samples.notes import Note

_LOOKED_AT = 50


class Choice(NamedTuple):
    """A judge, and the reason that it was taken."""

    judge: Judge
    reason: str


def choose(samples: Samples) -> Choice:
    """The cheapest judge that fits the items of both sides."""
    both = samples.retrieved.all_fields & samples.gold.all_fields
    if "id" not in both and both >= {"doc", "start", "end"}:
        return Choice(find_judge("spans"), "both sides have ranges")
    if not both & {"id", "text"} and "doc" in both:
        return Choice(Ids(at="doc"), "both sides name documents")
    both &= {"id", "text"}
    if not both:
        raise InputError(
            "the items of retrieved and gold have nothing in common to be compared by",
            got=f"retrieved: {', '.join(sorted(samples.retrieved.all_fields))}; "
            f"gold: {', '.join(sorted(samples.gold.all_fields))}",
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
class Auto(JudgeBase):
    """Takes `ids`, `exact` or `spans`, by what the data have."""

    name = "auto"

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Judge with whichever judge fits."""
        return choose(samples).judge(samples, convention)


_LOOKED_AT_hints = 200


def nothing_matched(samples: Samples, judge: Judge, c: Convention) -> tuple[Note, ...]:
    """What to try if nothing matched, by a quick look at the first queries."""
    if isinstance(judge, Ids):
        documents = _share_documents(samples, c) if judge.name == "ids" else 0
        if documents:
            return (Note("nothing_matched", documents, details={"hint": "documents"}),)
    inside, looked = _quotes_inside(samples, c)
    if inside and not judge.name.startswith("contains"):
        return (Note("nothing_matched", inside, looked, details={"hint": "contains"}),)
    if isinstance(judge, Ids):
        return (Note("nothing_matched", details={"hint": "ids"}),)
    looks_like_ids = samples.gold.plain and not _some_words(samples)
    return (Note("nothing_matched", details={"hint": "texts"}),) if looks_like_ids else ()


def _share_documents(samples: Samples, c: Convention) -> int:
    if "doc" not in samples.retrieved.any_fields or "id" not in samples.gold.all_fields:
        return 0
    rankings = _first(samples.retrieved.each("doc", c))
    gold = list(samples.gold.keys("id").each())
    return sum(key in {str(doc) for doc in docs} for docs, keys in zip(rankings, gold, strict=False) for key in keys)


def _quotes_inside(samples: Samples, c: Convention) -> tuple[int, int]:
    """How many gold texts lie in a chunk of their query, and how many were looked at."""
    if "text" not in samples.retrieved.all_fields & samples.gold.all_fields:
        return 0, 0
    texts = [fold_space(str(text)) for text in samples.gold.columns["text"]]
    inside = looked = 0
    for chunks, (begin, end) in zip(
        _first(samples.retrieved.each("text", c)), pairwise(samples.gold.start.tolist()), strict=False
    ):
        folded = [fold_space(str(chunk)) for chunk in chunks]
        for text in texts[begin:end]:
            looked += 1
            inside += " " in text and any(text in chunk for chunk in folded)
    return inside, looked


def _some_words(samples: Samples) -> bool:
    """Whether any of the first gold items is more than one word."""
    return any(" " in str(text).strip() for text in samples.gold.columns.get("text", ())[:_LOOKED_AT_hints])


def _first(rankings: Any) -> list[Sequence[Any]]:
    return [ranking for ranking, _ in zip(rankings, range(_LOOKED_AT_hints), strict=False)]
