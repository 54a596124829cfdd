"""Support by words, without a model: a heuristic. A context supports a claim if it has most of the claim's words.

Words are stemmed and weighted by their rarity among the contexts of the sample; stop words have little weight. Names
and numbers of the claim must occur, and negation must agree. Words before a claim that only name its source, such as
"According to the context," are left out. It knows no synonyms and no syntax: docs/judges.md
reports the cost of that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from math import log
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, group_number, starts
from karat._internal.display import percent
from karat._internal.grams import Grams
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
_QUESTION_WORDS = frozenset((
    "how", "why", "much", "many", "mean", "tell", "explain", "describ", "give", "giv", "show", "list", "find", "pleas",
    "get", "go", "come", "make", "mak", "tak", "like", "just", "don", "doesn", "didn", "isn", "aren", "wasn", "weren",
    "won", "wouldn", "couldn", "shouldn", "hasn", "haven", "hadn",
))  # fmt: skip
"""Words of questions that do not tell their topic, as they are compared."""
_SOURCE = (
    r"(?:(?:the|this|these|your|our|my)\s+)?(?:(?:provided|given|retrieved|available|supplied|above|following|relevant)\s+)*"
    r"(?:context|information|info|document|documentation|doc|text|passage|source|chunk|article|excerpt|material|"
    r"knowledge base|search result|result|data|reference|page|report|snippet)s?"
    r"(?:\s+(?:provided|given|retrieved|available|supplied|above|below))?"
)
_LEAD_IN = re.compile(
    rf"\s*(?:(?:according to|based (?:up)?on|as per|per|from|in|as (?:stated|mentioned|described|noted|shown|indicated|"
    rf"explained|written) (?:in|by))\s+{_SOURCE}\s*[,:]\s*(?=\S)"
    rf"|{_SOURCE}\s+(?:state|say|mention|indicate|show|explain|note|report)s?\s+that\s+(?=\S)"
    r"|(?:in summary|to summari[sz]e|in short|in conclusion)\s*[,:]\s*(?=\S))",
    re.IGNORECASE,
)
"""The words before a claim that only name its source."""
_MOST_LEAD_INS = 3
"""Lead-ins that are left out, if one follows another."""
_ENDINGS = (
    "ational", "ation", "ments", "ment", "ness", "ings", "ing", "ied", "ies", "ers", "ed", "er", "es", "ly", "s",
)  # fmt: skip
_STEM = 4
"""The minimum length of a stem."""
_FEW = 100
"""Statements among which a common word is nearly always found."""


class _Statement(NamedTuple):
    """The content of one sentence, or of two in a row: words, names and numbers among them, and negation."""

    words: frozenset[str]
    names: frozenset[str] = frozenset()
    negated: bool = False


class _Context(NamedTuple):
    """A retrieved text, as claims are compared with it."""

    folded: str
    sentences: list[str]
    statements: list[_Statement]

    @classmethod
    def of(cls, text: str) -> _Context:
        parts = sentences(text)
        return cls(_folded(text), parts, list(_statements(parts)))


class _Best(NamedTuple):
    """The statements with the largest share of a claim, one per context; contexts are given by their place."""

    place: Ints
    share: Floats
    row: Ints


class _Index:
    """The statements of all contexts with the same negation, by their words."""

    def __init__(self, contexts: Sequence[_Context], *, negated: bool) -> None:
        own = [[one for one in context.statements if one.negated == negated] for context in contexts]
        self.statements = list(chain.from_iterable(own))
        size = np.fromiter(map(len, own), np.int64, len(own))
        self.contexts = np.flatnonzero(size)
        """The numbers of the contexts that have statements."""
        start = starts(size[self.contexts])
        self._first, self._place = start[:-1], group_number(start)
        self._known: dict[str, Ints] = {}
        self._rows: dict[str, list[int]] = {}
        for i, one in enumerate(self.statements):
            for word in one.words:
                self._rows.setdefault(word, []).append(i)

    def best(self, wanted: _Statement, weights: Mapping[str, float]) -> _Best:
        """The first statement with the largest share of a claim's weight, among those with all names and numbers."""
        rows = self._with_all(wanted.names) if wanted.names else np.arange(len(self.statements))
        share = np.zeros(len(rows))
        for word, weight in weights.items():
            share[_among(rows, self.rows(word)) if wanted.names else self.rows(word)] += weight
        if not len(rows) or not weights:
            return _Best(rows[:0], share[:0], rows[:0])
        share /= sum(weights.values())
        place = self._place[rows]
        start = np.flatnonzero(np.diff(place, prepend=-1))
        most = np.maximum.reduceat(share, start)
        equal = np.flatnonzero(share == np.repeat(most, np.diff(start, append=len(rows))))
        return _Best(place[start], most, rows[equal[np.searchsorted(equal, start)]])

    def _with_all(self, names: Collection[str]) -> Ints:
        """The statements that have all of several words."""
        first, *others = sorted(map(self.rows, names), key=len)
        for rows in others:
            first = first[_among(first, rows)]
        return first

    def one_per_context(self, best: _Best) -> Ints:
        """A statement of each context: the best one, or the first where none is."""
        rows = self._first.copy()
        rows[best.place] = best.row
        return rows

    def first_place(self, word: str, chosen: Ints) -> int | None:
        """The first context whose chosen statement has a word; contexts are given by their place."""
        rows = self.rows(word)
        for some in (rows[:_FEW], rows[_FEW:]):
            place = self._place[some]
            found = (chosen[place] == some).nonzero()[0]
            if len(found):
                return int(place[found[0]])
        return None

    def rows(self, word: str) -> Ints:
        """The statements that have a word."""
        if word not in self._known:
            self._known[word] = np.array(self._rows.get(word, ()), np.int64)
        return self._known[word]


