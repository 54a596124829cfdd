"""The judge `contains`: a gold quote occurs in a chunk, or a chunk in a gold document.

Substring search in many long texts is slow, so two filters rule out most pairs first; `benchmarks` has their effect
as `quotes-*`. Both are exact: a filter never rules out a pair that matches.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import filterfalse, islice
from json import dumps
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.display import percent
from karat._internal.grammar import write_call
from karat._internal.grams import sharing
from karat._internal.progress import Progress
from karat._kernel import kernel
from karat.conventions import Convention
from karat.errors import BadArgument, unknown
from karat.hits import Hits
from karat.judges.matches import Matches, Texts, texts_of
from karat.judges.protocol import Judge, check_names, judge
from karat.judges.text import fold_names, folder
from karat.samples import Samples

Fold = Callable[[str], str]
_SAMPLED_TEXTS = 100


def _character_counts(rankings: Sequence[Sequence[str]], size: int) -> Counter[str]:
    """The characters in a sample of the chunks, of which each gives its first ones."""
    step = max(len(rankings) // _SAMPLED_TEXTS, 1)
    return Counter("".join(ranking[0][:size] for ranking in rankings[::step] if ranking))


class CharacterFilter:
    """Compares the characters of two texts, which is ten times as fast as to search one in the other."""

    def __init__(self, rankings: Sequence[Sequence[str]]) -> None:
        count = _character_counts(rankings, 100)
        characters = [char for char in count if not char.isspace()]
        self._rare = sorted(characters, key=count.__getitem__)
        target = 0.004 * count.total()  # a quote often lacks such a character, a chunk rarely
        self._frequent = sorted(characters, key=lambda char: abs(count[char] - target))

    def rare(self, text: str) -> tuple[str, str, str]:
        """Three rare characters of a text; every text that contains it has them too."""
        found = list(islice(filter(text.__contains__, self._rare), 3)) or [text.split(None, 1)[0][0]]
        return found[0], found[len(found) // 2], found[-1]

    def missing(self, text: str) -> str:
        """A character that a text lacks, or "" if none is known; no text that has it is part of the text."""
        return next(filterfalse(text.__contains__, self._frequent), "")


_SIZE = 16
_JSON_SAFE = [chr(code) for code in range(0x20, 0x7F) if chr(code) not in '"\\']
"""Characters that JSON does not escape."""


class SubstringFilter:
    """Compares a short substring after a certain letter, by a set of all such substrings of the gold."""

    def __init__(self, rankings: Sequence[Sequence[str]]) -> None:
        count = _character_counts(rankings, 1000)
        target = 0.01 * count.total()  # frequent enough to occur early, and rare enough for a small set
        letters = [char for char in count if char.isascii() and char.isalpha()] or ["a"]
        letter = min(letters, key=lambda char: (abs(count[char] - target), char))
        safe = "".join(re.escape(char) for char in _JSON_SAFE if char != letter)
        self._first = re.compile(f"{letter}([{safe}]{{{_SIZE}}})").search
        self._all = re.compile(f"{letter}([^{letter}]{{{_SIZE}}})").findall

    def first(self, text: str, begin: int, before: str) -> str | None:
        """The first substring from an offset on, the same in JSON; None if there is none before `before`."""
        found = self._first(text, begin)
        if found is None or (before and text.find(before, begin, found.end()) >= 0):
            return None
        return found[1]

    def candidates(self, text: str, substrings: Sequence[str | None]) -> list[int]:
        """The ranks of the chunks whose substring occurs in a text, or is not known."""
        known = set(self._all(text))
        return [rank for rank, substring in enumerate(substrings, 1) if substring is None or substring in known]


class Filters(NamedTuple):
    """The filters of all queries; short substrings are compared only if no text is folded."""

    characters: CharacterFilter
    substrings: SubstringFilter | None


Direction = Literal["either", "chunk_in_gold", "gold_in_chunk"]
_STRIP = ("date", "speaker", "json")
_END = 64
_FEW_PAIRS = 20_000
_BLOCK = 256
"""The number of queries between two steps of the progress bar."""
_IN_CHUNK, _IN_GOLD, _BOTH_BLANK = 1, 2, 4
"""The ways in which a gold text and a chunk match, as the kernel numbers them."""
_WAYS = {"either": _IN_CHUNK | _IN_GOLD, "gold_in_chunk": _IN_CHUNK, "chunk_in_gold": _IN_GOLD}
_Match = tuple[int, int, int, str]
"""Query, rank, gold number and reason of a match."""


@judge("contains")
class Contains(Judge):
    """A gold quote occurs in the chunk, or the chunk in a gold document; white space may differ."""

    compares = "quote"

    def __init__(self, direction: Direction = "either", *, strip: Any = (), fold: Any = ("space",)) -> None:
        if direction not in get_args(Direction):
            raise unknown("direction", str(direction), get_args(Direction), f"one of: {', '.join(get_args(Direction))}")
        self.direction = direction
        self.strip = check_names("part to strip", strip, _STRIP, f"strip=({', '.join(_STRIP)})")
        if self.strip and direction == "gold_in_chunk":
            raise BadArgument("strip applies to chunks that are searched in gold, not to gold_in_chunk")
        self.fold = fold_names(fold)
        self._head = _head_pattern(self.strip)
        self.settings = {"direction": direction, "strip": list(self.strip), "fold": list(self.fold)}
        written: dict[str, object] = {"direction": direction} if direction != "either" else {}
        written |= {"strip": self.strip} if self.strip else {}
        written |= {"fold": self.fold} if self.fold != ("space",) else {}
        self.name = write_call("contains", **written)

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Search each gold text in the chunks of its query, or each chunk in the gold."""
        texts = texts_of(samples, self.name, convention)
        fold = folder(self.fold)
        filters = cache(lambda: self._filters(texts.chunks))
        start = np.array(texts.start)
        matches = Matches.of_texts(samples, texts, fold)
        with Progress(len(samples), self.name) as bar:
            for first in range(0, len(samples), _BLOCK):
                last = min(first + _BLOCK, len(samples))
                found = self._find_compiled(texts, start, first, last, fold)
                for match in self._find(texts, first, last, filters(), fold) if found is None else found:
                    matches.add(*match)
                bar.step(last - first)
        return matches.hits()

    def _find_compiled(self, texts: Texts, start: Ints, first: int, last: int, fold: Fold) -> list[_Match] | None:
        """The matches in some queries by the kernel, which folds white space; None if there is none, or it cannot."""
        if (native := kernel()) is None or self.strip or self.fold != ("space",):
            return None
        ways = _WAYS[self.direction] | _BOTH_BLANK
        found = native.find_texts(texts.gold, start, texts.chunks, first, last, ways)
        if found is None:
            return None
        rows = np.frombuffer(found, np.int64).reshape(-1, 4).tolist()
        return [
            (query, rank, gold, _why(way, texts.gold[gold], texts.chunks[query][rank - 1], fold))
            for query, gold, rank, way in rows
        ]

    def _filters(self, chunks: Sequence[Sequence[str]]) -> Filters:
        # Short substrings are compared in texts that are not folded.
        return Filters(CharacterFilter(chunks), None if self.fold else SubstringFilter(chunks))

    def _find(self, texts: Texts, first: int, last: int, filters: Filters, fold: Fold) -> Iterator[_Match]:
        """The same without the kernel, for all folds, and for chunks whose heads are stripped."""
        # White space alone is folded late, for the pairs that the filters leave; other folds come first.
        early = bool(self.fold) and self.fold != ("space",)
        late = fold if self.fold and not early else None
        for query in range(first, last):
            begin, chunks = texts.start[query], texts.chunks[query]
            gold = texts.gold[begin : texts.start[query + 1]]
            if early:
                gold, compared = list(map(fold, gold)), list(map(fold, chunks))
            else:
                compared = chunks
            forms = cache(lambda rank, chunks=chunks: self._forms(chunks[rank - 1], fold if early else None))
            likely = self._likely(gold, compared, chunks, forms, filters, fold)
            for number, text in enumerate(gold):
                if not text or text.isspace():  # is in every text, so only a blank chunk satisfies it
                    blank = [rank for rank, chunk in enumerate(compared, 1) if not chunk.strip()]
                    found = [(rank, _why(_BOTH_BLANK, text, "", late)) for rank in blank]
                else:
                    found = self._search(text, compared, *likely(number), forms, late)
                for rank, why in found:
                    yield query, rank, begin + number, why

    def _likely(
        self,
        gold: list[str],
        compared: list[str],
        chunks: list[str],
        forms: Callable[[int], list[str]],
        filters: Filters,
        fold: Fold,
    ) -> Callable[[int], tuple[Iterable[int], Iterable[int]]]:
        """A function that returns, for a gold text, the ranks of the chunks that may contain it or occur in it."""
        if len(gold) * len(compared) > _FEW_PAIRS:  # then it is faster to find the pairs by an index than one by one
            wholes = list(map(fold, gold))
            inside = [list(map(fold, forms(rank + 1))) for rank in range(len(compared))]
            found = sharing(wholes, [[text] for text in wholes], list(map(fold, compared)), inside)
            ranks = [sorted(place + 1 for place in own) for own in found]
            return lambda number: (ranks[number], ranks[number])
        characters, substrings = filters
        if substrings is None:
            return lambda number: (
                self._holders(gold[number], compared, characters),
                self._candidates(gold[number], compared, characters),
            )
        firsts = [self._first_substring(chunk, substrings) for chunk in chunks]
        return lambda number: (
            self._holders(gold[number], compared, characters),
            substrings.candidates(gold[number], firsts),
        )

    def _holders(self, gold: str, chunks: Sequence[str], characters: CharacterFilter) -> list[int]:
        """The ranks of the chunks that may contain the gold."""
        if self.direction == "chunk_in_gold":
            return []
        a, b, c = characters.rare(gold)
        word = _longest_word(gold[:_END])
        return [i for i, s in enumerate(chunks, 1) if a in s and b in s and c in s and word in s]

    def _candidates(self, gold: str, chunks: Sequence[str], characters: CharacterFilter) -> list[int]:
        """The ranks of the chunks that may occur in the gold."""
        missing = "" if self.strip else characters.missing(gold)
        return [rank for rank, text in enumerate(chunks, 1) if not missing or missing not in text]

    def _head_of(self, chunk: str) -> re.Match[str]:
        head = self._head.match(chunk)
        assert head is not None  # the pattern matches the empty string
        return head

    def _first_substring(self, chunk: str, substrings: SubstringFilter) -> str | None:
        """A substring of the part of a chunk that must occur in the gold."""
        head = self._head_of(chunk)
        return substrings.first(chunk, head.end(), ": " if head[1] else "")

    def _forms(self, chunk: str, fold: Fold | None) -> list[str]:
        """The parts of a chunk of which one must occur in the gold; stripped before they are folded."""
        forms = _stripped(chunk, self._head_of(chunk), as_json="json" in self.strip)
        return list(forms if fold is None else map(fold, forms))

    def _search(
        self,
        gold: str,
        chunks: Sequence[str],
        holders: Iterable[int],
        likely: Iterable[int],
        forms: Callable[[int], list[str]],
        fold: Fold | None,
    ) -> list[tuple[int, str]]:
        """The ranks at which one text occurs in the other, with the reason."""
        found: dict[int, str] = {}
        if self.direction != "chunk_in_gold":
            for rank in holders:
                if _occurs(gold, chunks[rank - 1], fold):
                    found[rank] = _why(_IN_CHUNK, gold, chunks[rank - 1], fold)
        if self.direction != "gold_in_chunk":
            for rank in likely:
                if rank not in found and (text := _form_in_gold(forms(rank), gold, fold)):
                    found[rank] = _why(_IN_GOLD, gold, text, fold)
        return sorted(found.items())


