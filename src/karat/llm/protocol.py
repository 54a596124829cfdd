"""What a model is, what it is asked, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable


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
