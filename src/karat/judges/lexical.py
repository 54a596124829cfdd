"""Support by words, without a model: a heuristic. A context supports a claim if it says most of what the claim says.

Words are compared without their endings and weighed by how rare they are among the contexts of the sample; little
words count little. A number of the claim must be there, and what the one denies the other must not state. It knows
no synonyms and does not notice who did what to whom: docs/judges.md has what that costs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log
from typing import NamedTuple
from unicodedata import normalize

from karat.judges.support import NONE, Support
from karat.judges.tokens import sentences

THRESHOLD = 0.7
"""The share of a claim's weight that must be found; between 0.5 and 0.75 the agreement with people hardly changes."""
_SURER = 0.5
"""Words that are gathered from several contexts say less: by this much of what is left above the threshold."""
_LITTLE = 0.1
"""What a little word weighs beside another that is as frequent."""
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]+(?:['’][^\W\d_]+)*")
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_DENIALS = frozenset(("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot"))
_LITTLES = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "been", "being", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "hers", "him", "his", "i", "if", "in", "into", "is", "it",
    "its", "may", "me", "might", "must", "my", "of", "on", "or", "our", "shall", "she", "should", "so", "some",
    "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too",
    "under", "up", "us", "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom", "whose",
    "will", "with", "would", "you", "your", "all", "also", "any", "after", "again", "about", "only", "other", "more",
    "most", "over", "very",
))  # fmt: skip
_ENDINGS = (
    "ational", "ation", "ments", "ment", "ness", "ings", "ing", "ied", "ies", "ers", "ed", "er", "es", "ly", "s",
)  # fmt: skip
_STEM = 4
"""How much of a word is left at least where an ending is taken off."""


class _Said(NamedTuple):
    """What one or two sentences say: their words, those of them that name or number something, whether they deny."""

    words: frozenset[str]
    names: frozenset[str] = frozenset()
    denies: bool = False


class Words:
    """The contexts of one sample, ready to be asked about claims."""

    def __init__(self, contexts: Sequence[str], threshold: float = THRESHOLD) -> None:
        self._threshold = threshold
        self._said = [list(_said(context)) for context in contexts]
        all_words = [frozenset().union(*(said.words for said in own)) for own in self._said]
        self._frequency = Counter(word for words in all_words for word in words)
        self._size = len(contexts)
        self._texts = [_folded(context) for context in contexts]

    def support(self, claim: str) -> Support:
        """The contexts that say what the claim says; if none does alone, those that do together."""
        whole = _folded(claim)
        verbatim = frozenset(n for n, text in enumerate(self._texts) if whole and whole in text)
        if verbatim:  # a passage of many sentences, too, which no one or two of them could hold
            return Support(verbatim, why="word for word")
        asked = _ask(claim)
        weights = {word: self._weight(word) for word in asked.words}
        best = [_best(asked, own, weights) for own in self._said]
        alone = {n: share for n, (share, _) in enumerate(best) if share >= self._threshold}
        if alone:
            return Support(frozenset(alone), why=_told(alone.values()))
        return self._together(asked, weights, best)

    def _together(self, asked: _Said, weights: Mapping[str, float], best: Sequence[tuple[float, _Said]]) -> Support:
        """The contexts from the top that complete one another, each adding at least a word that counts."""
        enough = self._threshold + _SURER * (1 - self._threshold)
        found: set[str] = set()
        used: list[int] = []
        for n, (_, said) in enumerate(best):
            fresh = (said.words & asked.words) - found
            if any(word not in _LITTLES for word in fresh):
                found |= fresh
                used.append(n)
            if len(used) > 1 and (whole := _share(asked, found, weights)) >= enough:
                return Support(frozenset(), (frozenset(used),), f"words: {_percent(whole)}, taken together")
        return NONE

    def _weight(self, word: str) -> float:
        rarity = log(1 + (self._size + 1) / max(self._frequency[word], 1))
        return rarity * (_LITTLE if word in _LITTLES else 1.0)


def _ask(claim: str) -> _Said:
    return _Said(frozenset(words(claim)) - _DENIALS, _names(claim), _denies(claim))


def _folded(text: str) -> str:
    return " ".join(normalize("NFKC", text).casefold().split())


def _said(context: str) -> Iterator[_Said]:
    """What each sentence says, and each two in a row, for a claim may be spread over them."""
    each = [_ask(sentence) for sentence in sentences(context)]
    yield from each
    for one, other in pairwise(each):
        yield _Said(one.words | other.words, denies=one.denies or other.denies)


def _best(asked: _Said, said: Iterable[_Said], weights: Mapping[str, float]) -> tuple[float, _Said]:
    """The sentence, or the two, with most of a claim; none where one denies and the other does not."""
    scored = [(_share(asked, own.words, weights), own) for own in said if own.denies == asked.denies]
    return max(scored, key=lambda pair: pair[0], default=(0.0, _Said(frozenset())))


def _share(asked: _Said, found: Iterable[str], weights: Mapping[str, float]) -> float:
    """The share of a claim's weight that is found; nothing if a name or a number is not."""
    there = asked.words & frozenset(found)
    if not asked.names <= there:
        return 0.0
    whole = sum(weights.values())
    return sum(weights[word] for word in there) / whole if whole else 0.0


def _names(claim: str) -> frozenset[str]:
    """What must not differ: numbers, and words with a capital letter that do not begin the claim."""
    tokens = _WORD.findall(normalize("NFKC", claim))
    named = [
        token.casefold()
        for n, token in enumerate(tokens)
        if token[0].isdigit() or token.casefold() in _NUMBERS or (n and token[0].isupper())
    ]
    return frozenset(map(_stem, named)) - _LITTLES - _DENIALS


def _told(shares: Iterable[float]) -> str:
    return f"words: {_percent(max(shares))}"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _denies(text: str) -> bool:
    """Whether a sentence says that something is not so: an odd number of denials."""
    tokens = _WORD.findall(normalize("NFKC", text).casefold())
    return len([token for token in tokens if token in _DENIALS or token.endswith(("n't", "n’t"))]) % 2 == 1


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a text as they are compared: small letters, no endings, numbers as digits."""
    return tuple(map(_stem, _WORD.findall(normalize("NFKC", text).casefold())))


def _stem(word: str) -> str:
    if word[0].isdigit():
        return word.replace(",", "")
    if word in _NUMBERS:
        return str(_NUMBERS.index(word))
    word = word.partition("'")[0].partition("’")[0]
    if word in _LITTLES or word in _DENIALS:
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM - (ending == "s"):
            return word.removesuffix(ending)
    return word.removesuffix("e")
