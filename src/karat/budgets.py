"""What must be known of every retrieved item: its tokens, for a budget such as `recall@500t`; whether it is a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from karat.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument, InputError
from karat.hits import Hits
from karat.judges import Ids, Judge
from karat.samples import Field, Samples
from karat.samples.keys import as_text, without_copies
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
    for texts in _kept(samples, hits, judge, samples.retrieved.each("text", c), c):
        for item in texts:
            text = as_text(item)
            if text not in known:
                known[text] = count(counter, text)
            amounts.append(known[text])
    return np.array(amounts, float)


def novelty(samples: Samples, hits: Hits, judge: Judge, c: Convention) -> Floats:
    """For every retrieved item, best first, 1 if it is not a copy of one above, else 0."""
    firsts: list[bool] = []
    for names in _kept(samples, hits, judge, identities(samples, judge, c), c):
        seen: set[object] = set()
        firsts += [not (name in seen or seen.add(name)) for name in names]  # type: ignore[func-returns-value]
    return np.array(firsts, float)


def identities(samples: Samples, judge: Judge, c: Convention) -> Iterator[list[object]]:
    """What tells the items of each query from one another: what the judge compares them by."""
    fields: tuple[Field, ...] = getattr(judge, "fields", ("text",))
    same: Callable[[str], str] = getattr(judge, "same", str)
    keys = [samples.retrieved.each(field, c) for field in fields if field in samples.retrieved.some]
    for columns in zip(*keys, strict=True):
        yield [tuple(None if v is None else same(as_text(v)) for v in item) for item in zip(*columns, strict=True)]


def _kept(
    samples: Samples, hits: Hits, judge: Judge, columns: Iterable[Sequence[Any]], c: Convention
) -> Iterator[Sequence[Any]]:
    """A column of every ranking without the copies that the convention removes."""
    names = identities(samples, judge, c) if c.duplicates != "once" else repeat(None)
    for depth, column, own in zip(hits.depth.tolist(), columns, names, strict=False):
        pairs: list[tuple[object, Any]] = list(zip(range(len(column)) if own is None else own, column, strict=True))
        kept = [value for _, value in without_copies(pairs, lambda pair: pair[0], c.duplicates)]
        if len(kept) != depth:
            raise BadArgument(f'the judge "{judge.name}" counts other items than were retrieved; none can be counted')
        yield kept
