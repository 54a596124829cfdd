"""The lines of a labels file: people's grades of retrieved items, one JSON object per line, in the order of the work.

The first line is a header: the pool, the scale, and its wording. Each other line is a `Label`. Lines are never changed:
a later line of the same person on the same item replaces an earlier one, and a line "undo" takes back that person's
last line. `StandingLabels` applies these rules; `gold/labels.py` writes the file.
"""

from __future__ import annotations

import re
import unicodedata
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from math import isfinite
from os import PathLike
from pathlib import Path
from statistics import median_low
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from karat.errors import BadArgument, InputError

FORMAT = 1
Answer = Literal["grade", "skip", "cannot tell", "undo"]
SETTLED = "settled"
"""The person whose label settles a disagreement."""
MARK = b'{"karat_labels":'
"""The first bytes of every labels file."""
_LONGEST_NAME, _LONGEST_NOTE = 60, 20_000
_JOINERS = "\u200c\u200d"
"""Invisible characters within Persian words and emoji."""
_PART = re.compile(r",(?=\s*\d+\s*=)")


class Quote(msgspec.Struct, frozen=True):
    """A marked passage of an item: characters `start` to `end` of its text."""

    start: int
    end: int
    text: str


class Label(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: the answer of a person to one query and item."""

    query: str
    """The id of the query."""
    item: str
    """The key of the item in the pool."""
    answer: Answer = "grade"
    grade: float | None = None
    """The grade, if the answer is one."""
    quotes: tuple[Quote, ...] = ()
    note: str = ""
    by: str = ""
    """The name of the person."""
    time: str = ""
    """UTC, ISO 8601 with milliseconds."""
    probability: float | None = None
    """The probability with which this label was drawn, if it was drawn."""
    order: str = ""
    """The digest of the order that it was drawn in, if it was drawn."""
    model: float | None = None
    """The model's opinion, if it was asked."""
    seen: bool = False
    """True if the person could see the model's opinion before."""
    number: int = 0
    """The running number of the line in its file, from 1."""


class Grade(msgspec.Struct, frozen=True):
    """A grade of a scale, and its wording."""

    grade: int
    words: str


class Scale(msgspec.Struct, frozen=True):
    """The grades that people choose from, in ascending order from 0."""

    grades: tuple[Grade, ...]

    @property
    def values(self) -> tuple[int, ...]:
        """The numbers of the grades."""
        return tuple(one.grade for one in self.grades)


GRADED = Scale(
    (
        Grade(0, "has nothing to do with the query"),
        Grade(1, "seems related, but does not answer it"),
        Grade(2, "has some answer, but unclear or hidden among other things"),
        Grade(3, "is dedicated to the query and has the exact answer"),
    )
)
"""The scale of UMBRELA, which the judge `relevance` uses, too."""
BINARY = Scale((Grade(0, "not relevant"), Grade(1, "relevant")))


def parse_scale(text: str) -> Scale:
    """A scale from text such as "0=no,1=partly,2=yes"; "graded" and "binary" are names."""
    named = {"graded": GRADED, "binary": BINARY}.get(text.strip().lower())
    if named is not None:
        return named
    grades = []
    for part in _PART.split(text):
        number, equals, words = (one.strip() for one in part.partition("="))
        if not (equals and number.isascii() and number.isdecimal() and words):
            raise BadArgument("a scale has the wording of each grade", got=text, hint="0=no,1=partly,2=yes")
        grades.append(Grade(int(number), words))
    return checked_scale(Scale(tuple(grades)))


def checked_scale(scale: Scale) -> Scale:
    """The scale; refused if its grades are not two to ten numbers from 0 to 9 in ascending order, the first 0."""
    values = list(scale.values)
    if len(values) < 2 or values[0] != 0 or values[-1] > 9 or values != sorted(set(values)):
        problem = "the grades of a scale are 0 and one or more numbers up to 9, in ascending order"
        raise BadArgument(problem, got=values, hint="0=no,1=partly,2=yes")
    return scale


class Header(msgspec.Struct, frozen=True):
    """The first line of a labels file; again a line wherever the pool has grown."""

    karat_labels: int
    """The version of the format."""
    pool: str
    """The digest of the pool."""
    scale: Scale


Key = tuple[str, str, str]
"""A query, an item and a person."""


class StandingLabels:
    """The labels that stand after some lines: the last of each person on each item, without those taken back."""

    def __init__(self, lines: Iterable[Label] = ()) -> None:
        self.latest: dict[Key, Label] = {}
        """The label of each query, item and person."""
        self._given: dict[Key, list[Label]] = {}
        self._order: dict[str, list[Key]] = {}
        self._names = {SETTLED: SETTLED}
        for line in lines:
            self.add(line)

    def add(self, line: Label) -> Label | None:
        """Apply the next line. An undo returns the label that it takes back, None if there is none."""
        if line.answer == "undo":
            return self._undo(self.name(line.by))
        key = (line.query, line.item, self.name(line.by))
        self._given.setdefault(key, []).append(line)
        self._order.setdefault(key[2], []).append(key)
        self.latest[key] = line
        return None

    def name(self, by: str) -> str:
        """The name of a person as it was first written: "Ada" and "ada" are one."""
        return self._names.setdefault(by.casefold(), by)

    def unswayed(self) -> dict[Key, Label]:
        """The last label of each query, item and person that was given without the opinion of a model."""
        own = {key: [one for one in given if not one.seen] for key, given in self._given.items()}
        return {key: given[-1] for key, given in own.items() if given}

    def last(self, by: str) -> Label | None:
        """The label that an undo of this person would take back."""
        order = self._order.get(self.name(by))
        return self._given[order[-1]][-1] if order else None

    def _undo(self, by: str) -> Label | None:
        order = self._order.get(by)
        if not order:
            return None
        key = order.pop()
        given = self._given[key]
        taken = given.pop()
        if given:
            self.latest[key] = given[-1]
        else:
            del self.latest[key], self._given[key]
        return taken


def by_item(latest: Mapping[Key, Label]) -> dict[tuple[str, str], dict[str, Label]]:
    """The label of each person, by query and item."""
    found: dict[tuple[str, str], dict[str, Label]] = {}
    for (query, item, by), label in latest.items():
        found.setdefault((query, item), {})[by] = label
    return found


def decide(labels: Mapping[str, Label]) -> float | None:
    """The grade of an item from the label of each person; None if it is not judged.

    A label of the person "settled" wins. Otherwise it is the median of the grades: for yes or no, the majority. An
    even number of grades has two medians, of which the lower counts: a tie is decided for the lower grade.
    """
    settled = labels.get(SETTLED)
    if settled is not None and settled.answer != "skip":
        return settled.grade
    grades = [one.grade for one in labels.values() if one.grade is not None]
    return median_low(grades) if grades else None


class LabelLines(NamedTuple):
    """The content of a labels file."""

    header: Header
    """The last header: that of the pool as it is now."""
    lines: list[Label]
    whole: int
    """The number of bytes of whole lines."""
    torn: bytes
    """A last line that was cut off when its writer ended."""

    def standing(self) -> StandingLabels:
        """The labels that stand at the end."""
        return StandingLabels(self.lines)


def read_labels(path: str | PathLike[str]) -> LabelLines:
    """Read a labels file, also while it is being written; a last line that is cut off is left out."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    return parse_labels(content, str(path))


def parse_labels(content: bytes, source: str) -> LabelLines:
    """The content of a labels file; a line that is no label is refused with its number."""
    begin = len(BOM_UTF8) if content.startswith(BOM_UTF8 + MARK) else 0
    content = content[begin:]
    if not content.startswith(MARK) and not MARK.startswith(content):
        raise InputError(f"{source} is no file of labels: its first line is not that of karat label", got=content[:60])
    whole = content.rfind(b"\n") + 1
    torn = content[whole:]
    if torn and _is_whole(torn):  # only the line break is missing
        whole, torn = len(content), b""
    header: Header | None = None
    lines: list[Label] = []
    for number, line in enumerate(content[:whole].removesuffix(b"\n").split(b"\n"), 1):
        try:
            if line.startswith(MARK):
                header = _HEADER.decode(line)
                checked_scale(header.scale)
            elif header is not None and line.strip():
                lines.append(checked_label(_LABEL.decode(line), header.scale))
        except (msgspec.DecodeError, UnicodeError, BadArgument) as error:
            problem = error.problem if isinstance(error, BadArgument) else str(error)
            hint = f"sed {number}d {source} > repaired.labels.jsonl"
            raise InputError(f"{source}, line {number} is no label: {problem}", got=line[:200], hint=hint) from error
        if header is not None and header.karat_labels != FORMAT:
            problem = f"{source} has labels of format {header.karat_labels}; this version of karat reads {FORMAT}"
            raise InputError(problem, hint="pip install --upgrade karat")
    if header is None:  # the header itself is cut off
        header = Header(FORMAT, "", GRADED)
    return LabelLines(header, lines, begin + whole, torn)


_LABEL, _HEADER = msgspec.json.Decoder(Label), msgspec.json.Decoder(Header)


def _is_whole(line: bytes) -> bool:
    """True if a line is complete: no beginning of a JSON object is one itself."""
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, UnicodeError):
        return False


def is_labels_file(path: Any) -> bool:
    """True if a path is that of a labels file."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(BOM_UTF8 + MARK)).removeprefix(BOM_UTF8).startswith(MARK)
    except (OSError, TypeError, ValueError):
        return False


def checked_person(name: str) -> str:
    """The name of a person with single spaces and letters of the usual width.

    It is refused if it is not 1 to 60 visible characters.
    """
    name = " ".join(unicodedata.normalize("NFKC", name).split())
    if not 1 <= len(name) <= _LONGEST_NAME or not all(char.isprintable() or char in _JOINERS for char in name):
        problem = f"the name of a person is 1 to {_LONGEST_NAME} visible characters"
        raise BadArgument(problem, got=name, hint="--by ada")
    return name


def checked_label(label: Label, scale: Scale) -> Label:
    """The label; refused if its values are not possible."""
    if label.answer not in get_args(Answer):
        raise BadArgument(f"an answer is one of: {', '.join(get_args(Answer))}", got=label.answer)
    if label.answer == "grade" and label.grade not in scale.values:
        raise BadArgument(f"a grade is one of {', '.join(map(str, scale.values))}", got=label.grade)
    if label.answer != "grade" and label.grade is not None:
        raise BadArgument(f'the answer "{label.answer}" has no grade', got=label.grade)
    if label.probability is not None and not 0 < label.probability <= 1:
        raise BadArgument("a probability is above 0 and at most 1", got=label.probability)
    if label.model is not None and not isfinite(label.model):
        raise BadArgument("the opinion of a model is a number", got=label.model)
    if wrong := [one for one in label.quotes if not (0 <= one.start < one.end and one.text.strip())]:
        raise BadArgument("a quote has a text, and ends after it starts", got=wrong[0])
    if len(label.note) > _LONGEST_NOTE:
        raise BadArgument(f"a note has at most {_LONGEST_NOTE:,} characters", got=label.note)
    if checked_person(label.by) != label.by:
        raise BadArgument(
            "a name has single spaces and letters of the usual width", got=label.by, hint=checked_person(label.by)
        )
    return label
