"""Models: what the engine needs of one, and adapters for custom objects and functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from hashlib import sha256
from inspect import iscoroutinefunction, isfunction
from types import CodeType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from karat.errors import BadArgument
from karat.llm.request import BadAnswer, Usage

Messages = list[dict[str, str]]
Schema = dict[str, Any]


class Reply(NamedTuple):
    """The answer of a model, and the tokens that the call used."""

    answer: dict[str, Any]
    prompt_tokens: int | None = None
    """None if it is unknown: it is estimated."""
    completion_tokens: int | None = None


class Price(NamedTuple):
    """Dollars per million tokens, of prompts and of answers."""

    prompt: float
    completion: float

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """The cost of these tokens, in dollars."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


class Model:
    """Answers messages with a JSON object. A model derived from it needs a `name` and `complete`."""

    name: str
    """The endpoint, the model and every sampling parameter, no secret: part of the cache key of its answers."""
    price: Price | None = None
    identified: bool = True
    """False if the name does not say which model it is: its answers are not cached."""
    max_completion: int | None = None
    """The maximum number of tokens of an answer, if there is one."""

    @property
    def short_name(self) -> str:
        """The name in price tables: without endpoint and sampling parameters."""
        return self.name

    @property
    def label(self) -> str:
        """The name in the name of a judge."""
        return self.name

    def __repr__(self) -> str:
        return self.name

    def secrets(self) -> list[str]:
        """The key and other values that must not be stored or shown, whatever the model answers."""
        return []

    def connect(self) -> AbstractAsyncContextManager[Any]:
        """Open connections; entered around every batch."""
        return nullcontext()

    async def complete(self, messages: Messages, schema: Schema) -> Reply:
        """Make one call; raise `Fault` if it fails, `BadAnswer` if the answer is not what was requested."""
        raise NotImplementedError


@runtime_checkable
class Completer(Protocol):
    """The least that a custom model needs. If it is also an async context manager, it is entered around every batch."""

    @property
    def name(self) -> str: ...  # noqa: D102
    async def complete(self, messages: Messages, schema: Schema) -> Reply: ...  # noqa: D102


class CustomModel(Model):
    """A custom object that has only a name and `complete`, with the defaults of `Model`."""

    def __init__(self, model: Completer) -> None:
        self.name = model.name
        self._model = model
        self.complete = model.complete  # type: ignore[method-assign]

    def connect(self) -> AbstractAsyncContextManager[Any]:
        """The object itself, if it can be entered."""
        return self._model if isinstance(self._model, AbstractAsyncContextManager) else nullcontext()


class FunctionModel(Model):
    """Calls `await function(messages, schema)`, which returns a dict, or a `Reply` if it knows the tokens."""

    def __init__(self, function: Callable[[Messages, Schema], Awaitable[Any]]) -> None:
        kind: Any = type(function)
        if not iscoroutinefunction(function) and not iscoroutinefunction(kind.__call__):
            raise BadArgument("a model must be an async function", got=function, hint="async def ask(messages, schema)")
        self._function = function
        given = getattr(function, "name", None)
        self._given = given if isinstance(given, str) else ""
        self.name = f"function({self._given or code_name(function)})"

    @property
    def label(self) -> str:
        """The function's own `name`, or its name in Python."""
        return self._given or self._function.__name__

    async def complete(self, messages: Messages, schema: Schema) -> Reply:
        """Make one call, with copies of the arguments: the function may change them."""
        answer = await self._function([dict(message) for message in messages], dict(schema))
        if not isinstance(answer, Reply):
            answer = Reply(answer)
        if not isinstance(answer.answer, dict):
            paid = Usage(answer.prompt_tokens, answer.completion_tokens)
            raise BadAnswer(f"the function returned {type(answer.answer).__name__}, not a dict", paid=paid)
        return answer


def code_name(function: Any) -> str:
    """The qualified name and a digest of code, defaults and plain enclosed values: a changed function is another model.

    The state of an object is unknown: it must have a name.
    """
    if not isfunction(function):
        raise BadArgument("this model needs a name", got=function, hint='model.name = "my-model-1"')
    parts = [*_code_parts(function.__code__), repr(function.__defaults__)]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a variable without a value yet
            value = cell.cell_contents
            plain = isinstance(value, str | int | float | bytes | None)
            parts.append(repr(value) if plain else type(value).__name__)
    digest = sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:12]
    return f"{function.__module__}.{function.__qualname__}, code={digest}"


def _code_parts(code: CodeType) -> list[str]:
    """The instructions, names and constants of a function, without file names and line numbers."""
    parts = [code.co_code.hex(), repr(code.co_names)]
    for value in code.co_consts:
        parts += _code_parts(value) if isinstance(value, CodeType) else [repr(value)]
    return parts
