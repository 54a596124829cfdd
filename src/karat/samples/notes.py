"""Notes: facts about how data was read and judged, as records. `report/notes.py` has a sentence for each kind.

Each batch, process and machine makes notes about its own queries; `merge_notes` adds up the counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from karat._internal.display import valid_texts, valid_utf8

EXAMPLES = 2
"""The number of examples that a note keeps."""
FREE_TEXT = "text"
"""The kind of a note that is a sentence already: from a custom judge, or from a run file of karat 0.1."""


@dataclass(frozen=True)
class Note:
    """One fact: its kind, how often it occurred, and the first examples."""

    kind: str
    count: int = 0
    of: int = 0
    """The number of things checked, if `count` is a share of them."""
    examples: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    """Other values for the sentence. Notes with different details are not merged, except that lists are united."""
    sums: Mapping[str, float] = field(default_factory=dict)
    """Other numbers that are added up when notes are merged."""

    def __post_init__(self) -> None:
        """Write foreign text in such a way that a run file can hold it."""
        object.__setattr__(self, "examples", tuple(valid_utf8(self.examples)))
        object.__setattr__(self, "details", dict(zip(self.details, valid_texts([*self.details.values()]), strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """The note as plain values, without empty fields."""
        values = {"kind": self.kind, "count": self.count, "of": self.of, "examples": list(self.examples)}
        values["sums"] = dict(self.sums)
        return {name: value for name, value in values.items() if value} | dict(self.details)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any] | str) -> Note:
        """The note from `to_dict`; a sentence from a run file of karat 0.1 stays a sentence."""
        if isinstance(given, str):
            return cls.of_text(given)
        known = {name: given[name] for name in ("count", "of", "sums") if name in given}
        details = {name: value for name, value in given.items() if name not in {"kind", "examples", *known}}
        return cls(given["kind"], examples=tuple(given.get("examples", ())), details=details, **known)

    def is_like(self, other: Note) -> bool:
        """True if another note is on the same thing, and both become one when parts are merged."""
        return self.kind == other.kind and _no_lists(self.details) == _no_lists(other.details)

    @classmethod
    def of_text(cls, text: str) -> Note:
        """A note that is a sentence already."""
        return cls(FREE_TEXT, details={"text": text})


class Tally:
    """A count of occurrences with the first of them as examples."""

    def __init__(self, shown: int = EXAMPLES) -> None:
        self.count = 0
        self.examples: list[str] = []
        self._shown = shown

    def add(self, example: str) -> None:
        """Count one more occurrence."""
        self.count += 1
        if len(self.examples) < self._shown:
            self.examples.append(example)

    def notes(self, kind: str, of: int = 0, **details: Any) -> tuple[Note, ...]:
        """One note, or none if nothing was counted."""
        return (Note(kind, self.count, of, tuple(self.examples), details),) if self.count else ()


def merge_notes(parts: Iterable[Sequence[Note]]) -> tuple[Note, ...]:
    """The notes of all parts, in the order of their first occurrence; equal kinds with equal details become one."""
    merged: list[Note] = []
    for note in (note for notes in parts for note in notes):
        for place, other in enumerate(merged):
            if other.is_like(note):
                examples = (*other.examples, *note.examples)[:EXAMPLES]
                sums = {name: other.sums.get(name, 0) + note.sums.get(name, 0) for name in {**other.sums, **note.sums}}
                total = other.count + note.count
                merged[place] = replace(
                    other, count=total, of=other.of + note.of, examples=examples, sums=sums,
                    details=_united(other.details, note.details),
                )  # fmt: skip
                break
        else:
            merged.append(note)
    return tuple(merged)


def _no_lists(details: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if not isinstance(value, list)}


def _united(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The details of two notes: equal, except for lists, of which parts of the data have parts."""
    lists = {name: value for name, value in one.items() if isinstance(value, list)}
    return {**one, **{name: sorted({*value, *other.get(name, [])}) for name, value in lists.items()}}
