"""A plain asynchronous function of the user's as a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from inspect import iscoroutinefunction, isfunction
from types import CodeType
from typing import Any

from karat.errors import BadArgument
from karat.llm.protocol import BadAnswer, Reply
from karat.llm.rough import BYTES, rough_tokens

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
