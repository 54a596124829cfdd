"""Objects of frameworks as items: plain objects with the same attributes. The real ones are in tests/frameworks."""

from __future__ import annotations

import uuid
from collections import namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import karat
from karat.errors import InputError
from karat.samples.objects import id_form, plain_items

RANDOM = "9475501e-9329-47fe-a415-ee1a7e1a7551"
HASH = "9f1062d81498e8b82387c33bfccd8b97be0f5ea2f9bd796199bd454750972ea6"


@dataclass
class LangChain:
    page_content: str
    id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def __iter__(self):
        return iter(vars(self).items())  # as records of pydantic do


class Special(LangChain):
    """A subclass of a document."""


@dataclass
class Node:
    node_id: str
    content: str | None = None
    ref_doc_id: str | None = None
    start_char_idx: int | None = None
    end_char_idx: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self):
        if self.content is None:
            raise ValueError("no text")
        return self.content

    def get_content(self):
        return self.text


@dataclass
class Scored:
    node: Node
    score: float | None = None


@dataclass
class Haystack:
    id: str
    content: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    score: float | None = None


@dataclass
class Point:
    id: Any
    score: float
    payload: dict[str, Any] | None = None


Hit = namedtuple("Hit", "id text score")  # noqa: PYI024
NODES = [Scored(Node("n1", "one", "a.md", 0, 3), 0.5), Scored(Node("n2", "two", "a.md", 4, 7), 0.25)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("ab", "ab"),
        ("", ""),
        (3, 3),
        (np.int64(3), 3),
        (uuid.UUID(RANDOM), RANDOM),
        (("a", 0.5), {"id": "a", "score": 0.5}),
        (["a", 0.5], {"id": "a", "score": 0.5}),
        ((3, np.float32(0.5)), {"id": 3, "score": 0.5}),
        ((LangChain("x"), 0.5), {"text": "x", "score": 0.5}),
        (({"id": "a", "text": "x"}, 1), {"id": "a", "text": "x", "score": 1.0}),
        (Hit("a", "x", 0.5), {"id": "a", "text": "x", "score": 0.5}),
        ({"id": "a", "text": "x", "lang": "en", "vector": [1]}, {"id": "a", "text": "x", "lang": "en"}),
        ({"id": "a", "aspects": ["p", "q"]}, {"id": "a", "aspects": ["p", "q"]}),
        ({"id": uuid.UUID(RANDOM)}, {"id": RANDOM}),
        ({"page_content": "x", "metadata": {"source": "a.md"}, "type": "Document"},
         {"text": "x", "doc": "a.md", "type": "Document"}),
        ({"_id": "7", "_score": 2.5, "_source": {"text": "x"}}, {"id": "7", "text": "x", "score": 2.5}),
        ({"node": {"id": "n1", "text": "x"}, "score": 0.5}, {"id": "n1", "text": "x", "score": 0.5}),
        (LangChain("x", "7"), {"id": "7", "text": "x"}),
        (Special("x", "7"), {"id": "7", "text": "x"}),
        (LangChain("x", metadata={"chunk_id": "c1", "source": "a.md"}), {"id": "c1", "text": "x", "doc": "a.md"}),
        (LangChain("x", metadata={"doc_id": "d1"}), {"id": "d1", "text": "x", "doc": "d1"}),
        (LangChain("x", RANDOM, {"id": "c1"}), {"id": "c1", "text": "x"}),
        (LangChain("xyz", None, {"source": "a", "start_index": 4}), {"text": "xyz", "doc": "a", "start": 4, "end": 7}),
        (LangChain("xyz", None, {"source": "a", "start_index": -1}), {"text": "xyz", "doc": "a"}),
        (LangChain("xyz", None, {"source": "a", "start_index": 4, "page": 2}), {"text": "xyz", "doc": "a"}),
        (LangChain("\ud800", ""), {"text": "\ud800"}),
        (NODES[0], {"id": "n1", "text": "one", "doc": "a.md", "start": 0, "end": 3, "score": 0.5}),
        (NODES[0].node, {"id": "n1", "text": "one", "doc": "a.md", "start": 0, "end": 3}),
        (Scored(Node("n1")), {"id": "n1", "text": ""}),
        (Scored(Node("n1", "x", RANDOM, metadata={"file_name": "a.md"})), {"id": "n1", "text": "x", "doc": "a.md"}),
        (Haystack(HASH, "x", {"source_id": HASH}, 0.5), {"id": HASH, "text": "x", "doc": HASH, "score": 0.5}),
        (Haystack(HASH, "xy", {"source_id": HASH, "file_path": "a.md", "split_idx_start": 4, "page_number": 1}),
         {"id": HASH, "text": "xy", "doc": "a.md", "start": 4, "end": 6}),
        (Haystack("h1", None, {}), {"id": "h1", "text": ""}),
        (Haystack("h1", "x", {}, float("nan")), {"id": "h1", "text": "x"}),
        (Point(1, 0.5, {"text": "x"}), {"id": 1, "text": "x", "score": 0.5}),
        (Point(1, 0.5), {"id": 1, "score": 0.5}),
        (Point(RANDOM, 0.5, {"page_content": "x", "metadata": {"source": "a.md", "chunk_id": "c"}}),
         {"id": RANDOM, "text": "x", "doc": "a.md", "score": 0.5}),
        (SimpleNamespace(uuid=uuid.UUID(RANDOM), properties={"text": "x"}, metadata=SimpleNamespace(distance=0.5)),
         {"id": RANDOM, "text": "x", "distance": 0.5}),
    ],
)  # fmt: skip
def test_an_item(given, expected):
    assert plain_items([given]) == [expected]


