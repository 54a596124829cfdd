"""What each retrieved item costs in tokens, for metrics at a budget such as `recall@500t`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from karat.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument, InputError
from karat.hits import Hits
from karat.judges import Ids, Judge
from karat.samples import Field, Samples
from karat.samples.keys import as_text, first_of_each
from karat.tokens import Counter, count


def costs(samples: Samples, hits: Hits, judge: Judge, counter: Counter, c: Convention) -> Floats:
    """The tokens of every retrieved item, best first, one query after the other."""
    if not callable(counter):
        raise BadArgument("tokens are counted by a function of a text", got=counter, hint="lambda text: len(…)")
    names_only = samples.retrieved.plain and isinstance(judge, Ids) and bool(hits.depth.any())
    if "text" not in samples.retrieved.fields or names_only:
        raise InputError(
            "a budget of tokens needs the texts of what was retrieved, and not every item has one",
            hint='a "text" in each record of retrieved, or a cutoff in ranks, such as recall@5',
        )
    known: dict[str, int] = {}
    amounts: list[int] = []
    # What tells copies, which a convention may remove, is what the judge compares by.
    fields: tuple[Field, ...] = getattr(judge, "fields", ("text",)) if c.duplicates == "remove" else ()
    same: Callable[[str], str] = getattr(judge, "same", str)
    keys = [samples.retrieved.each(field, c) for field in fields if field in samples.retrieved.some]
    for row, ranking in enumerate(samples.retrieved.each("text", c)):
        pairs = zip(zip(*map(next, keys), strict=True) if keys else range(len(ranking)), ranking, strict=True)
        own = first_of_each(pairs, lambda pair: _identity(pair[0], same))
        if len(own) != hits.depth[row]:
            raise BadArgument(f'the judge "{judge.name}" counts other items than were retrieved; no budget can be kept')
        for _, item in own:
            text = as_text(item)
            if text not in known:
                known[text] = count(counter, text)
            amounts.append(known[text])
    return np.array(amounts, float)


def _identity(values: Any, same: Callable[[str], str]) -> object:
    """What tells an item from others, by its fields or its place."""
    if isinstance(values, int):
        return values
    return tuple(None if value is None else same(as_text(value)) for value in values)
