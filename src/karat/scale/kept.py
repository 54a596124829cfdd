"""The items that partial runs kept, as one run of all their queries would have kept them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from karat.arrays import Ints, starts
from karat.items import Extent, Kept
from karat.keeping import LOOKED_THROUGH, seen
from karat.samples import Field
from karat.scale.items import join_kept

_RETRIEVED = ("id", "text", "doc", "score")
_GOLD = ("id", "text", "doc", "grade", "item", "label")


def merge_kept(parts: Sequence[Kept], depth: Ints, places: int, judge: str) -> Kept:
    """The items of all parts, in no more places than all queries together have.

    Whether a gold item was seen in the ranking of any query can be told if it was, or if the parts kept the rankings
    whole; if neither, nothing is said of any.
    """
    joined = join_kept([_fewer(part, places) for part in parts])
    retrieved, gold = _sorted(joined.retrieved, _RETRIEVED), _sorted(joined.gold, _GOLD)
    looked = all(part.extent.whole for part in parts) and int(depth.sum()) <= LOOKED_THROUGH
    if looked:
        field: Field = "doc" if judge == "ids(at=doc)" else "id"
        elsewhere = seen(gold, field, [part.retrieved.get(field, ()) for part in parts])
        own = chain.from_iterable(part.gold["seen"] for part in parts)
        gold["seen"] = [here or there for here, there in zip(own, elsewhere, strict=True)]
        stored = np.concatenate([np.diff(part.start) for part in parts])
        looked = all(gold["seen"]) or len(parts) == 1 or bool((stored == depth).all())
    if not looked:
        gold.pop("seen", None)
    return Kept(retrieved, joined.start, gold, joined.gold_start, Extent(places, looked))


def _fewer(part: Kept, places: int) -> Kept:
    """The items of a part with fewer places of each ranking: the more queries, the fewer are kept of each."""
    size = np.minimum(np.diff(part.start), places)
    start = starts(size)
    flat = (np.arange(int(start[-1])) + np.repeat(part.start[:-1] - start[:-1], size)).tolist()
    retrieved = {name: [column[i] for i in flat] for name, column in part.retrieved.items()}
    return Kept(retrieved, start, part.gold, part.gold_start, part.extent)


def _sorted(columns: Mapping[str, Sequence[Any]], names: Sequence[str]) -> dict[str, Any]:
    return {name: columns[name] for name in names if name in columns}