CHROMA = {
    "ids": [["1", "2"]], "embeddings": None, "documents": [["aa", "ff"]], "uris": None, "data": None,
    "metadatas": [[{"source": "a"}, None]], "distances": [[0.0, 7.0]],
}  # fmt: skip
BOTH = [{"id": "1", "text": "aa", "doc": "a", "distance": 0.0}, {"id": "2", "text": "ff", "distance": 7.0}]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ([], []),
        (("a", "b"), ["a", "b"]),
        ((name for name in "ab"), ["a", "b"]),
        (map(str, (1, 2)), ["1", "2"]),
        (np.array([3, 1]), [3, 1]),
        (np.array(["a", "b"]), ["a", "b"]),
        (pl.Series(["a", "b"]), ["a", "b"]),
        (pl.DataFrame({"docno": ["a"], "score": [0.5]}), [{"id": "a", "score": 0.5}]),
        (pl.DataFrame({"docno": ["a"]}).to_arrow(), [{"id": "a"}]),
        ({"a": 0.25, "b": 0.5}, [{"id": "b", "score": 0.5}, {"id": "a", "score": 0.25}]),
        (CHROMA, BOTH),
        ({"ids": ["1", "2"], "documents": None}, [{"id": "1"}, {"id": "2"}]),
        ({"ids": [[]], "documents": [[]]}, []),
        ({"documents": [Haystack("h1", "x")]}, [{"id": "h1", "text": "x"}]),
        ({"retriever": {"documents": [Haystack("h1", "x")]}, "llm": {"replies": []}}, [{"id": "h1", "text": "x"}]),
        ({"input": "q", "context": [LangChain("x")], "answer": "…"}, [{"text": "x"}]),
        ({"matches": [{"id": "a", "score": 0.5, "metadata": {"text": "x"}}]}, [{"id": "a", "text": "x", "score": 0.5}]),
        ({"hits": {"total": 1, "hits": [{"_id": "a", "_score": 2.0}]}}, [{"id": "a", "score": 2.0}]),
        ([[{"id": 1, "distance": 0.5, "entity": {"text": "x"}}]], [{"id": 1, "text": "x", "distance": 0.5}]),
        (SimpleNamespace(source_nodes=NODES[:1]), plain_items(NODES[:1])),
        (SimpleNamespace(points=[Point(1, 0.5)]), [{"id": 1, "score": 0.5}]),
        ([("a", 1), ("b", 2)], [{"id": "a", "score": 1.0}, {"id": "b", "score": 2.0}]),
        ([Haystack("a", "x", score=0.5), Haystack("b", "y")], [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}]),
    ],
)  # fmt: skip
def test_a_result(result, expected):
    assert plain_items(result) == expected


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "the result is None; expected a list of strings, ids"),
        ("a b", "the result is a string"),
        (b"a", "the result is bytes"),
        (3, "the result is an int"),
        ({"a", "b"}, "the result is a set, which has no order"),
        (object(), "the result is an object"),
        (LangChain("x"), "the result is one LangChain"),
        ({"query": "x"}, "a dict without a list of items"),
        ({"a": {"documents": []}, "b": {"documents": []}}, "the documents of 2 components: a, b"),
        ({"ids": [["a"], ["b"]]}, "the items of 2 queries"),
        ([None], "item 1 of the result is None"),
        (["a", b"b"], "item 2 of the result is a bytes"),
        ([1.5], "item 1 of the result is a float"),
        ([["a", "b"], ["c"]], "item 1 of the result is a list"),
        (["a", {"id": "b"}], "the result mixes strings and records"),
        ([True], "item 1 of the result is a bool"),
        (np.float64(1.5), "the result is a float64"),
    ],
)
def test_a_bad_result(result, message):
    with pytest.raises(InputError, match=message):
        plain_items(result)


def test_what_is_asynchronous_has_to_be_awaited():
    async def search():
        yield "a"

    with pytest.raises(InputError, match="async_generator") as caught:
        plain_items(search())
    assert caught.value.hint == "await …"


def test_forms_of_ids():
    assert [id_form(one) for one in (RANDOM, RANDOM.replace("-", ""), HASH)] == ["random", "random", "hashed"]
    stable = ["a", 3, "", str(uuid.uuid5(uuid.NAMESPACE_URL, "a")), str(uuid.uuid1()), "g" * 64, "1" * 32, None]
    assert {id_form(one) for one in stable} == {""}


def test_the_conversion_changes_nothing_of_the_caller():
    record = {"id": "a", "score": 0.5, "metadata": {"source": "x"}}
    plain_items([record, {"id": "b"}])
    assert record == {"id": "a", "score": 0.5, "metadata": {"source": "x"}}
    assert karat.evaluate(retrieved=[NODES], gold=[["n2"]], metrics="rr").mean["rr"] == 0.5
    assert NODES[0].score == 0.5
