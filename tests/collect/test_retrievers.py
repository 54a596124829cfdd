"""Functions and objects as retrievers: plain objects with the methods of frameworks."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from types import SimpleNamespace

import pytest

from karat.collection.retrievers import as_retriever
from karat.errors import BadArgument, InputError

NAMES = [f"d{number}" for number in range(1, 9)]


def asked(target, k=3):
    """The items for a query, whatever the retriever is."""
    retriever = as_retriever(target, k)
    found = retriever.call("q")
    assert inspect.isawaitable(found) == retriever.is_async
    return asyncio.run(found) if retriever.is_async else found


async def later(query, k):
    await asyncio.sleep(0)
    return NAMES[:k]


async def stream(query):
    for name in NAMES:
        yield name


async def streams(query, *, limit):
    return stream(query)


def endless(query):
    number = 0
    while True:
        yield f"d{(number := number + 1)}"


class Callables:
    def __call__(self, query):
        return [query]

    def search(self, query, top_k=2):
        return NAMES[:top_k]

    async def find(self, query, top_k=2):
        return NAMES[:top_k]


class AsyncCallable:
    async def __call__(self, query, k):
        return NAMES[:k]


def positional(query, number, /):
    return NAMES[:number]


FUNCTIONS = {
    "query": (lambda query: NAMES, False),
    "query and k": (lambda query, k: NAMES[:k], True),
    "another name": (lambda query, many: NAMES[:many], True),
    "positional": (positional, True),
    "keyword k": (lambda q, *, k: NAMES[:k], True),
    "keyword top_k": (lambda q, *, top_k: NAMES[:top_k], True),
    "keyword limit": (lambda q, *, limit=1: NAMES[:limit], True),
    "keyword n_results": (lambda q, *, n_results=1: NAMES[:n_results], True),
    "keyword query": (lambda *, query, k: NAMES[:k], True),
    "options": (lambda query, filters=None, **options: NAMES, False),
    "any": (lambda *given: NAMES, False),
    "async": (later, True),
    "async iterator": (stream, False),
    "coroutine of an iterator": (streams, True),
    "iterator": (endless, False),
    "method": (Callables().search, True),
    "async method": (Callables().find, True),
    "async object": (AsyncCallable(), True),
    "partial of async": (partial(later), True),
    "an awaitable": (lambda query: later(query, 3), False),
    "an object with search": (SimpleNamespace(search=lambda query, k: NAMES[:k]), True),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_a_function(kind):
    function, takes_k = FUNCTIONS[kind]
    assert asked(function) == NAMES[:3]
    assert as_retriever(function, 3).takes_k == takes_k


def test_settings_of_a_partial_are_kept():
    assert asked(partial(later, k=2)) == NAMES[:2]
    assert asked(partial(lambda index, query, k: [index], "x")) == ["x"]


def test_a_function_without_a_signature():
    assert asked(iter) == ["q"]


def test_names():
    names = [as_retriever(one, 1).name for one in (later, partial(later, k=1), Callables(), Callables().search)]
    assert names == ["later", "later", "Callables", "Callables.search"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Callables, "Callables is a class"),
        (3, "int is no retriever; expected a function, a LangChain"),
        (lambda: NAMES, "takes no query"),
        (lambda query, k, index: [], "needs more than a query and a number of results: index"),
        (lambda query, *, index: [], "needs more than a query and a number of results: index"),
        (SimpleNamespace(query_points=print), "needs the name of a collection"),
    ],
    ids=["class", "number", "no query", "index", "named index", "qdrant"],
)
def test_what_is_no_retriever(target, message):
    with pytest.raises(BadArgument, match=message):
        as_retriever(target, 3)


@pytest.mark.parametrize("result", [None, "d1", 3])
def test_a_bad_result_names_the_retriever(result):
    def search(query):
        return result

    with pytest.raises(InputError, match=r"the result of .*search is (None|a string|an int)"):
        asked(search)


# LangChain


class Runnable:
    def __init__(self, **settings):
        vars(self).update(settings)
        self.given = None

    def invoke(self, query, config=None, **options):
        self.given = options
        return {"context": [SimpleNamespace(page_content=name, metadata={}) for name in NAMES]}


@pytest.mark.parametrize(
    ("settings", "given"), [({}, {}), ({"search_kwargs": {}}, {"k": 3}), ({"search_kwargs": {"k": 9}}, {})]
)
def test_a_runnable_gets_k_unless_its_settings_have_one(settings, given):
    runnable = Runnable(**settings)
    assert asked(runnable) == [{"text": name} for name in NAMES[:3]]
    assert runnable.given == given
    assert as_retriever(runnable, 3).takes_k == bool(given)


def test_an_object_with_only_asynchronous_methods():
    assert asked(SimpleNamespace(ainvoke=later)) == NAMES[:3]
    assert asked(SimpleNamespace(aretrieve=later)) == NAMES[:3]


def test_a_vector_store_with_and_without_scores():
    class Store:
        def similarity_search(self, query, k):
            return [SimpleNamespace(page_content=name, metadata={}) for name in NAMES[:k]]

        def similarity_search_with_score(self, query, k):
            raise NotImplementedError

    class Scored(Store):
        def similarity_search_with_score(self, query, k):
            return [(one, 0.5) for one in self.similarity_search(query, k)]

    assert asked(Store()) == [{"text": name} for name in NAMES[:3]]
    assert asked(Scored()) == [{"text": name, "score": 0.5} for name in NAMES[:3]]


# LlamaIndex


def test_a_retriever_an_index_and_a_query_engine():
    nodes = [SimpleNamespace(node_id=name, get_content=str, text="x") for name in NAMES]
    expected = [{"id": name, "text": "x"} for name in NAMES[:3]]
    retriever = SimpleNamespace(retrieve=lambda query: nodes, aretrieve=None)
    assert asked(retriever) == expected
    engine = SimpleNamespace(query=lambda query: SimpleNamespace(source_nodes=nodes), aquery=later, retrieve=print)
    assert asked(engine) == expected

    def as_made(similarity_top_k):
        assert similarity_top_k == 3
        return retriever

    assert asked(SimpleNamespace(as_retriever=as_made, as_query_engine=print)) == expected


# Haystack


class Component:
    __haystack_input__ = ()
    warm = False

    def warm_up(self):
        self.warm = True

    def run(self, query, filters=None, top_k=None):
        assert self.warm
        return {"documents": [SimpleNamespace(id=name, content="x", meta={}) for name in NAMES[:top_k]]}


class Pipeline:
    """A pipeline with the components as given: names, inputs, whether they return documents, and connections."""

    def __init__(self, inputs, having, edges=()):
        self._inputs, self._having = inputs, having
        self.graph = SimpleNamespace(edges=[(*edge, "key") for edge in edges])
        self.given = None

    def add_component(self): ...

    def inputs(self):
        return {
            name: {one.strip("?"): {"is_mandatory": not one.endswith("?")} for one in inputs}
            for name, inputs in self._inputs.items()
        }

    def outputs(self, include_components_with_connected_outputs):
        return {name: {"documents": {}} for name in self._having} | {"llm": {"replies": {}}}

    def run(self, data, include_outputs_from):
        self.given = data
        found = {"documents": [SimpleNamespace(id=name, content="x", meta={}) for name in NAMES]}
        return dict.fromkeys(include_outputs_from, found) | {"llm": {"replies": []}}


def test_a_component():
    assert [one["id"] for one in asked(Component())] == NAMES[:3]
    assert as_retriever(Component(), 3).takes_k


def test_a_component_that_needs_a_vector():
    class Vectors:
        __haystack_input__ = ()

        def run(self, query_embedding, top_k=None): ...

    with pytest.raises(BadArgument, match="Vectors needs query_embedding") as caught:
        as_retriever(Vectors(), 3)
    assert caught.value.hint == "a Pipeline with an embedder"


def test_a_pipeline_gets_the_query_in_every_input_of_that_name():
    inputs = {"bm25": ["query", "top_k?"], "embedder": ["text"], "prompt": ["question?", "text?"]}
    edges = [("bm25", "joiner"), ("dense", "joiner"), ("joiner", "prompt")]
    pipeline = Pipeline(inputs, ["bm25", "dense", "joiner"], edges)
    assert [one["id"] for one in asked(pipeline)] == NAMES[:3]
    assert pipeline.given == {"bm25": {"query": "q"}, "embedder": {"text": "q"}, "prompt": {"question": "q"}}


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (Pipeline({"r": ["query", "filters"]}, ["r"]), "the pipeline needs r.filters"),
        (Pipeline({"r": []}, ["r"]), "the pipeline needs no query"),
        (Pipeline({"r": ["query"]}, []), "no component has documents"),
        (Pipeline({"a": ["query"], "b": ["query"]}, ["a", "b"]), "2 components return documents: a, b"),
    ],
)
def test_a_pipeline_that_cannot_be_asked(pipeline, message):
    with pytest.raises(BadArgument, match=message):
        as_retriever(pipeline, 3)


# Stores


def test_a_collection_of_chroma():
    class Collection:
        def query(self, query_embeddings=None, query_texts=None, n_results=10):
            return {"ids": [NAMES[:n_results]], "documents": [NAMES[:n_results]], "distances": [[0.5] * n_results]}

    assert asked(Collection()) == [{"id": name, "text": name, "distance": 0.5} for name in NAMES[:3]]