def _among(rows: Ints, others: Ints) -> Bools:
    """The rows that are among others; both ascend."""
    if not len(others):
        return np.zeros(len(rows), bool)
    found: Bools = others.take(np.searchsorted(others, rows), mode="clip") == rows
    return found


class Words:
    """The contexts of one sample, indexed by words."""

    def __init__(self, contexts: Sequence[str], threshold: float = THRESHOLD) -> None:
        self._threshold = threshold
        self._contexts = list(map(_Context.of, contexts))
        self._texts = Grams([own.folded for own in self._contexts])
        self._index = {negated: _Index(self._contexts, negated=negated) for negated in (False, True)}
        self._frequency = Counter(
            word for own in self._contexts for word in frozenset().union(*(one.words for one in own.statements))
        )

    def support(self, claim: str) -> Support:
        """The contexts that state the claim; if none does alone, those that do together."""
        whole = _folded(claim)
        for _ in range(_MOST_LEAD_INS):
            lead_in = _LEAD_IN.match(claim)
            if lead_in is None or self._texts.holders(whole):
                break
            claim = claim[lead_in.end() :]
            whole = _folded(claim)
        verbatim = {*self._texts.holders(whole), *self._sentences.get(whole, ())}
        if verbatim:  # also a passage of many sentences, which is more than one statement
            return Support(frozenset(verbatim), why="word for word")
        wanted = _statement(claim)
        weights = {word: self._weight(word) for word in sorted(wanted.words)}
        index = self._index[wanted.negated]
        best = index.best(wanted, weights)
        if best.share.max(initial=0.0) >= self._threshold:
            alone = index.contexts[best.place[best.share >= self._threshold]]
            return Support(frozenset(alone.tolist()), why=f"words: {percent(best.share.max())}")
        return self._together(index, wanted, weights, index.one_per_context(best))

    @cached_property
    def _sentences(self) -> dict[str, list[int]]:
        """The contexts that have a sentence, by its folded form: normalization may change the ends of a sentence."""
        found: dict[str, list[int]] = {}
        for n, own in enumerate(self._contexts):
            for sentence in own.sentences:
                found.setdefault(_folded(sentence), []).append(n)
        return found

    def _together(self, index: _Index, wanted: _Statement, weights: Mapping[str, float], rows: Ints) -> Support:
        """The best statements in order that complete each other, each adding at least one content word."""
        content = sorted((word for word in weights if word not in _STOP_WORDS), key=wanted.names.__contains__)
        first: list[tuple[int, str]] = []
        for word in reversed(content):  # names and numbers first: none may be missing
            at = index.first_place(word, rows)
            if at is not None:
                first.append((at, word))
            elif word in wanted.names:
                return NONE
        enough = self._threshold + _STRICTER * (1 - self._threshold)
        there, whole = 0.0, sum(weights.values())
        found: set[str] = set()
        used: list[int] = []
        for at, word in sorted(first):
            if word in found:
                continue
            fresh = sorted((index.statements[int(rows[at])].words & wanted.words) - found)
            found.update(fresh)
            used.append(int(index.contexts[at]))
            there += sum(weights[one] for one in fresh)
            share = round(there / whole, 12)
            if len(used) > 1 and share >= enough and wanted.names <= found:
                return Support(frozenset(), (frozenset(used),), f"words: {percent(share)}, taken together")
        return NONE

    def _weight(self, word: str) -> float:
        rarity = log(1 + (len(self._contexts) + 1) / max(self._frequency[word], 1))
        return rarity * (_STOP_WEIGHT if word in _STOP_WORDS else 1.0)


def topic_shares(question: str, texts: Sequence[str]) -> list[float]:
    """The share of the content words of a question that each text has; of all its words if it has no others."""
    all_words = frozenset(words(question))
    topic = all_words - _STOP_WORDS - _NEGATIONS - _QUESTION_WORDS or all_words
    return [len(topic.intersection(words(text))) / max(len(topic), 1) for text in texts]


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