def _why(way: int, gold: str, chunk: str, fold: Fold | None) -> str:
    """The reason of a match, given the chunk or the form of it that occurs in the gold."""
    if way == _BOTH_BLANK:
        return "both are blank"
    if _equal(gold, chunk, fold):
        return "exact"
    if way == _IN_CHUNK:
        return "contains 100 %"
    return f"is in the gold, {percent(min(len(chunk.strip()) / len(gold.strip()), 1.0))} of it"


def _form_in_gold(forms: Sequence[str], gold: str, fold: Fold | None) -> str | None:
    """The first form of a chunk that occurs in the gold."""
    return next((text for text in forms if text and not text.isspace() and _occurs(text, gold, fold)), None)


def _occurs(needle: str, text: str, fold: Fold | None) -> bool:
    """True if a text that is not blank occurs in another; both are folded only if some of its words occur."""
    if fold is None and "\n" in needle and "\n" not in text:
        return False  # a fast check for JSON
    if needle in text:
        return True
    # The longest words of three places; the last word alone is faster to split off.
    if fold is None or needle.rsplit(None, 1)[-1] not in text or _longest_word(needle[-_END:]) not in text:
        return False
    return _longest_word(needle[_END:-_END]) in text and fold(needle) in fold(text)


def _longest_word(text: str) -> str:
    return max(text.split(), key=len, default="")


