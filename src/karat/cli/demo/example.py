"""The bundled example: documents and queries written for it, and two small retrievers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from math import log

import msgspec


class Document(msgspec.Struct, frozen=True):
    """A page of the help centre."""

    id: str
    title: str
    text: str


class Query(msgspec.Struct, frozen=True):
    """A question, and the relevant pages with their grades: 2 answers it, 1 adds to it. Some have no answer."""

    id: str
    query: str
    topic: str
    gold: dict[str, int] = {}
    answerable: bool = True


@cache
def corpus() -> list[Document]:
    """Every page."""
    decoder = msgspec.json.Decoder(Document)
    return [decoder.decode(line) for line in _lines("corpus.jsonl")]


@cache
def queries() -> list[Query]:
    """Every query."""
    decoder = msgspec.json.Decoder(Query)
    return [decoder.decode(line) for line in _lines("queries.jsonl")]


def _lines(name: str) -> list[str]:
    return (files("karat.cli.demo") / name).read_text("utf-8").splitlines()


Scores = dict[str, float]


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return re.findall(r"\w+", text.lower())


def bm25(documents: Sequence[Document], query: str, k1: float = 1.2, b: float = 0.75) -> Scores:
    """Okapi BM25 over title and text; documents that share no word with the query are not returned."""
    bags = [Counter(words(f"{d.title} {d.text}")) for d in documents]
    mean = sum(bag.total() for bag in bags) / len(bags)
    scores: Scores = {}
    for word in dict.fromkeys(words(query)):
        holding = sum(word in bag for bag in bags)
        rarity = log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
        for document, bag in zip(documents, bags, strict=True):
            if word in bag:
                often = bag[word] * (k1 + 1) / (bag[word] + k1 * (1 - b + b * bag.total() / mean))
                scores[document.id] = scores.get(document.id, 0.0) + rarity * often
    return scores


def first_words(documents: Sequence[Document], query: str, size: int = 12) -> Scores:
    """The share of the query's words that occur at the beginning of a document."""
    wanted = set(words(query))
    shares = {d.id: len(wanted & set(words(f"{d.title} {d.text}")[:size])) / len(wanted) for d in documents}
    return {name: share for name, share in shares.items() if share > 0}


RETRIEVERS: dict[str, Callable[[Sequence[Document], str], Scores]] = {"bm25": bm25, "first-words": first_words}
