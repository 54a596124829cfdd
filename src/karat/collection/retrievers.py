"""Retrievers: functions and objects of frameworks as one call, from a query to items. No framework is imported."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from karat.errors import BadArgument
from karat.samples.objects import plain_items

K_NAMES = ("k", "top_k", "limit", "n_results", "num_results", "size", "n")
"""The names of parameters that take the number of results."""
_QUERY_NAMES = ("query", "question", "text")
"""The names of inputs of Haystack that take the query."""
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
Ask = Callable[[str], Any]


@dataclass(frozen=True)
class Retriever:
    """A retriever as one call. A synchronous one may be called from several threads at once."""

    name: str
    ask: Ask
    """From a query to the result of the retriever, or to an awaitable of it; iterators are read to the end."""
    k: int
    is_async: bool = False
    takes_k: bool = False
    """True if k is passed to the retriever; otherwise it returns as many results as it is configured for."""
    code: str = ""
    """A digest of its source, by which a change is noticed; empty if unknown."""

    def items(self, result: Any) -> list[Any]:
        """The first k items of a result of `ask`."""
        return plain_items(result, f"the result of {self.name}")[: self.k]

    def call(self, query: str) -> Any:
        """The first k items for a query, best first; an awaitable of them if the retriever is asynchronous."""
        return self._later(query) if self.is_async else self.items(self.ask(query))

    async def _later(self, query: str) -> list[Any]:
        return self.items(await self.ask(query))


def as_retriever(target: Any, k: int) -> Retriever:
    """The retriever for a function or an object.

    Synchronous methods are preferred to asynchronous ones: in threads of their own the calls do not wait for each
    other. An object with only asynchronous methods, and an asynchronous function, are awaited.
    """
    name = _name(target)
    if isinstance(target, type):
        raise BadArgument(f"{name} is a class; expected a retriever", hint=f"{name}(…)")
    for fits, make in _KINDS:
        if fits(target):
            return make(target, name, k)
    if callable(target):
        return of_function(target, name, k)
    method = next((found for known in ("search", "asearch") if (found := _method(target, known))), None)
    if method is not None:
        return of_function(method, _name(method), k)
    accepted = "a function, a LangChain, LlamaIndex or Haystack retriever, a vector store or a pipeline"
    raise BadArgument(f"{name} is no retriever; expected {accepted}", got=target, hint="lambda query: […]")


def of_function(function: Callable[..., Any], name: str, k: int) -> Retriever:
    """A retriever from a function of a query, or of a query and the number of results."""
    arguments = _arguments(function, name, k)
    call = _call(function, arguments.query, arguments.rest)
    if _is_async_iterator(function):

        async def read(query: str) -> Any:
            return await _read(call(query), k)

        return Retriever(name, read, k, is_async=True, takes_k=arguments.takes_k)
    if _is_async(function):

        async def wait(query: str) -> Any:
            result = await call(query)
            return await _read(result, k) if isinstance(result, AsyncIterator) else _read_now(result, k)

        return Retriever(name, wait, k, is_async=True, takes_k=arguments.takes_k)
    return Retriever(name, lambda query: _read_now(call(query), k), k, takes_k=arguments.takes_k)


@dataclass(frozen=True)
class _Arguments:
    """The arguments of a function of the user: the name of the query if it has to be named, and the others."""

    query: str | None
    rest: Mapping[str | int, Any]

    @property
    def takes_k(self) -> bool:
        return bool(self.rest)


def _arguments(function: Callable[..., Any], name: str, k: int) -> _Arguments:
    """The arguments with which a function is called, from its signature."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        return _Arguments(None, {})
    bound = function.keywords if isinstance(function, partial) else {}
    positional = [one for one in parameters if one.kind in _POSITIONAL]
    named = {one.name: one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}
    query = None
    if positional:
        first = positional[0].name
    elif any(one.kind is one.VAR_POSITIONAL for one in parameters):
        first = ""
    else:
        query = first = next((one for one in (*_QUERY_NAMES, "q") if one in named), "")
        if not query:
            raise BadArgument(f"{name} takes no query", got=_signature(function), hint="def retrieve(query, k): …")
    rest: dict[str | int, Any] = {}
    limit = next((one for one in K_NAMES if one in named and one != first and one not in bound), None)
    if limit is not None:
        rest = {1: k} if named[limit].kind is inspect.Parameter.POSITIONAL_ONLY else {limit: k}
    elif len(positional) > 1 and positional[1].default is inspect.Parameter.empty:
        limit = positional[1].name
        rest = {1: k}
    missing = [
        one.name for one in named.values() if one.default is one.empty and one.name not in (first, limit, *bound)
    ]
    if missing:
        problem = f"{name} needs more than a query and a number of results: {', '.join(missing)}"
        raise BadArgument(problem, got=_signature(function), hint=f"functools.partial({name}, {missing[0]}=…)")
    return _Arguments(query, rest)


