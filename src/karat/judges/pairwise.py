"""Judges made of a function of one gold item and one retrieved item: `lambda gold, item: gold in item`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import pairwise
from typing import Any, Self, TypeAlias

import numpy as np

from karat._internal.grammar import write_call
from karat._internal.progress import track
from karat.conventions import Convention
from karat.errors import BadArgument, shorten
from karat.hits import Hits
from karat.judges.matches import Matches, identities
from karat.judges.protocol import CustomJudge, Judge
from karat.samples import Field, Samples
from karat.samples.keys import as_text, without_copies

Item: TypeAlias = str | dict[str, Any]
"""An item as the function sees it: a string if the items of its side are bare, else a record of its fields."""
_FIELDS: tuple[Field, ...] = ("id", "text", "doc", "start", "end")
_STRINGS = frozenset(("id", "text", "doc", "group"))


class PairwiseJudge(CustomJudge):
    """Calls a function with every gold item and every retrieved item of a query.

    The function returns True or False, or a similarity from 0 to 1. A similarity above 0 is a match, which
    earns the grade of the gold item times the similarity: it changes graded metrics such as nDCG, while
    recall and precision count every match. Anything else, and any exception, is an error that names the pair.

    Bare items are strings. Other items are dicts of those of `id`, `text`, `doc`, `start`, `end` that they
    have, with `score` on the retrieved side, `grade` and `group` on the gold side. Retrieved items are
    copies if they agree in all fields except the score.
    """

    fields = _FIELDS

    def __init__(
        self, function: Callable[..., Any], name: str | None = None, settings: Mapping[str, Any] | None = None
    ) -> None:
        try:
            signature(function).bind("gold", "item")
        except TypeError as error:
            hint = "lambda gold, item: gold == item"
            raise BadArgument(f"a judge function takes a gold item and a retrieved item: {error}", hint=hint) from error
        except ValueError:  # some built-in functions have no signature
            pass
        self._function = function
        self.settings = dict(settings or {})
        self.name = write_call(name or _name(function), **self.settings)

    def like(self, other: Judge) -> Self:
        """The same judge; bare strings are stored as ids or as texts, as another judge compares them."""
        fitted = copy(self)
        fitted.compares = other.compares
        return fitted

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Compare every pair of a query."""
        gold = _gold(samples)
        names: list[list[Hashable]] = []
        matches = Matches(samples, [_label(item) for item in gold], names, map(_key, gold))
        similarity: list[float] = []
        rows = zip(_rankings(samples, convention), identities(samples, self, convention), strict=True)
        bounds = list(pairwise(samples.gold.start.tolist()))
        for query, (items, own) in enumerate(track(rows, len(samples), self.name)):
            kept = without_copies(list(range(len(items))), own.__getitem__, convention.duplicates)
            names.append([own[i] for i in kept])
            for number in range(*bounds[query]):
                for rank, i in enumerate(kept, 1):
                    if value := self._similarity(gold[number], items[i], samples.ids[query]):
                        similarity.append(value)
                        why = f"matched by {self.name}" if value == 1 else f"similarity {min(value, 0.99):.2f}"
                        matches.add(query, rank, number, why)
        return matches.hits(np.array(similarity))

    def _similarity(self, gold: Item, item: Item, query: str) -> float:
        """The result of the function as a number; bool, and the numbers of other libraries, are fine."""
        try:
            result = self._function(gold, item, **self.settings)
        except Exception as error:
            where = f'(query "{query}", gold {shorten(gold)}, item {shorten(item)})'
            raise BadArgument(f'judge "{self.name}" raised {type(error).__name__}: {error} {where}') from error
        try:
            value = -1.0 if isinstance(result, str | bytes) else float(result)
        except (TypeError, ValueError, OverflowError):
            value = -1.0
        if not 0 <= value <= 1:
            where = f'(query "{query}", gold {shorten(gold)}, item {shorten(item)})'
            expected = f"True, False or a similarity from 0 to 1, not {shorten(result)}"
            raise BadArgument(f'judge "{self.name}" must return {expected} {where}')
        return value


def pairwise_maker(name: str, function: Callable[..., Any]) -> Callable[..., PairwiseJudge]:
    """The constructor of a registered function's judge; its settings are the keyword-only arguments of the function."""
    settings = [p for p in signature(function).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    if any(p.default is Parameter.empty for p in settings):
        raise BadArgument(f'judge "{name}": every setting needs a default value')
    PairwiseJudge(function)  # checks the arguments

    @wraps(function)
    def make(**given: Any) -> PairwiseJudge:
        return PairwiseJudge(function, name, given)

    make.__signature__ = Signature(settings)  # type: ignore[attr-defined]
    return make


def _name(function: Callable[..., Any]) -> str:
    """The name of a function; of an object that has none, the name of its class."""
    name: str = getattr(function, "__name__", type(function).__name__)
    return "lambda" if name == "<lambda>" else name


def _gold(samples: Samples) -> list[Item]:
    """The gold items of all queries."""
    gold = samples.gold
    if gold.plain:
        return list(map(as_text, gold.columns["text" if "text" in gold.columns else "id"]))
    columns = {field: gold.columns[field] for field in (*_FIELDS, "group") if field in gold.columns}
    return _records(columns | {"grade": gold.grade.tolist()})


def _rankings(samples: Samples, c: Convention) -> Iterator[list[Item]]:
    """The items of each query, best first."""
    given = samples.retrieved
    if given.plain:
        return (list(map(as_text, items)) for items in given.each("text" if "text" in given.any_fields else "id", c))
    columns: dict[str, Iterator[Sequence[Any]]] = {
        field: given.each(field, c) for field in _FIELDS if field in given.any_fields
    }
    if (scores := given.sorted_scores(c)) is not None:
        columns["score"] = scores
    return (_records(dict(zip(columns, own, strict=True))) for own in zip(*columns.values(), strict=True))


def _records(columns: Mapping[str, Sequence[Any]]) -> list[Item]:
    """Records from columns, without missing values; ids are strings."""
    return [
        {name: as_text(v) if name in _STRINGS else v for name, v in zip(columns, row, strict=True) if v is not None}
        for row in zip(*columns.values(), strict=True)
    ]


def _key(gold: Item) -> Hashable:
    """The identity of a gold item: equal items count once."""
    return gold if isinstance(gold, str) else tuple(gold.get(field) for field in _FIELDS)


def _label(gold: Item) -> str:
    if isinstance(gold, str):
        return gold
    place = f"{gold.get('doc')}[{gold.get('start')}:{gold.get('end')}]"
    return next((gold[field] for field in ("id", "text") if field in gold), place)
