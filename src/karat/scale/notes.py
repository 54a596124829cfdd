"""Notes of parts, as one call over all of their queries would have written them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from karat.tables import many

_NAMED = 2
"""How many examples a note names; as many as `karat.judges.seen` does."""
_HINT = "nothing matched"
"""What a note begins with that is true of a run only if no part of it has a hit."""
_APART = "no chunk is from a document with gold."
_COUNT = re.compile(r"(?P<count>\d[\d,]*) (?P<rest>.*)", re.DOTALL)
_EXAMPLES = re.compile(r"(?P<said>.*?) \((?P<named>query .*)\)", re.DOTALL)
_OF_GOLD = re.compile(r"of \d[\d,]* gold quotes? ")
_SINGULAR = {
    "gold range does ": "gold ranges do ",
    "chunk's range does ": "chunks' ranges do ",
    "chunk occurs ": "chunks occur ",
    "of gold occurs ": "of gold occur ",
    "list does not stand ": "lists do not stand ",
    "list holds items ": "lists hold items ",
}


class _Counted(NamedTuple):
    """Notes that say the same of different numbers."""

    total: int
    named: list[str]
    grouped: bool
    """Whether the number is written with commas."""


def join_notes(parts: Iterable[Sequence[str]], *, gold: int, hits: int) -> tuple[str, ...]:
    """Each note once, numbers summed; `gold` and `hits` are how many of each all parts have together."""
    each = [list(notes) for notes in parts]
    found: dict[str, _Counted | None] = {}
    for note in (note for notes in each for note in notes):
        if note.startswith(_HINT) and hits:
            continue
        if note.startswith(_APART) and not all(any(map(_is_apart, notes)) for notes in each):
            continue
        if note.startswith(_APART) and any(map(_is_apart, found)):
            continue
        _add(note, found)
    return tuple(text if counted is None else _written(text, counted, gold) for text, counted in found.items())


def _is_apart(note: str) -> bool:
    return note.startswith(_APART)


def _add(note: str, found: dict[str, _Counted | None]) -> None:
    begin = _COUNT.fullmatch(note)
    if begin is None:
        found.setdefault(note, None)
        return
    said, named = begin["rest"], ""
    if examples := _EXAMPLES.fullmatch(said):
        said, named = examples["said"], examples["named"].removesuffix("; …")
    if of := _OF_GOLD.match(said):
        said = f"of gold {said[of.end() :]}"
    said = next((several + said[len(one) :] for one, several in _SINGULAR.items() if said.startswith(one)), said)
    old = found.get(said) or _Counted(0, [], grouped=False)
    found[said] = _Counted(
        old.total + int(begin["count"].replace(",", "")),
        old.named + [text for text in re.split(r"; (?=query )", named) if text],
        old.grouped or bool(examples) or said.startswith(tuple(_SINGULAR.values())),
    )


def _written(said: str, counted: _Counted, gold: int) -> str:
    if counted.total == 1:
        said = next((one + said[len(two) :] for one, two in _SINGULAR.items() if said.startswith(two)), said)
    if said.startswith("of gold "):
        said = f"of {many(gold, 'gold quote', 'gold quotes')} {said.removeprefix('of gold ')}"
    count = f"{counted.total:,}" if counted.grouped else str(counted.total)
    if not counted.named:
        return f"{count} {said}"
    more = "; …" if counted.total > min(len(counted.named), _NAMED) else ""
    return f"{count} {said} ({'; '.join(counted.named[:_NAMED])}{more})"
