"""Judges that ask a language model: which one, how often, and within which bounds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from karat._internal.display import plural, sanitize
from karat._internal.grammar import Call, parse_call, write
from karat.errors import BadArgument, Unavailable
from karat.judges.protocol import Judge, find_judge
from karat.llm import Failure, find_model
from karat.samples.notes import Note
from karat.stats.agreement import Kind, alpha

if TYPE_CHECKING:
    from karat.llm import Answer, Engine, Request, Spent

ENGINE = (
    "cache", "concurrency", "max_cost", "max_tokens", "max_calls", "prices", "retries", "timeout", "backoff", "confirm",
    "progress",
)  # fmt: skip
"""Settings of the engine. They decide what is spent and how fast, never what is said: a judge's name lacks them."""


class Asking:
    """A model, and how it is asked."""

    def __init__(
        self, model: Any, *, base_url: str | None = None, repeats: int = 1, per_call: int = 12_000, **engine: Any
    ) -> None:
        """Nothing is called, and no key is looked for, before the first request."""
        for name, value, least in (("repeats", repeats, 1), ("per_call", per_call, 200)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise BadArgument(f"{name} is a whole number, at least {least}", got=value)
        if others := [name for name in engine if name not in ENGINE]:
            raise BadArgument(f'a judge has no setting "{others[0]}"', hint=f"one of: {', '.join(ENGINE)}")
        self.model = model
        self.base_url = base_url
        self.repeats = repeats
        self.per_call = per_call
        """The tokens that the texts of one call have at most, by a rough count."""
        self._settings = {name: value for name, value in engine.items() if value is not None}
        self._engine: Engine | None = None
        self._agreed = not self._settings.get("confirm", False)
        self.interrupted = False
        """Whether Ctrl-C ended the asking; whatever is asked after it fails as well, so that a run can be saved."""
        if isinstance(model, str) and model != "lexical":
            find_model(self._wanted())  # a slip, or a key that must not get into a name, is told before anything else

    @property
    def written(self) -> dict[str, Any]:
        """What belongs into the name of a judge: whatever may change its word."""
        named = self.model if isinstance(self.model, str) else _name_of(self.model)
        settings: dict[str, Any] = {"model": named}
        settings |= {"base_url": _without_secret(self.base_url)} if self.base_url else {}
        settings |= {"repeats": self.repeats} if self.repeats != 1 else {}
        return settings | ({"per_call": self.per_call} if self.per_call != 12_000 else {})

    def with_settings(self, **given: Any) -> Self:
        """The same with other settings."""
        own = {"base_url": self.base_url, "repeats": self.repeats, "per_call": self.per_call, **self._settings}
        return type(self)(given.pop("model", self.model), **{**own, **given})

    @property
    def spent(self) -> Spent | None:
        """What has been used so far; None if nothing was asked."""
        return None if self._engine is None else self._engine.spent

    def told(self) -> str:
        """What has been used so far, in a line."""
        from karat.llm.engine import dollars

        spent = self.engine.spent
        cost = "" if spent.cost is None else f", {dollars(spent.cost)}"
        tokens = f"{spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens"
        end = (
            " · interrupted" if self.interrupted else f" · {sanitize(remark)}" if (remark := self.engine.remark) else ""
        )
        calls = f"{plural(spent.calls, 'call', 'calls')} ({spent.cached:,} answers from the cache)"
        return f"asked {sanitize(self.engine.model.name)}: {calls}, {tokens}{cost}{end}"

    def ask(
        self, requests: Sequence[Request], later: Callable[[], Sequence[Request]] = tuple
    ) -> list[Answer | Failure]:
        """An answer to each request, or why there is none; one engine for all, for the budget is for all.

        `later` gives requests like those that will follow, so that the estimate is of the whole.
        """
        if not requests:
            return []
        if self.interrupted:
            return [Failure("interrupted")] * len(requests)
        self._agree(requests, later)
        answers = self.engine.ask(requests)
        self.interrupted = self.engine.interrupted
        return answers

    @property
    def engine(self) -> Engine:
        """What does the asking, made when it is first wanted."""
        if self._engine is None:
            from karat.llm import Engine

            settings = {**self._settings, "confirm": False}
            if settings.get("cache") is False:
                settings["cache"] = None
            self._engine = Engine(find_model(self._wanted()), **settings)
        return self._engine

    def _agree(self, requests: Sequence[Request], later: Callable[[], Sequence[Request]]) -> None:
        """Before the first call, say what all of it will take; on a terminal, wait for a yes."""
        from karat.llm.engine import on_terminal

        if self._agreed or not on_terminal() or not self.engine.estimate(requests).calls:
            return
        estimate = self.engine.estimate([*requests, *later()])
        sys.stderr.write(f"{sanitize(self.engine.model.name)}\n{estimate}\nGo on? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise Unavailable("nothing was asked, as you wished", hint="--yes, or confirm=False, to ask at once")
        self._agreed = True

    def _wanted(self) -> Any:
        """The model, at the address that was given."""
        if self.base_url is None:
            return self.model
        if not isinstance(self.model, str):
            raise BadArgument("base_url is for a model that is given by its name", got=_name_of(self.model))
        call = parse_call(self.model) if "(" in self.model else Call("openai", (self.model,), {})
        named = {**call.named, "base_url": self.base_url}
        inside = [*map(write, call.positional), *(f"{name}={write(value)}" for name, value in named.items())]
        return f"{call.name}({', '.join(inside)})"


def asking_judge(judge: str, *, model: str | None = None, confirm: bool = False, **settings: Any) -> Judge:
    """The judge of this name, asking its model in this way; refuses settings for a judge that asks none."""
    given = {name: value for name, value in settings.items() if value is not None}
    if model is not None and "(" not in judge:
        judge, model = f"{judge}({write(model)})", None
    found = find_judge(judge)
    own = getattr(found, "asking", None)
    if own is None or (own.model == "lexical" and model is None):
        if given or model:
            first = "model" if model else next(iter(given)).replace("_", "-")
            raise BadArgument(f'the judge "{found.name}" asks no model: nothing to set', got=f"--{first}")
        return found
    changed: Judge = found.with_settings(**given, **({"model": model} if model else {}), confirm=confirm)  # type: ignore[attr-defined]
    return changed


def _name_of(model: Any) -> str:
    return str(getattr(model, "name", None) or getattr(model, "__name__", type(model).__name__))


def _without_secret(address: str) -> str:
    """An address without the name and the password that may stand before an @."""
    scheme, found, rest = address.partition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2]}" if found else address


def agreement_note(votes: Sequence[Sequence[float]], repeats: int, kind: Kind = "nominal") -> tuple[Note, ...]:
    """A note on the agreement of repeated judgements, if there were any."""
    if repeats < 2 or not votes:
        return ()
    value = alpha(votes, kind)
    return (Note("judge_agreement", details={"repeats": repeats, "alpha": None if value != value else value}),)
