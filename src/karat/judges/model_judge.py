"""Judges that call a language model: their settings, their name, and one engine with one budget for all requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from inspect import Parameter, Signature, signature
from threading import Lock
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from karat._internal.display import plural, sanitize
from karat._internal.grammar import write
from karat.errors import BadArgument
from karat.judges.protocol import Judge, find_judge
from karat.judges.support import Ranking, moved_places
from karat.llm import Engine, Failure, Job, ModelSettings, Spent, Steps, find_model
from karat.llm.prices import dollars, needed_price
from karat.samples import Samples
from karat.samples.notes import Note
from karat.stats.agreement import Kind, alpha

T = TypeVar("T")
_CREATION = Lock()
"""Held while an engine is created: requests that start at once share one, and its budget."""

LEXICAL = "lexical"
"""Stands for no model: support is decided by words."""
_JUDGING = ("base_url", "repeats", "per_call")
"""The settings that may change a judgement: they are part of a judge's name."""


class Judged(NamedTuple, Generic[T]):
    """The results of all queries; the queries that were refused, with the reason; and a note if these are some."""

    results: list[T]
    refused: dict[int, str]
    notes: tuple[Note, ...]


class _Known(NamedTuple):
    """The latest judgement of an evaluation: what it was about, the rankings, and the result."""

    about: list[Any]
    rankings: list[Ranking]
    found: Any


class ModelJudge(Judge):
    """A judge that calls a model. Nothing is called, and no key is read, before the first request."""

    compares = "claim"
    needs_gold = False
    makes_gold = True
    parallel = False  # one budget for all requests
    __signature__: ClassVar[Signature]

    def __init_subclass__(cls) -> None:
        """List the settings of the model among the arguments, where a subclass has `**settings`."""
        own = [p for p in signature(cls.__init__).parameters.values() if p.kind is not Parameter.VAR_KEYWORD][1:]
        shared = [Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default) for f in fields(ModelSettings)]
        cls.__signature__ = Signature([*own, *shared[1:]])

    def __init__(
        self, model: Any, given: Mapping[str, Any], *, own: Mapping[str, Any], named: Mapping[str, Any]
    ) -> None:
        """`given` are settings of the model, `own` those of the judge, `named` those of them in its name."""
        self.calls = ModelSettings.of(model, given)
        self.model = None if model == LEXICAL else self.calls
        # At once, to report a typo in the model's name, a key, or a missing price before anything else.
        found = None if self.model is None else find_model(model, self.calls.base_url)
        if found is not None:
            needed_price(found, self.calls)
        label = model if isinstance(model, str) or found is None else found.label
        values, defaults = vars(self.calls), ModelSettings()
        judging = {name: values[name] for name in _JUDGING if values[name] != getattr(defaults, name)}
        inside = [write(label), *(f"{name}={write(value)}" for name, value in {**named, **judging}.items())]
        self.name = f"{type(self).__name__.lower()}({', '.join(inside)})"
        self.settings = {"model": label, **own, **judging}
        self._own = own
        self._engine: Engine | None = None
        self._known: _Known | None = None
        self.interrupted = False
        """True after Ctrl-C: all further requests fail, so that the run can be saved."""

    def start(self) -> None:
        """Begin an evaluation: what was judged before is judged again."""
        self._known = None

    def once(self, samples: Samples, rankings: list[Ranking], ask: Callable[[], T]) -> tuple[T, list[list[int]]]:
        """The result of `ask`, and the place of each passage in the rankings.

        Under some conventions two metrics rank ties differently. The model is asked once in an evaluation; for
        rankings that differ only in their order the result is the same, with other places.
        """
        about = [samples.ids, samples.query, samples.answer, samples.response]
        known = self._known  # once: another thread may begin an evaluation
        if known is not None and known.about == about:
            moved = moved_places(known.rankings, rankings)
            if moved is not None:
                return known.found, moved
        found = ask()
        self._known = _Known(about, rankings, found)
        return found, [list(range(len(one.passages))) for one in rankings]

    def with_settings(self, **given: Any) -> Self:
        """The same judge with other settings of its model."""
        merged = {**self._own, **vars(self.calls), **given}
        judge: Self = type(self)(merged.pop("model"), **merged)
        return judge

    @property
    def engine(self) -> Engine:
        """The engine, created for the first request."""
        with _CREATION:
            if self._engine is None:
                settings = dict(vars(self.calls))
                self._engine = Engine(settings.pop("model"), **settings)
            return self._engine

    @property
    def spent(self) -> Spent | None:
        """Calls, tokens and dollars used so far; None if there was no request."""
        return None if self._engine is None else self._engine.spent

    def usage(self) -> str:
        """Calls, tokens and dollars used so far, as one line."""
        spent, warning = self.engine.spent, self.engine.warning
        cost = "" if spent.cost is None else f", {dollars(spent.cost)} ({self.engine.prices})"
        end = " · interrupted" if self.interrupted else f" · {sanitize(warning)}" if warning else ""
        calls = f"{plural(spent.calls, 'call', 'calls')} ({plural(spent.cached, 'answer', 'answers')} from the cache)"
        tokens = f"{spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens"
        return f"{sanitize(self.engine.model.name)}: {calls}, {tokens}{cost}{end}"

    def run(self, ids: Sequence[str], queries: Iterable[Steps[T]]) -> Judged[T]:
        """Judge each query by its steps; in random order, so that those judged are a random sample if calls end early.

        The order depends on the ids alone: another run, also with other queries, has the same.
        """
        jobs = [Job(steps) for steps in queries]
        order = sorted(range(len(jobs)), key=lambda row: sha256(str(ids[row]).encode("utf-8", "replace")).digest())
        in_order = [jobs[row] for row in order]
        wrong_before = self._engine.wrong_counts if self._engine else 0
        if self.interrupted:
            for job in jobs:
                job.refuse("interrupted")
        elif any(job.step for job in jobs):
            self.engine.run(in_order, "queries")
            self.interrupted = self.engine.interrupted
        refused = {row: job.refused for row, job in enumerate(jobs) if job.refused}
        wrong = self._engine.wrong_counts - wrong_before if self._engine else 0
        estimated = (Note("tokens_estimated", wrong),) if wrong else ()
        return Judged([job.result for job in jobs], refused, (*_sample_note(in_order), *estimated))


