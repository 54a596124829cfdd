"""Judges of equality: the same id, or the very same text."""

from __future__ import annotations

from karat.conventions import Convention
from karat.errors import InputError
from karat.hits import Gold, Hits
from karat.judges.protocol import judge
from karat.samples import Field, RepeatedKey, Samples


class _Equality:
    """Matches items that are equal in one field."""

    name: str
    field: Field
    why: str

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Find the gold keys in the rankings."""
        for side, fields in (("retrieved", samples.retrieved.fields), ("gold", samples.gold.fields)):
            if self.field not in fields:
                have = ", ".join(sorted(fields))
                other = "exact" if self.field == "id" else "ids"
                raise InputError(
                    f'the judge "{self.name}" compares by {self.field}, but the items of {side} have only: {have}',
                    hint=f'judge="{other}"',
                )
        keys, grade = samples.gold.keys(self.field), samples.gold.grade
        try:
            found = samples.retrieved.find(self.field, keys, convention)
        except RepeatedKey:
            keys, grade = keys.merged(grade)
            found = samples.retrieved.find(self.field, keys, convention)
        return Hits(
            found.query,
            found.rank,
            found.gold,
            depth=found.depth,
            of=Gold(keys.key, keys.start, grade),
            equality=True,
            why=self.why,
            notes=_notes(found.rounded),
        )


@judge("ids")
class Ids(_Equality):
    """The same id; 1 and "1" are the same."""

    name, field, why = "ids", "id", "same id"


@judge("exact")
class Exact(_Equality):
    """The same text, to the letter."""

    name, field, why = "exact", "text", "same text"


def _notes(rounded: int) -> tuple[str, ...]:
    if not rounded:
        return ()
    said = f"{rounded} ranks were decided as ties: the scores are equal in single precision, as in trec_eval"
    return (said,)
