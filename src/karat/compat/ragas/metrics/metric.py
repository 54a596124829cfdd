"""Metrics of ragas: every way to call one, and the karat metric, judge and convention behind it."""

from __future__ import annotations

import os
from asyncio import CancelledError, Event, get_running_loop, shield, wait_for
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from math import isnan, nan
from typing import Any, TypeVar

from karat.compat.ragas.dataset_schema import MetricResult, SingleTurnSample, fields_of, items_of
from karat.compat.ragas.run_config import RunConfig
from karat.conventions import Convention
from karat.conventions.libraries import RAGAS_WITHOUT_LLM
from karat.errors import BadArgument, InputError, NotJudged
from karat.judges import Ids, Judge
from karat.llm import Stop
from karat.metrics.set_scores import score_sets
from karat.pipeline import evaluate, score
from karat.run import Run
from karat.samples.keys import as_ids

Row = Mapping[str, Any] | SingleTurnSample
T = TypeVar("T")
_FIELDS = frozenset(vars(SingleTurnSample()))
"""The fields of a sample."""


_THREADS = 256


@cache
def _executor(process: int) -> ThreadPoolExecutor:
    """The threads of this process; asyncio's own are few, and calls would wait for one."""
    return ThreadPoolExecutor(_THREADS, "karat-ragas")


async def in_thread(work: Callable[[], T], timeout: float | None = None) -> T:  # noqa: ASYNC109
    """The result of blocking work, done in a thread; when time is up, or if cancelled, no more calls are made.

    Time is counted from the moment at which a thread begins.
    """
    stop, context, loop, begun = Stop(), copy_context(), get_running_loop(), Event()

    def begin() -> T:
        if timeout is not None:
            loop.call_soon_threadsafe(begun.set)
        return context.run(stop.run, work)

    future = loop.run_in_executor(_executor(os.getpid()), begin)
    try:
        if timeout is not None:
            await begun.wait()
        return await wait_for(shield(future), timeout)
    except (TimeoutError, CancelledError):
        future.cancel()
        stop.now()
        raise