def _signature(function: Callable[..., Any]) -> str:
    return str(inspect.signature(function))


def _call(function: Callable[..., Any], query_name: str | None, rest: Mapping[str | int, Any]) -> Ask:
    """The function of a query alone."""
    places = [value for name, value in rest.items() if isinstance(name, int)]
    names = {name: value for name, value in rest.items() if isinstance(name, str)}
    if query_name is not None:
        return lambda query: function(**{query_name: query}, **names)
    return lambda query: function(query, *places, **names)


def _read_now(result: Any, k: int) -> Any:
    """The result, with an iterator read as far as needed and an awaitable awaited."""
    if isinstance(result, Iterator):
        return list(islice(result, k))
    if inspect.isawaitable(result) or isinstance(result, AsyncIterator):
        import asyncio

        return asyncio.run(_read(result, k))
    return result


async def _read(result: Awaitable[Any] | AsyncIterator[Any], k: int) -> Any:
    """The first items of an asynchronous iterator, or what an awaitable returns."""
    if not isinstance(result, AsyncIterator):
        return _read_now(await result, k)
    items: list[Any] = []
    async for item in result:
        items.append(item)
        if len(items) == k:
            break
    return items


def _is_async(function: Any) -> bool:
    return _any_form(inspect.iscoroutinefunction, function)


def _is_async_iterator(function: Any) -> bool:
    return _any_form(inspect.isasyncgenfunction, function)


def _any_form(check: Callable[[Any], bool], function: Any) -> bool:
    """True if the check holds for a function, for the function inside a partial, or for the method `__call__`."""
    while isinstance(function, partial):
        function = function.func
    return check(function) or check(getattr(type(function), "__call__", None))  # noqa: B004


def _name(target: Any) -> str:
    """The name of a retriever in messages."""
    while isinstance(target, partial):
        target = target.func
    own = getattr(target, "__qualname__", None)
    return own.replace("<locals>.", "") if isinstance(own, str) else type(target).__name__


def _method(target: Any, name: str) -> Callable[..., Any] | None:
    found = getattr(target, name, None)
    return found if callable(found) else None


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda target: all(_method(target, name) for name in names)


# LangChain


def _of_vector_store(target: Any, name: str, k: int) -> Retriever:
    """A vector store of LangChain: with scores, where it has them."""

    def search(query: str) -> Any:
        try:
            return target.similarity_search_with_score(query, k=k)
        except NotImplementedError:
            return target.similarity_search(query, k=k)

    return Retriever(name, search, k, takes_k=True)


def _of_runnable(target: Any, name: str, k: int) -> Retriever:
    """A retriever or another runnable of LangChain. That of a vector store gets k unless its settings have one."""
    settings = getattr(target, "search_kwargs", None)
    takes_k = isinstance(settings, Mapping) and "k" not in settings
    extra = {"k": k} if takes_k else {}
    return Retriever(name, lambda query: _read_now(target.invoke(query, **extra), k), k, takes_k=takes_k)


# LlamaIndex


def _of_query_engine(target: Any, name: str, k: int) -> Retriever:
    """A query engine of LlamaIndex: the source nodes of its response."""
    return Retriever(name, target.query, k)


def _of_index(target: Any, name: str, k: int) -> Retriever:
    """An index of LlamaIndex: its default retriever."""
    return Retriever(name, target.as_retriever(similarity_top_k=k).retrieve, k, takes_k=True)


def _is_index(target: Any) -> bool:
    return _has("as_retriever", "as_query_engine")(target)


# Haystack


