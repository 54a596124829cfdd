"""The items that parts kept, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from karat.arrays import starts
from karat.items import Extent, Kept, cut


def join_kept(parts: Sequence[Kept]) -> Kept:
    """The items of all parts. Whether gold was seen in another part nobody has looked, unless there is only one."""
    if len(parts) == 1:
        return parts[0]
    retrieved = _columns([part.retrieved for part in parts])
    gold = _columns([part.gold for part in parts])
    gold.pop("seen", None)
    both = [side for side in (retrieved, gold) if "text" in side]
    for side, column in zip(both, cut([side["text"] for side in both]), strict=True):
        side["text"] = column
    return Kept(
        retrieved,
        starts(np.concatenate([np.diff(part.start) for part in parts])),
        gold,
        starts(np.concatenate([np.diff(part.gold_start) for part in parts])),
        Extent(min(part.extent.places for part in parts), whole=False),
    )


def _columns(parts: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Columns one after the other, None where a part lacks one."""
    names = dict.fromkeys(name for part in parts for name in part)
    size = [len(next(iter(part.values()), ())) for part in parts]
    return {
        name: list(chain.from_iterable(part.get(name, [None] * n) for part, n in zip(parts, size, strict=True)))
        for name in names
    }
