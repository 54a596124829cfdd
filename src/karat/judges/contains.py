"""The judge `contains`: a chunk comes from a gold document, or a gold quote lies in a chunk."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import filterfalse, islice, pairwise
from json import dumps
from typing import Any, Literal, get_args

from karat._internal.grammar import write_call
from karat._internal.progress import track
from karat.conventions import Convention
from karat.errors import BadArgument, unknown
from karat.hits import Hits
from karat.judges.matches import Matches, texts_of
from karat.judges.protocol import JudgeBase, judge, names_of
from karat.judges.text import fold_names, folder
from karat.samples import Samples

_TEXTS = 100
_OF_EACH = 100
_OFTEN = 0.004
"""A letter that a quote often lacks, and a chunk hardly ever."""


class Letters:
    """The letters in a sample of the chunks, white space apart.

    To look for a letter takes a tenth of the time that it takes to look for a word.
    """

    def __init__(self, rankings: Sequence[Sequence[str]]) -> None:
        step = max(len(rankings) // _TEXTS, 1)
        count = Counter("".join(ranking[0][:_OF_EACH] for ranking in rankings[::step] if ranking))
        often = _OFTEN * count.total()
        letters = [letter for letter in count if not letter.isspace()]
        self._rare = sorted(letters, key=count.__getitem__)
        self._frequent = sorted(letters, key=lambda letter: abs(count[letter] - often))

    def rare(self, text: str) -> tuple[str, str, str]:
        """Three rare ones of a text; whatever holds the text has them too."""
        found = list(islice(filter(text.__contains__, self._rare), 3)) or [text.split(None, 1)[0][0]]
        return found[0], found[len(found) // 2], found[-1]

    def missing(self, text: str) -> str:
        """One that a text lacks, or a blank if none is known; whatever has it does not lie in the text."""
        return next(filterfalse(text.__contains__, self._frequent), "")


_OF_EACH_pieces = 1000
_OFTEN_pieces = 0.01
"""A letter that stands often enough for short pieces, and seldom enough for few."""
_SIZE = 16
_PLAIN = [chr(code) for code in range(0x20, 0x7F) if chr(code) not in '"\\']
"""What JSON writes as it is."""


class Pieces:
    """A text that lies in another shares with it whatever stands between two of its letters.

    To look a piece up in a set takes a tenth of the time that it takes to search the whole.
    """

    def __init__(self, rankings: Sequence[Sequence[str]]) -> None:
        step = max(len(rankings) // _TEXTS, 1)
        count = Counter("".join(ranking[0][:_OF_EACH_pieces] for ranking in rankings[::step] if ranking))
        often = _OFTEN_pieces * count.total()
        letters = [letter for letter in count if letter.isascii() and letter.isalpha()] or ["a"]
        self._at = min(letters, key=lambda letter: (abs(count[letter] - often), letter))
        plain = "".join(re.escape(char) for char in _PLAIN if char != self._at)
        self._first = re.compile(f"{self._at}([{plain}]{{{_SIZE}}})").search
        self._all = re.compile(f"{self._at}([^{self._at}]{{{_SIZE}}})").findall

    def one(self, text: str, begin: int, before: str) -> str | None:
        """The first piece of a text from here on, the same in JSON; None if there is none, or not before that."""
        found = self._first(text, begin)
        if found is None or (before and text.find(before, begin, found.end()) >= 0):
            return None
        return found[1]

    def may_lie_in(self, text: str, pieces: Sequence[str | None]) -> list[int]:
        """The ranks of those whose piece is one of the text, and of those of which nothing is known."""
        known = set(self._all(text))
        return [rank for rank, piece in enumerate(pieces, 1) if piece is None or piece in known]


Direction = Literal["either", "chunk_in_gold", "gold_in_chunk"]
_STRIP = ("date", "speaker", "json")
_END = 64


@judge("contains")
class Contains(JudgeBase):
    """A gold quote lies in the chunk, or the chunk in a gold document; white space may differ."""

    compares = "quote"

    def __init__(self, direction: Direction = "either", *, strip: Any = (), fold: Any = ("space",)) -> None:
        if direction not in get_args(Direction):
            raise unknown("direction", str(direction), get_args(Direction), f"one of: {', '.join(get_args(Direction))}")
        self.direction = direction
        self.strip = names_of("part to strip", strip, _STRIP, f"strip=({', '.join(_STRIP)})")
        if self.strip and direction == "gold_in_chunk":
            raise BadArgument("strip is about chunks that come from gold; a gold quote is searched in all of the chunk")
        self.fold = fold_names(fold)
        self._head = _head(self.strip)
        settings: dict[str, object] = {"direction": direction} if direction != "either" else {}
        settings |= {"strip": self.strip} if self.strip else {}
        settings |= {"fold": self.fold} if self.fold != ("space",) else {}
        self.name = write_call("contains", **settings)

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Search each gold text in the chunks of its query, or each chunk in the gold."""
        texts = texts_of(samples, self.name, convention)
        fold = folder(self.fold)
        # Folded one by one where letters and words tell that it is worth while; that works for white space alone.
        later = self.fold == ("space",)
        early = bool(self.fold) and not later
        letters = Letters(texts.chunks)
        # Pieces are compared as they are, so they tell nothing where anything is folded.
        pieces = None if self.fold else Pieces(texts.chunks)
        forms_of = partial(self._forms, fold=fold if early else None)
        matches = Matches(samples, texts, fold)
        rows = zip(texts.chunks, pairwise(texts.start), strict=True)
        for query, (chunks, (begin, end)) in enumerate(track(rows, len(samples), self.name)):
            seen = list(map(fold, chunks)) if early else chunks
            forms = _Forms(chunks, forms_of)
            piece = [] if pieces is None else [self._piece(chunk, pieces) for chunk in chunks]
            for gold in range(begin, end):
                text = fold(texts.gold[gold]) if early else texts.gold[gold]
                if not text or text.isspace():
                    found: Iterable[tuple[int, str]] = _both_blank(seen)
                else:
                    likely = self._likely(text, seen, letters) if pieces is None else pieces.may_lie_in(text, piece)
                    found = self._search(text, seen, likely, forms, letters, fold if later else None)
                for rank, why in found:
                    matches.add(query, rank, gold, why)
        return matches.hits()

    def _likely(self, gold: str, chunks: Sequence[str], letters: Letters) -> list[int]:
        """The ranks of the chunks that may come from the gold, as far as a letter tells."""
        letter = "" if self.strip else letters.missing(gold)
        return [rank for rank, text in enumerate(chunks, 1) if not letter or letter not in text]

    def _piece(self, chunk: str, pieces: Pieces) -> str | None:
        """A piece of what must occur in the gold, found without cutting that out."""
        head = self._head(chunk)
        return pieces.one(chunk, head.end(), ": " if head[1] else "")

    def _forms(self, chunk: str, fold: Callable[[str], str] | None) -> list[str]:
        """What of a chunk must occur in the gold, in each form that will do; cut before the marks are folded away."""
        forms = _stripped(chunk, self._head(chunk), as_json="json" in self.strip)
        return list(forms if fold is None else map(fold, forms))

    def _search(
        self,
        gold: str,
        chunks: Sequence[str],
        likely: Iterable[int],
        forms: _Forms,
        letters: Letters,
        fold: Callable[[str], str] | None,
    ) -> list[tuple[int, str]]:
        """The ranks at which one of the two lies in the other, and why."""
        found: dict[int, str] = {}
        if self.direction != "chunk_in_gold":
            a, b, c = letters.rare(gold)
            word = _longest(gold[:_END])
            for rank in [i for i, s in enumerate(chunks, 1) if a in s and b in s and c in s and word in s]:
                if _lies_in(gold, chunks[rank - 1], fold):
                    found[rank] = "exact" if _same(gold, chunks[rank - 1], fold) else "contains 100 %"
        if self.direction != "gold_in_chunk":
            for rank in likely:
                if rank not in found and (text := _origin(forms[rank], gold, fold)):
                    share = min(len(text.strip()) / len(gold.strip()), 1.0)
                    told = f"comes from the gold, {share:.0%} of it".replace("%", " %")
                    found[rank] = "exact" if _same(gold, text, fold) else told
        return sorted(found.items())


