"""The judge `contains`: a gold quote occurs in a chunk, or a chunk in a gold document.

Substring search in many long texts is slow, so two filters rule out most pairs first; `benchmarks` has their effect
as `quotes-*`. Both are exact: a filter never rules out a pair that matches.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import filterfalse, islice, pairwise
from json import dumps
from typing import Any, Literal, get_args

from karat._internal.display import percent
from karat._internal.grammar import write_call
from karat._internal.grams import sharing
from karat._internal.progress import track
from karat.conventions import Convention
from karat.errors import BadArgument, unknown
from karat.hits import Hits
from karat.judges.matches import Matches, texts_of
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


Direction = Literal["either", "chunk_in_gold", "gold_in_chunk"]
_STRIP = ("date", "speaker", "json")
_END = 64
_FEW_PAIRS = 20_000


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
        # White space alone is folded late, for the pairs that the filters leave; other folds come first.
        late = self.fold == ("space",)
        early = bool(self.fold) and not late
        characters = CharacterFilter(texts.chunks)
        substrings = None if self.fold else SubstringFilter(texts.chunks)  # compares texts that are not folded
        matches = Matches.of_texts(samples, texts, fold)
        rows = zip(texts.chunks, pairwise(texts.start), strict=True)
        for query, (chunks, (begin, end)) in enumerate(track(rows, len(samples), self.name)):
            compared = list(map(fold, chunks)) if early else chunks
            forms = cache(lambda rank, chunks=chunks: self._forms(chunks[rank - 1], fold if early else None))
            first = [] if substrings is None else [self._first_substring(chunk, substrings) for chunk in chunks]
            likely_pairs = self._likely_pairs(texts.gold[begin:end], compared, forms, fold)
            for gold in range(begin, end):
                text = fold(texts.gold[gold]) if early else texts.gold[gold]
                if not text or text.isspace():  # is in every text, so only a blank chunk satisfies it
                    found = [(rank, "both are blank") for rank, chunk in enumerate(compared, 1) if not chunk.strip()]
                else:
                    if likely_pairs is not None:
                        holders = likely = sorted(likely_pairs[gold - begin])
                    else:
                        holders = self._holders(text, compared, characters)
                        likely = (
                            self._candidates(text, compared, characters)
                            if substrings is None
                            else substrings.candidates(text, first)
                        )
                    found = self._search(text, compared, holders, likely, forms, fold if late else None)
                for rank, why in found:
                    matches.add(query, rank, gold, why)
        return matches.hits()

    def _likely_pairs(
        self, gold: Sequence[str], chunks: Sequence[str], forms: Callable[[int], list[str]], fold: Fold
    ) -> list[set[int]] | None:
        """For each gold text the ranks of the chunks of which one folded text contains the other.

        None if the pairs are few: it is faster to compare them all.
        """
        if len(gold) * len(chunks) <= _FEW_PAIRS:
            return None
        wholes = list(map(fold, gold))
        inside = [list(map(fold, forms(rank + 1))) for rank in range(len(chunks))]
        found = sharing(wholes, [[text] for text in wholes], list(map(fold, chunks)), inside)
        return [{place + 1 for place in own} for own in found]

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
                    found[rank] = "exact" if _equal(gold, chunks[rank - 1], fold) else "contains 100 %"
        if self.direction != "gold_in_chunk":
            for rank in likely:
                if rank not in found and (text := _form_in_gold(forms(rank), gold, fold)):
                    share = percent(min(len(text.strip()) / len(gold.strip()), 1.0))
                    found[rank] = "exact" if _equal(gold, text, fold) else f"is in the gold, {share} of it"
        return sorted(found.items())


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
    return fold is not None and chunk.split(None, 1)[0] == gold.split(None, 1)[0] and fold(chunk) == fold(gold)


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