def _of_component(target: Any, name: str, k: int) -> Retriever:
    """A retriever component of Haystack."""
    inputs = inspect.signature(target.run).parameters
    query_name = next((one for one in _QUERY_NAMES if one in inputs), None)
    needed = [one.name for one in inputs.values() if one.default is one.empty and one.name != query_name]
    if query_name is None or needed:
        problem = f"{name} needs {', '.join(needed) or 'no query'}; expected a component that takes a query alone"
        raise BadArgument(problem, hint="a Pipeline with an embedder")
    if warm_up := _method(target, "warm_up"):
        warm_up()
    extra = {"top_k": k} if "top_k" in inputs else {}
    return Retriever(name, lambda query: target.run(**{query_name: query}, **extra), k, takes_k=bool(extra))


def _of_pipeline(target: Any, name: str, k: int) -> Retriever:
    """A pipeline of Haystack: the query goes to every input of that name; the last component with documents counts."""
    asked: dict[str, list[str]] = {}
    needed: list[str] = []
    for component, inputs in target.inputs().items():
        for one, about in inputs.items():
            if one in _QUERY_NAMES and (about.get("is_mandatory") or one != "text"):
                asked.setdefault(component, []).append(one)
            elif about.get("is_mandatory"):
                needed.append(f"{component}.{one}")
    if needed or not asked:
        problem = f"the pipeline needs {', '.join(needed) or 'no query'}; expected inputs that take the query"
        raise BadArgument(problem, hint='lambda query: pipeline.run({…})["retriever"]["documents"]')
    source = _source_of_documents(target)

    def run(query: str) -> Any:
        data = {component: dict.fromkeys(names, query) for component, names in asked.items()}
        return target.run(data, include_outputs_from={source})[source]

    return Retriever(name, run, k)


def _source_of_documents(pipeline: Any) -> str:
    """The component whose documents count: the last one that returns some."""
    from_all = pipeline.outputs(include_components_with_connected_outputs=True)
    having: list[str] = [name for name, outputs in from_all.items() if "documents" in outputs]
    after: dict[str, set[str]] = {}
    for begin, end, *_ in pipeline.graph.edges:
        after.setdefault(begin, set()).add(end)
    last = [name for name in having if not _reachable(name, after) & set(having)]
    if len(last) != 1:
        which = f"{len(last)} components return documents: {', '.join(last)}" if last else "no component has documents"
        raise BadArgument(which, hint='lambda query: pipeline.run({…})["retriever"]["documents"]')
    return last[0]


def _reachable(name: str, after: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(after.get(name, ()))
    while todo:
        if (one := todo.pop()) not in seen:
            seen.add(one)
            todo += after.get(one, ())
    return seen


# Stores


def _is_chroma(target: Any) -> bool:
    query = _method(target, "query")
    return query is not None and "query_texts" in inspect.signature(query).parameters


def _of_chroma(target: Any, name: str, k: int) -> Retriever:
    """A collection of Chroma."""
    return Retriever(name, lambda query: target.query(query_texts=[query], n_results=k), k, takes_k=True)


def _of_qdrant(target: Any, name: str, k: int) -> Retriever:
    """Refuse a client of Qdrant, which needs a collection and a vector."""
    hint = 'lambda query, k: client.query_points("collection", query=embed(query), limit=k)'
    raise BadArgument(f"{name} needs the name of a collection and the vector of the query", hint=hint)


def _of_method(*names: str) -> Callable[[Any, str, int], Retriever]:
    def make(target: Any, name: str, k: int) -> Retriever:
        method = next(found for known in names if (found := _method(target, known)))
        return of_function(method, name, k)

    return make


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, str, int], Retriever]], ...] = (
    (_has("query_points"), _of_qdrant),
    (_has("run", "inputs", "outputs", "add_component"), _of_pipeline),
    (lambda target: hasattr(target, "__haystack_input__"), _of_component),
    (_has("similarity_search_with_score"), _of_vector_store),
    (_has("similarity_search"), _of_vector_store),
    (_has("invoke"), _of_runnable),
    (_has("ainvoke"), _of_method("ainvoke")),
    (_is_index, _of_index),
    (_has("query", "aquery"), _of_query_engine),
    (_has("retrieve"), _of_method("retrieve")),
    (_has("aretrieve"), _of_method("aretrieve")),
    (_is_chroma, _of_chroma),
)
"""The kinds of objects, each with its test; the first that fits is used."""