def _origin(forms: Sequence[str], gold: str, fold: Callable[[str], str] | None) -> str | None:
    """The form of a chunk that comes from the gold, if one does."""
    return next((text for text in forms if text and not text.isspace() and _lies_in(text, gold, fold)), None)


def _lies_in(needle: str, text: str, fold: Callable[[str], str] | None) -> bool:
    """Whether a text that is not blank lies in another; the two are folded only if some of its words do."""
    if fold is None and "\n" in needle and "\n" not in text:
        return False  # soon seen, and usual where the text is JSON
    if needle in text:
        return True
    # The longest words of three places; to split off one word at the end is quicker still.
    if fold is None or needle.rsplit(None, 1)[-1] not in text or _longest(needle[-_END:]) not in text:
        return False
    return _longest(needle[_END:-_END]) in text and fold(needle) in fold(text)


def _longest(text: str) -> str:
    return max(text.split(), key=len, default="")


def _same(gold: str, chunk: str, fold: Callable[[str], str] | None) -> bool:
    """Whether a chunk that holds the gold is nothing more."""
    if chunk == gold:
        return True
    return fold is not None and chunk.split(None, 1)[0] == gold.split(None, 1)[0] and fold(chunk) == fold(gold)


def _both_blank(chunks: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Nothing lies in everything; so a gold item without text is satisfied by such a chunk alone."""
    return ((rank, "both are blank") for rank, chunk in enumerate(chunks, 1) if not chunk.strip())


def _head(strip: Sequence[str]) -> Callable[[str], Any]:
    """Finds what need not be in the gold at the beginning of a chunk: its line with the date, as a group who speaks."""
    date = r"(?:Date: [^\n]*(?:\n|\Z))?" if "date" in strip else ""
    return re.compile(date + ("(user: |assistant: )?" if "speaker" in strip else "()")).match


def _stripped(chunk: str, head: re.Match[str], *, as_json: bool) -> tuple[str, ...]:
    """The chunk without its head, of a line under its speaker only up to the next colon; and the same as JSON."""
    text, colon = chunk[head.end() :], ""
    if head[1]:
        text, colon, _ = text.partition(": ")
    if not as_json:
        return (text,)
    escaped = dumps(text)
    return text, escaped if not head[1] else escaped[1:-1] if colon else escaped[1:]


class _Forms(dict[int, list[str]]):
    """The forms of each chunk by its rank, made when they are asked for."""

    def __init__(self, chunks: Sequence[str], forms_of: Callable[[str], list[str]]) -> None:
        super().__init__()
        self._chunks = chunks
        self._forms_of = forms_of

    def __missing__(self, rank: int) -> list[str]:
        self[rank] = forms = self._forms_of(self._chunks[rank - 1])
        return forms
