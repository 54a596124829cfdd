"""Support by words, without a model: a heuristic. A context supports a claim if it has most of the claim's words.

Words are stemmed and weighted by their rarity among the contexts of the sample; stop words have little weight. Names
and numbers of the claim must occur, and negation must agree. It knows no synonyms and no syntax: docs/judges.md
reports the cost of that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log
from typing import NamedTuple

from karat._internal.display import percent
from karat.judges.support import NONE, Support
from karat.judges.text import fold_unicode
from karat.judges.tokens import sentences

THRESHOLD = 0.7
"""The least share of a claim's weight; between 0.5 and 0.75 the agreement with people hardly changes."""
_STRICTER = 0.5
"""Words from several contexts are weaker evidence: the threshold rises by this share of the rest."""
_STOP_WEIGHT = 0.1
"""The weight of a stop word, relative to another word of the same frequency."""
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]+(?:['’][^\W\d_]+)*")
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NEGATIONS = frozenset(("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot"))
_STOP_WORDS = frozenset((
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
"""The minimum length of a stem."""


class _Statement(NamedTuple):
    """What one sentence, or two in a row, say: words, names and numbers among them, and negation."""

    words: frozenset[str]
    names: frozenset[str] = frozenset()
    negated: bool = False


class _Context(NamedTuple):
    """A retrieved text, as claims are compared with it."""

    folded: str
    words: frozenset[str]
    """The words of the folded text, with their punctuation."""
    sentences: frozenset[str]
    """The folded sentences."""
    statements: list[_Statement]

    @classmethod
    def of(cls, text: str) -> _Context:
        folded, parts = _folded(text), sentences(text)
        return cls(folded, frozenset(folded.split()), frozenset(map(_folded, parts)), list(_statements(parts)))

    def contains(self, passage: str) -> bool:
        """True if a folded text occurs in this one; it is searched only if all words inside it occur."""
        if passage in self.sentences:
            return True
        return self.words.issuperset(passage.split()[1:-1]) and passage in self.folded


class Words:
    """The contexts of one sample, indexed by words."""

    def __init__(self, contexts: Sequence[str], threshold: float = THRESHOLD) -> None:
        self._threshold = threshold
        self._contexts = list(map(_Context.of, contexts))
        self._frequency = Counter(
            word for own in self._contexts for word in frozenset().union(*(one.words for one in own.statements))
        )

    def support(self, claim: str) -> Support:
        """The contexts that state the claim; if none does alone, those that do together."""
        whole = _folded(claim)
        verbatim = frozenset(n for n, own in enumerate(self._contexts) if whole and own.contains(whole))
        if verbatim:  # also a passage of many sentences, which is more than one statement
            return Support(verbatim, why="word for word")
        wanted = _statement(claim)
        weights = {word: self._weight(word) for word in wanted.words}
        best = [_best(wanted, own.statements, weights) for own in self._contexts]
        alone = {n: share for n, (share, _) in enumerate(best) if share >= self._threshold}
        if alone:
            return Support(frozenset(alone), why=f"words: {percent(max(alone.values()))}")
        return self._together(wanted, weights, [statement for _, statement in best])

    def _together(self, wanted: _Statement, weights: Mapping[str, float], best: Sequence[_Statement]) -> Support:
        """The best contexts in order that complete each other, each adding at least one content word."""
        enough = self._threshold + _STRICTER * (1 - self._threshold)
        found: set[str] = set()
        used: list[int] = []
        for n, statement in enumerate(best):
            fresh = (statement.words & wanted.words) - found
            if any(word not in _STOP_WORDS for word in fresh):
                found |= fresh
                used.append(n)
            if len(used) > 1 and (share := _share(wanted, found, weights)) >= enough:
                return Support(frozenset(), (frozenset(used),), f"words: {percent(share)}, taken together")
        return NONE

    def _weight(self, word: str) -> float:
        rarity = log(1 + (len(self._contexts) + 1) / max(self._frequency[word], 1))
        return rarity * (_STOP_WEIGHT if word in _STOP_WORDS else 1.0)


def _folded(text: str) -> str:
    return " ".join(fold_unicode(text).casefold().split())


def _statement(sentence: str) -> _Statement:
    return _Statement(frozenset(words(sentence)) - _NEGATIONS, _names(sentence), _negated(sentence))


def _statements(parts: Sequence[str]) -> Iterator[_Statement]:
    """Each sentence, and each two in a row, because a claim may be spread over two."""
    each = list(map(_statement, parts))
    yield from each
    for one, other in pairwise(each):
        yield _Statement(one.words | other.words, negated=one.negated or other.negated)


def _best(
    wanted: _Statement, statements: Iterable[_Statement], weights: Mapping[str, float]
) -> tuple[float, _Statement]:
    """The statement that has most of a claim, among those with the same negation, and its share."""
    scored = [(_share(wanted, own.words, weights), own) for own in statements if own.negated == wanted.negated]
    return max(scored, key=lambda pair: pair[0], default=(0.0, _Statement(frozenset())))


def _share(wanted: _Statement, found: Iterable[str], weights: Mapping[str, float]) -> float:
    """The share of a claim's weight that was found; 0 if a name or a number is missing."""
    there = wanted.words & frozenset(found)
    whole = sum(weights.values())
    return sum(weights[word] for word in there) / whole if whole and wanted.names <= there else 0.0


def _names(claim: str) -> frozenset[str]:
    """Numbers, and capitalized words except the first: they must not differ."""
    tokens = _WORD.findall(fold_unicode(claim))
    named = [
        token.casefold()
        for n, token in enumerate(tokens)
        if token[0].isdigit() or token.casefold() in _NUMBERS or (n and token[0].isupper())
    ]
    return frozenset(map(_stem, named)) - _STOP_WORDS - _NEGATIONS


def _negated(text: str) -> bool:
    """True if a sentence has an odd number of negations."""
    tokens = _WORD.findall(fold_unicode(text).casefold())
    return len([token for token in tokens if token in _NEGATIONS or token.endswith(("n't", "n’t"))]) % 2 == 1


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a text as they are compared: lower case, stemmed, numbers as digits."""
    return tuple(map(_stem, _WORD.findall(fold_unicode(text).casefold())))


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    if word[0].isdigit():
        return word.replace(",", "")
    if word in _NUMBERS:
        return str(_NUMBERS.index(word))
    word = word.partition("'")[0].partition("’")[0]
    if word in _STOP_WORDS or word in _NEGATIONS:
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM - (ending == "s"):
            return word.removesuffix(ending)
    return word.removesuffix("e")
