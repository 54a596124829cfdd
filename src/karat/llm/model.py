"""What a model is, what it is asked, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from inspect import iscoroutinefunction, isfunction
from types import CodeType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from karat.errors import BadArgument


class Reply(NamedTuple):
    """What a model said, and the tokens that it took."""

    answer: dict[str, Any]
    prompt_tokens: int
    completion_tokens: int


@runtime_checkable
class Model(Protocol):
    """Answers messages with a JSON object that follows a schema.

    A model that is also an asynchronous context manager is entered around every `ask`, to open and close connections.
    """

    @property
    def name(self) -> str:
        """The endpoint, the model and every sampling parameter, no secret: answers are kept under it."""
        ...

    async def complete(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
        """Make one call; raise `Fault` if it cannot be answered, `BadAnswer` if the answer is not what was asked."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    `version` names the prompt, and whatever else must not share an answer (the second of three repeats, say).
    `check` raises `BadAnswer` for an answer that breaks the rules; what it returns becomes the answer's value.
    """

    messages: list[dict[str, str]]
    schema: dict[str, Any]
    check: Callable[[dict[str, Any]], object]
    version: str


class Answer(NamedTuple):
    """An answer that passed its check; the tokens are those that were paid when it was first given."""

    value: Any
    cached: bool
    prompt_tokens: int
    completion_tokens: int


class Failure(NamedTuple):
    """A request that has no answer, and why."""

    cause: str


class Spent(NamedTuple):
    """What an engine has used so far; the cost in dollars, None where no price is known."""

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class BadAnswer(Exception):
    """An answer that breaks the rules; asking again may bring a better one."""

    def __init__(self, cause: str, *, paid: tuple[int, int] = (0, 0)) -> None:
        super().__init__(cause)
        self.paid = paid
        """The tokens of the prompt and of the answer that it took nevertheless."""


class Fault(Exception):
    """A call that brought no answer, and what to make of it."""

    def __init__(
        self,
        cause: str,
        *,
        again: bool = False,
        overload: bool = False,
        unreached: bool = False,
        billed: bool = False,
        wait: float | None = None,
        halt: str | None = None,
        paid: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(cause)
        self.again = again
        """Worth another call."""
        self.overload = overload
        """A sign that fewer calls should be made at once."""
        self.unreached = unreached
        """Nobody listens at the endpoint."""
        self.billed = billed
        """Sent, and perhaps paid for, although nothing came back."""
        self.wait = wait
        """Seconds that the endpoint asked everybody to wait."""
        self.halt = halt
        """Every other request would meet the same, for this reason."""
        self.paid = paid
        """The tokens of the prompt and of the answer that it took nevertheless."""


BYTES = 4
ANSWER = 200
"""The tokens that an answer is thought to have before any was seen."""


def size(messages: list[dict[str, str]], schema: dict[str, Any]) -> int:
    """The bytes that a request sends."""
    texts = sum(len(text.encode("utf-8", "replace")) for message in messages for text in message.values())
    return texts + len(json.dumps(schema))


def rough_tokens(messages: list[dict[str, str]], schema: dict[str, Any]) -> int:
    """About how many tokens a request has."""
    return size(messages, schema) // BYTES


Asked = Callable[[list[dict[str, str]], dict[str, Any]], Awaitable[Any]]
_PLAIN = (str, int, float, bool, bytes, type(None))


class Function:
    """Calls `await function(messages, schema)`, which returns a dict, or a `Reply` if it knows the tokens."""

    def __init__(self, function: Asked) -> None:
        called = function if isfunction(function) else getattr(function, "__call__", None)  # noqa: B004
        if not iscoroutinefunction(called) and not iscoroutinefunction(function):
            raise BadArgument(
                "a model is an asynchronous function", got=function, hint="async def ask(messages, schema)"
            )
        self._function = function
        self.name = _name(function)

    def __repr__(self) -> str:
        return self.name

    async def complete(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
        """Make one call, with copies: what the function does to them stays its own."""
        said = await self._function([dict(message) for message in messages], dict(schema))
        if not isinstance(said, Reply):
            rough = len(repr(said)) // BYTES
            said = Reply(said, rough_tokens(messages, schema), rough)
        paid = (said.prompt_tokens, said.completion_tokens)
        if not isinstance(said.answer, dict):
            raise BadAnswer(f"the function returned {type(said.answer).__name__}, not a dict", paid=paid)
        return said


def _name(function: Asked) -> str:
    """What answers are kept under: the function's own `name`, or where it stands and a digest of its code.

    The digest changes with the code, the defaults and the plain values that it encloses, so that the answers of
    one model are never taken for those of another. What an object holds cannot be seen: it must say its name.
    """
    given = getattr(function, "name", None)
    if isinstance(given, str) and given:
        return f"function({given})"
    if not isfunction(function):
        raise BadArgument("this model needs a name", got=function, hint='model.name = "my-model-1"')
    cells = [cell.cell_contents for cell in function.__closure__ or () if _full(cell)]
    enclosed = [repr(value) if isinstance(value, _PLAIN) else type(value).__name__ for value in cells]
    code = [*_parts(function.__code__), repr(function.__defaults__), *enclosed]
    digest = sha256("\0".join(code).encode("utf-8", "replace")).hexdigest()[:12]
    return f"function({function.__module__}.{function.__qualname__}, code={digest})"


def _full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name that has no value yet
        return False


def _parts(code: CodeType) -> list[str]:
    """The instructions, names and constants of a function, without its place in the file."""
    parts = [code.co_code.hex(), repr(code.co_names)]
    for value in code.co_consts:
        parts += _parts(value) if isinstance(value, CodeType) else [repr(value)]
    return parts