def _equal(gold: str, chunk: str, fold: Fold | None) -> bool:
    """True if a chunk that contains the gold contains nothing else."""
    if chunk == gold:
        return True
    if fold is None or chunk.lstrip()[0] != gold.lstrip()[0]:  # neither is blank
        return False
    return chunk.split(None, 1)[0] == gold.split(None, 1)[0] and fold(chunk) == fold(gold)


def _head_pattern(strip: Sequence[str]) -> re.Pattern[str]:
    """Matches the begin of a chunk that need not be in the gold: a line with the date, and as a group the speaker."""
    date = r"(?:Date: [^\n]*(?:\n|\Z))?" if "date" in strip else ""
    return re.compile(date + ("(user: |assistant: )?" if "speaker" in strip else "()"))


def _stripped(chunk: str, head: re.Match[str], *, as_json: bool) -> tuple[str, ...]:
    """The chunk without its head, after a speaker only up to the next colon; and the same as JSON."""
    text, colon = chunk[head.end() :], ""
    if head[1]:
        text, colon, _ = text.partition(": ")
    if not as_json or not text.strip():  # as JSON, a blank text would be quotation marks
        return (text,)
    escaped = dumps(text)
    return text, escaped if not head[1] else escaped[1:-1] if colon else escaped[1:]
