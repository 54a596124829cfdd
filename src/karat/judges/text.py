"""Folding of texts (Unicode form, case, punctuation, white space), and the judge `text`: equal when folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any
from unicodedata import category, combining, normalize

import numpy as np

from karat._internal.arrays import Ints, starts
from karat._internal.grammar import write_call
from karat._internal.progress import track
from karat.conventions import Convention
from karat.hits import Hits
from karat.judges.matches import Matches, texts_of
from karat.judges.protocol import Judge, check_names, judge
from karat.samples import Samples

_WORD = re.compile(r"\S+")


class _Blanks(dict[int, str]):
    """A cache for `str.translate` that maps punctuation to a space and any other character to itself."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = " " if category(char).startswith("P") else char
        return self[code]


_BLANKS = _Blanks()


def fold_space(text: str) -> str:
    """The text with single spaces for white space, and none at the ends."""
    # Most texts are folded already, and this check is faster: the space is the only printable white space.
    if text.isprintable() and "  " not in text and text[:1] != " " and text[-1:] != " ":
        return text
    return " ".join(text.split())


def fold_space_with_origins(text: str) -> tuple[str, Ints]:
    """The text with folded white space, and the offset in the original text of each of its characters."""
    begin, end = np.array([word.span() for word in _WORD.finditer(text)], np.int64).reshape(-1, 2).T
    size = end - begin + 1  # the space after a word has the offset at which the word ends
    start = starts(size)
    return fold_space(text), np.arange(start[-1]) + np.repeat(begin - start[:-1], size)


def _fold_punctuation(text: str) -> str:
    """Punctuation as white space; a text of punctuation alone stays as it is."""
    folded = fold_space(text.translate(_BLANKS))
    return folded or fold_space(text)


class _Decomposed(dict[int, str]):
    """A cache for `str.translate` that decomposes characters."""

    def __missing__(self, code: int) -> str:
        self[code] = normalize("NFKD", chr(code))
        return self[code]


class _Marks(dict[int, str]):
    """A cache for `str.translate` that maps combining marks to "m" and any other character to a space."""

    def __missing__(self, code: int) -> str:
        self[code] = "m" if combining(chr(code)) else " "
        return self[code]


_DECOMPOSED, _MARKS, _MARK_RUN = _Decomposed(), _Marks(), re.compile("mm+")
_UNBROKEN = re.compile(r"(?<![^\x00-\x7f])[^\x00-\x7f]{256}")
"""No ASCII character for so long that there may be a long run of combining marks."""


def fold_unicode(text: str) -> str:
    """The text in the form NFKC. Marks in long runs are sorted first: `normalize` takes quadratic time for that."""
    if _UNBROKEN.search(text):
        text = text.translate(_DECOMPOSED)
        pieces, at = [], 0
        for run in _MARK_RUN.finditer(text.translate(_MARKS)):
            pieces += [text[at : run.start()], *sorted(text[run.start() : run.end()], key=combining)]
            at = run.end()
        text = "".join([*pieces, text[at:]])
    return normalize("NFKC", text)


FOLDS: dict[str, Callable[[str], str]] = {
    "unicode": fold_unicode,
    "case": str.casefold,
    "punctuation": _fold_punctuation,
    "space": fold_space,
}
"""The folds in the order in which they are applied."""
ALL = tuple(FOLDS)
FOLD_LABELS = {"unicode": "Unicode form", "case": "case", "punctuation": "punctuation", "space": "white space"}


def fold_names(given: Any) -> tuple[str, ...]:
    """The names of folds in the order in which they are applied."""
    names = check_names("fold", given, FOLDS, f"one or several of: {', '.join(FOLDS)}")
    return tuple(name for name in FOLDS if name in names)


def folder(names: Iterable[str]) -> Callable[[str], str]:
    """A function that folds a text, with a cache."""
    steps = [FOLDS[name] for name in names]
    if not steps:
        return str
    if "case" in names and "unicode" in names:
        steps.insert(2, fold_unicode)  # case folding can change the Unicode form
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


@judge("text")
class Text(Judge):
    """The same text except for Unicode form, case, white space and punctuation; `fold` selects some of these."""

    def __init__(self, fold: Any = ALL) -> None:
        self.fold = fold_names(fold)
        self.settings = {"fold": list(self.fold)}
        self.name = "text" if self.fold == ALL else write_call("text", fold=self.fold)

    def same(self, text: str) -> str:
        """The folded text."""
        return folder(self.fold)(text)

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Look up every folded chunk among the folded gold texts of its query."""
        fold = folder(self.fold)
        texts = texts_of(samples, self.name, convention, fold)
        matches = Matches.of_texts(samples, texts, fold)
        rows = zip(texts.chunks, pairwise(texts.start), strict=True)
        for query, (chunks, (begin, end)) in enumerate(track(rows, len(samples), self.name)):
            wanted: dict[str, list[int]] = {}
            for gold in range(begin, end):
                wanted.setdefault(fold(texts.gold[gold]), []).append(gold)
            for rank, chunk in enumerate(chunks, 1):
                for gold in wanted.get(fold(chunk), ()):
                    matches.add(query, rank, gold, self._why(chunk, texts.gold[gold]))
        return matches.hits()

    def _why(self, chunk: str, gold: str) -> str:
        if chunk == gold:
            return "exact"
        folds = [name for name in ("space", "case", "unicode", "punctuation") if name in self.fold]
        one = next((name for name in folds if FOLDS[name](chunk) == FOLDS[name](gold)), None)
        return f"same except for {FOLD_LABELS[one]}" if one else "same when folded"
