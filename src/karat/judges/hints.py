"""When nothing matched at all: what would have, so that nobody is left with a row of zeros."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from karat.conventions import Convention
from karat.judges.equality import Ids
from karat.judges.folding import fold_space
from karat.judges.protocol import Judge
from karat.samples import Samples

_LOOKED_AT = 200
_OTHER_IDS = (
    "nothing matched: no gold id is among those retrieved for its query; "
    "if chunks were cut anew, their ids changed, which gold given as texts or documents survives (docs/judges.md)"
)
_LIKE_IDS = "nothing matched: the gold looks like ids, and this judge compares texts; try the judge ids"


def nothing_matched(samples: Samples, judge: Judge, c: Convention) -> tuple[str, ...]:
    """A sentence on what to try, if a quick look at the first queries shows something."""
    if isinstance(judge, Ids):
        documents = _share_documents(samples, c) if judge.name == "ids" else 0
        if documents:
            return (f'nothing matched by id, but {documents} gold ids are documents of retrieved chunks: try at="doc"',)
    inside, looked = _quotes_inside(samples, c)
    if inside and not judge.name.startswith("contains"):
        return (f"nothing matched, but {inside} of {looked} gold texts lie in retrieved ones: try the judge contains",)
    if isinstance(judge, Ids):
        return (_OTHER_IDS,)
    return (_LIKE_IDS,) if samples.gold.plain and not _some_words(samples) else ()


def _share_documents(samples: Samples, c: Convention) -> int:
    if "doc" not in samples.retrieved.some or "id" not in samples.gold.fields:
        return 0
    rankings = _first(samples.retrieved.each("doc", c))
    gold = list(samples.gold.keys("id").each())
    return sum(key in {str(doc) for doc in docs} for docs, keys in zip(rankings, gold, strict=False) for key in keys)


def _quotes_inside(samples: Samples, c: Convention) -> tuple[int, int]:
    """How many gold texts lie in a chunk of their query, and how many were looked at."""
    if "text" not in samples.retrieved.fields & samples.gold.fields:
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
    return any(" " in str(text).strip() for text in samples.gold.columns.get("text", ())[:_LOOKED_AT])


def _first(rankings: Any) -> list[Sequence[Any]]:
    return [ranking for ranking, _ in zip(rankings, range(_LOOKED_AT), strict=False)]
