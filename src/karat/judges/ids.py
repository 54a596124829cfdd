"""The judges `ids` and `exact`: equal ids, equal documents, equal texts."""

from __future__ import annotations

from typing import Literal

from karat._internal.grammar import write_call
from karat.conventions import Convention
from karat.errors import BadArgument, InputError
from karat.hits import Gold, Hits
from karat.hits.combine import unite
from karat.judges.matches import need
from karat.judges.protocol import Judge, judge
from karat.samples import Field, RepeatedKey, Samples
from karat.samples.notes import Note


class _Equality(Judge):
    """Matches items that are equal in one field."""

    name: str
    field: Field
    why: str

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Find the gold keys in the rankings."""
        self._check(samples)
        keys = samples.gold.keys(self.field)
        units = samples.gold.units(keys.key) if "group" in samples.gold.columns else None
        try:
            found = samples.retrieved.find(self.field, keys, convention)
        except RepeatedKey:
            once = keys.once()
            found = samples.retrieved.find(self.field, once, convention).spread(once, keys)
            units = samples.gold.units(keys.key)
        hits = Hits(
            found.query,
            found.rank,
            found.gold,
            depth=found.depth,
            gold_items=Gold(keys.key, keys.start, samples.gold.grade),
            equality=True,
            gold_query=keys.query,
            why=self.why,
            notes=(Note("single_precision_ties", found.rounded),) if found.rounded else (),
        )
        return hits if units is None else unite(hits, units)

    def _check(self, samples: Samples) -> None:
        need(samples, self.field, self.name)


@judge("ids")
class Ids(_Equality):
    """The same id; 1 and "1" are equal. With at="doc", the same document: a chunk counts as its document."""

    def __init__(self, *, at: Literal["item", "doc"] = "item") -> None:
        if at not in ("item", "doc"):
            raise BadArgument('at must be "item" or "doc"', got=at)
        self.field = self.compares = "doc" if at == "doc" else "id"
        self.fields = (self.field,)
        self.settings = {"at": at}
        self.name = write_call("ids", at=at) if at == "doc" else "ids"
        self.why = "same document" if at == "doc" else "same id"

    def _check(self, samples: Samples) -> None:
        if self.field != "doc":
            return super()._check(samples)
        if "doc" not in samples.retrieved.all_fields:
            need(samples, "doc", self.name)
        if not {"doc", "id"} & samples.gold.all_fields:
            raise InputError('at="doc" compares documents, but not every gold item has a "doc" or an "id"')
        return None


@judge("exact")
class Exact(_Equality):
    """The same text, character by character."""

    name = "exact"
    field: Field = "text"
    why = "exact"
