"""Folding: taking two texts for the same though they differ in case, white space, punctuation or Unicode form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from unicodedata import category, normalize

from karat.judges.settings import names_of


class _Blanks(dict[int, str]):
    """Maps punctuation to a space and everything else to itself; each character is looked up once."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = " " if category(char).startswith("P") else char
        return self[code]


_BLANKS = _Blanks()


def fold_space(text: str) -> str:
    """Every run of white space as one space, none at the ends."""
    # Most texts are folded already, and to see that is quicker: of white space only the space is printable.
    if text.isprintable() and "  " not in text and text[:1] != " " and text[-1:] != " ":
        return text
    return " ".join(text.split())


def _fold_punctuation(text: str) -> str:
    """Punctuation as white space; a text of nothing else stays what it is."""
    folded = fold_space(text.translate(_BLANKS))
    return folded or fold_space(text)


def _fold_case(text: str) -> str:
    return text.casefold()


def _fold_unicode(text: str) -> str:
    return normalize("NFKC", text)


# In the order in which they are applied. Folding the case can leave a text in another form, hence unicode once more.
FOLDS: dict[str, Callable[[str], str]] = {
    "unicode": _fold_unicode,
    "case": _fold_case,
    "punctuation": _fold_punctuation,
    "space": fold_space,
}
ALL = tuple(FOLDS)
SAID = {"unicode": "Unicode form", "case": "case", "punctuation": "punctuation", "space": "white space"}


def fold_names(given: Any) -> tuple[str, ...]:
    """The names of folds in the order in which they are applied."""
    names = names_of("fold", given, FOLDS, f"one or several of: {', '.join(FOLDS)}")
    return tuple(name for name in FOLDS if name in names)


def folder(names: Iterable[str]) -> Callable[[str], str]:
    """A function that folds a text, and remembers what it folded."""
    steps = [FOLDS[name] for name in names]
    if not steps:
        return str
    if "case" in names and "unicode" in names:
        steps.insert(2, _fold_unicode)
    known: dict[str, str] = {}

    def fold(text: str) -> str:
        folded = known.get(text)
        if folded is None:
            folded = text
            for step in steps:
                folded = step(folded)
            known[text] = folded
        return folded

    return fold
