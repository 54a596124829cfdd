"""The documents and queries of the example, written for it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec


class Document(msgspec.Struct, frozen=True):
    """A page of the help centre."""

    id: str
    title: str
    text: str


class Query(msgspec.Struct, frozen=True):
    """What somebody asked, and the pages that help: 2 answers it, 1 adds to it."""

    id: str
    query: str
    gold: dict[str, int]
    topic: str


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
    return (files("karat.demo") / name).read_text("utf-8").splitlines()
