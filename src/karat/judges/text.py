"""The judge `text`: the same text but for what is folded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any
from unicodedata import category, normalize

from karat._internal.grammar import write_call
from karat._internal.progress import track
from karat.conventions import Convention
from karat.hits import Hits
from karat.judges.matches import Matches, texts_of
from karat.judges.protocol import JudgeBase, judge, names_of
from karat.samples import Samples


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


@judge("text")
class Text(JudgeBase):
    """The same text but for Unicode form, case, white space and punctuation; `fold` says which of them."""

    def __init__(self, fold: Any = ALL) -> None:
        self.fold = fold_names(fold)
        self._normal = folder(self.fold)
        self.name = "text" if self.fold == ALL else write_call("text", fold=self.fold)

    def same(self, text: str) -> str:
        """The folded text."""
        return self._normal(text)

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Look every folded chunk up among the folded gold of its query."""
        fold = folder(self.fold)
        texts = texts_of(samples, self.name, convention, fold)
        matches = Matches(samples, texts, fold)
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
        tried = [name for name in ("space", "case", "unicode", "punctuation") if name in self.fold]
        one = next((name for name in tried if FOLDS[name](chunk) == FOLDS[name](gold)), None)
        return f"same but for {SAID[one]}" if one else "same when folded"