class Metric:
    """A metric of ragas: the fields that it reads, and the karat metric that it is."""

    name: str
    retrieved: str
    reference: str
    metric: str
    convention: Convention = RAGAS_WITHOUT_LLM
    undefined = "undefined: there are no reference items"
    run_config: RunConfig | None = None
    show_progress = True

    def __init__(self, name: str | None = None) -> None:
        self.name = name or self.name

    def init(self, run_config: RunConfig) -> None:
        """Set time limit, attempts and concurrency of the calls to a model."""
        self.run_config = run_config

    @property
    def parameters(self) -> tuple[str, ...]:
        """The fields of a sample that the metric reads, in the order in which `score` takes them."""
        return self.retrieved, self.reference

    @property
    def required_columns(self) -> dict[str, set[str]]:
        """The fields that a sample must have."""
        return {"SINGLE_TURN": set(self.parameters)}

    def score(self, *values: Any, **fields: Any) -> MetricResult:
        """The score of one sample, given as a whole, by its fields, or by their values in order."""
        return self._one(self._given(values, fields))

    async def ascore(self, *values: Any, timeout: float | None = None, **fields: Any) -> MetricResult:  # noqa: ASYNC109
        """`score`, to be awaited."""
        return await in_thread(lambda: self.score(*values, **fields), timeout)

    def single_turn_score(self, sample: SingleTurnSample, callbacks: Any = None) -> float:
        """The score of one sample."""
        return float(self._one(fields_of(sample)))

    async def single_turn_ascore(
        self,
        sample: SingleTurnSample,
        callbacks: Any = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> float:
        """`single_turn_score`, to be awaited; raises `TimeoutError` after this many seconds."""
        if type(self)._single_turn_ascore is Metric._single_turn_ascore:  # noqa: SLF001
            return await in_thread(lambda: self.single_turn_score(sample), timeout)
        return await wait_for(self._single_turn_ascore(sample, callbacks), timeout)

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any) -> float:
        """The method that custom metrics override, as in ragas."""
        return await in_thread(lambda: self.single_turn_score(sample))

    def batch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """The scores of many samples; a sample that cannot be read is undefined, with the reason."""
        good: dict[int, Any] = {}
        bad: dict[int, MetricResult] = {}
        for number, row in enumerate(items_of("inputs", inputs)):
            try:
                good[number] = self._read(row)
            except InputError as error:
                bad[number] = MetricResult(nan, str(error))
        try:
            results = self._results(list(good.values()))
        except NotJudged as error:  # every call fails, such as with a wrong key
            results = [MetricResult(nan, str(error))] * len(good)
        scored = dict(zip(good, results, strict=True))
        return [result for _, result in sorted({**scored, **bad}.items())]

    async def abatch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """`batch_score`, to be awaited."""
        return await in_thread(lambda: self.batch_score(inputs))

    def _given(self, values: Sequence[Any], fields: Mapping[str, Any]) -> Mapping[Any, Any]:
        """The fields of a sample from the arguments of `score`."""
        named = {name: value for name, value in fields.items() if name != "callbacks"}
        if wrong := [name for name in named if name not in _FIELDS]:
            hint = f"{self.name}: {', '.join(self.parameters)}"
            raise BadArgument(f'a sample has no field "{wrong[0]}"', hint=hint)
        if values and (isinstance(values[0], Mapping | SingleTurnSample) or (len(values) == 1 and not named)):
            return {**fields_of(values[0]), **named}
        if len(values) > len(self.parameters) or (twice := named.keys() & self.parameters[: len(values)]):
            given = f"{len(values)} values" if len(values) > len(self.parameters) else f"{min(twice)} twice"
            raise BadArgument(f"{self.name} reads {', '.join(self.parameters)}", got=given)
        return {**dict(zip(self.parameters, values, strict=False)), **named}

    def _one(self, row: Mapping[Any, Any]) -> MetricResult:
        return self._results([self._read(row)])[0]

    def _judge(self, rows: Sequence[Any]) -> Judge:
        """The judge of these samples, as `_read` returns them."""
        return Ids()

    def _items(self, items: Sequence[Any]) -> list[Any]:
        """The items as they are compared: 1 and "1" are one id."""
        return as_ids(items)

    def _gold(self, items: Sequence[Any]) -> list[Any]:
        return self._items(items)

    def _read(self, row: Any) -> Any:
        """The retrieved items and the gold of a sample."""
        fields = fields_of(row)
        sides = []
        for field in (self.retrieved, self.reference):
            if fields.get(field) is None:
                raise InputError(f'{self.name} needs "{field}", a list')
            sides.append(items_of(field, fields[field]))
        return self._items(sides[0]), self._gold(sides[1])

    def _results(self, rows: Sequence[Any]) -> list[MetricResult]:
        if not rows:
            return []
        run = self._run(rows)
        return [self._result(run, row, score) for row, score in enumerate(run.scores[self.metric].tolist())]

    def _run(self, rows: Sequence[Any]) -> Run:
        retrieved, gold = ([row[side] for row in rows] for side in (0, 1))
        return evaluate(
            retrieved=retrieved, gold=gold, metrics=self.metric, judge=self._judge(rows), convention=self.convention
        )

    def _result(self, run: Run, row: int, score: float) -> MetricResult:
        return MetricResult(score, self.undefined if isnan(score) else self._reason(run, row))

    def _reason(self, run: Run, row: int) -> str:
        gold = run.gold(row + 1)
        return f"{sum(item.rank is not None for item in gold)} of {len(gold)} reference items were retrieved"


class ByIds(Metric):
    """A metric that compares ids. It takes less time than a thread would to begin."""

    retrieved, reference = "retrieved_context_ids", "reference_context_ids"

    def single_turn_score(self, sample: SingleTurnSample, callbacks: Any = None) -> float:
        """The score of one sample."""
        retrieved, gold = self._read(sample)
        if self.convention is Metric.convention:
            known = score_sets(self.metric, retrieved, gold, self.convention)
            if known is not None:
                return known
        return score(self.metric, retrieved, gold, judge=self._judge(()), convention=self.convention)

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any) -> float:
        return self.single_turn_score(sample)


class Precision(Metric):
    """A metric whose reason is about retrieved items, not about references."""

    def _reason(self, run: Run, row: int) -> str:
        ranks = {hit.rank for hit in run.hits(row + 1)}
        return f"{len(ranks)} of {run.all_hits.depth[row]} retrieved items are relevant"


class IDBasedContextRecall(ByIds):
    """Share of the reference ids that were retrieved."""

    name, metric = "id_based_context_recall", "recall"


class IDBasedContextPrecision(ByIds):
    """Share of the distinct retrieved ids that are among the reference ids."""

    name, metric = "id_based_context_precision", "precision"
    undefined = "undefined: nothing was retrieved"

    def _reason(self, run: Run, row: int) -> str:
        found = {hit.gold for hit in run.hits(row + 1)}
        different = int(run.all_hits.totals.at("different", run.all_hits.depth[None].astype(float))[0, row])
        return f"{len(found)} of {different} retrieved items are relevant"
