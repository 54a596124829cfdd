"""Provenance: how a run was made. Enough to tell if two runs may be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from typing import Any

from karat.hits import Gold
from karat.samples import Reading
from karat.samples.notes import FREE_TEXT, Note

_OF_ALL_QUERIES = {FREE_TEXT, "judge_agreement"}
"""Kinds of notes that describe all queries of a run together without counting them."""

_IF_GIVEN = ("commit", "settings")
"""Fields that are written only if they have a value."""


@dataclass(frozen=True, kw_only=True)
class Provenance(Reading):
    """The origin of a run: the data as it was read, and what was asked of it.

    It has no time and no machine: the same input gives the same bytes, at the same commit.
    """

    karat: str
    """The version of karat."""
    metrics: tuple[str, ...]
    judge: str
    judge_reason: str
    """The reason for the judge, if karat chose it."""
    compares: str = ""
    """The things that the judge compares: id, doc, text, quote, span or claim."""
    judge_settings: Mapping[str, Any] = field(default_factory=dict)
    convention: str
    tokens: str = ""
    """The function that counted tokens, if a metric has a token budget."""
    merge: str = ""
    """The way in which the steps of a query were made one ranking, if the samples have steps."""
    also: tuple[str, ...] = ()
    """The numeric fields of the samples that are summarised on request, such as cost."""
    commit: str = field(default="", compare=False)
    """The git commit of the working directory in which the run was saved; empty if it is not known."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the retriever, if the run is one of a sweep."""

    def changed(self, reading: Mapping[str, Any], **facts: Any) -> Provenance:
        """A copy with the facts of a reading and others, in a third of the time that `replace` takes."""
        copy = object.__new__(Provenance)
        copy.__dict__.update({**vars(self), **reading, **facts})
        return copy

    def with_reading(self, reading: Reading) -> Provenance:
        """The same, if the data as a whole was read like this; parts of it only know their own rows."""
        judged = [note for note in self.notes if not any(map(note.is_like, reading.notes))]
        return replace(self, **{**vars(reading), "notes": (*reading.notes, *judged)})

    def of_any_part(self) -> Provenance:
        """The same for a part of the queries: without notes that count, or that describe all queries together."""
        notes = tuple(note for note in self.notes if not (note.count or note.of or note.kind in _OF_ALL_QUERIES))
        return replace(self, notes=notes, missing=0, extra=0, skipped=0)

    def to_dict(self, commit: str = "") -> dict[str, Any]:
        """The same as plain values, with the commit of a run that is not saved yet."""
        values = {own.name: getattr(self, own.name) for own in fields(self) if own.name not in _IF_GIVEN}
        values |= {"commit": own} if (own := self.commit or commit) else {}
        values |= {"settings": dict(self.settings)} if self.settings else {}
        return values | {
            "metrics": list(self.metrics),
            "also": list(self.also),
            "notes": [note.to_dict() for note in self.notes],
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Provenance:
        """The provenance that `to_dict` wrote."""
        notes = tuple(map(Note.from_dict, given["notes"]))
        return cls(
            **{**given, "metrics": tuple(given["metrics"]), "also": tuple(given.get("also", ())), "notes": notes}
        )


def gold_digest(ids: Sequence[str], gold: Gold, texts: Sequence[str | None] | None = None) -> str:
    """A digest of the queries, with their texts if given, and of their gold, independent of the order of either."""
    each = []
    bounds = gold.start.tolist()
    grades = gold.grade.tolist()
    details = gold.full_detail()
    for row, query in enumerate(ids):
        items = range(bounds[row], bounds[row + 1])
        more = [details[i] and f"@{details[i]}" for i in items]
        parts = sorted(
            f"{len(gold.label[i])}:{gold.label[i]}={grades[i]!r}{own}" for i, own in zip(items, more, strict=True)
        )
        text = None if texts is None else texts[row]
        asked = "" if text is None else f"?{len(text)}:{text}"
        asked += "!" if gold.unanswerable is not None and gold.unanswerable[row] else ""
        each.append(blake2b(f"{len(query)}:{query}{asked}>{';'.join(parts)}".encode(), digest_size=16).digest())
    return blake2b(b"".join(sorted(each)), digest_size=16).hexdigest()