def _sample_note(jobs: Sequence[Job[Any]]) -> tuple[Note, ...]:
    """A note that only a sample was judged, from jobs in random order."""
    first = next((place for place, job in enumerate(jobs) if job.refused), len(jobs))
    later = [job for job in jobs[first:] if not job.refused]
    refused = len(jobs) - first - len(later)
    if not 0 < refused < len(jobs):
        return ()
    return (Note("sample_judged", len(jobs) - refused, len(jobs), details={"free": sum(job.free for job in later)}),)


def judge_with_model(name: str, *, model: str | None = None, confirm: bool = False, **settings: Any) -> Judge:
    """The judge with this name, calling its model with these settings; refuse them for a judge that calls none."""
    given = {setting: value for setting, value in settings.items() if value is not None}
    if model is not None and "(" not in name:
        name, model = f"{name}({write(model)})", None
    judge = find_judge(name)
    if isinstance(judge, ModelJudge) and (judge.model or model):
        return judge.with_settings(**given, **({"model": model} if model else {}), confirm=confirm)
    if given or model:
        first = "model" if model else next(iter(given)).replace("_", "-")
        raise BadArgument(f'judge "{judge.name}" calls no model, so it has no such option', got=f"--{first}")
    return judge


def majority(rounds: Sequence[list[T] | Failure]) -> list[list[T]] | Failure:
    """The judgements of each item in all rounds that succeeded; the first failure unless more than half did."""
    good = [one for one in rounds if not isinstance(one, Failure)]
    if rounds and 2 * len(good) <= len(rounds):
        return next(one for one in rounds if isinstance(one, Failure))
    return [list(each) for each in zip(*good, strict=True)]


def agreement_note(votes: Sequence[Sequence[float]], repeats: int, kind: Kind = "nominal") -> tuple[Note, ...]:
    """A note on the agreement of repeated judgements, if there were any."""
    if repeats < 2 or not votes:
        return ()
    value = alpha(votes, kind)
    return (Note("judge_agreement", details={"repeats": repeats, "alpha": None if value != value else value}),)
