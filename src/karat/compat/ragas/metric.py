"""What every metric of ragas has: the ways to call it, and what of karat it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from typing import Any

from karat.compat.ragas.dataset import MetricResult, SingleTurnSample, fields_of, items_of
from karat.conventions import Convention
from karat.conventions.libraries import RAGAS_WITHOUT_LLM
from karat.errors import InputError
from karat.judges import Ids, Judge
from karat.pipeline import evaluate
from karat.run import Run
from karat.samples.keys import as_id

Row = Mapping[str, Any] | SingleTurnSample
Both = tuple[list[Any], list[Any]]


class Metric:
    """A metric of ragas: which fields it reads, and what of karat it is."""

    name: str
    retrieved: str
    reference: str
    metric: str
    convention: Convention = RAGAS_WITHOUT_LLM
    undefined = "undefined: there are no reference items"

    def __init__(self, name: str | None = None) -> None:
        self.name = name or self.name

    def _judge(self) -> Judge:
        return Ids()

    def _item(self, item: Any) -> Any:
        """An item as it is compared: 1 and "1" are one id."""
        return as_id(item)

    def _gold(self, items: Sequence[Any]) -> list[Any]:
        return [self._item(item) for item in items]

    def single_turn_score(self, sample: SingleTurnSample, callbacks: Any = None) -> float:
        """The score of one sample."""
        return float(self.score(sample))

    async def single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any = None, timeout: Any = None) -> float:  # noqa: ASYNC109
        """The score of one sample, to be awaited; there is nothing to wait for."""
        return float(self.score(sample))

    def score(self, row: Row | None = None, /, **fields: Any) -> MetricResult:
        """The score of one sample, given by its fields."""
        return self._results([self._read(fields if row is None else {**fields_of(row), **fields})])[0]

    async def ascore(self, row: Row | None = None, /, **fields: Any) -> MetricResult:
        """The score of one sample, to be awaited."""
        return self.score(row, **fields)

    def batch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """The scores of many samples; one that cannot be read is undefined, and says why."""
        good: dict[int, Both] = {}
        bad: dict[int, MetricResult] = {}
        for number, row in enumerate(items_of("inputs", inputs)):
            try:
                good[number] = self._read(row)
            except InputError as error:
                bad[number] = MetricResult(nan, str(error))
        scored = dict(zip(good, self._results(list(good.values())), strict=True))
        return [result for _, result in sorted({**scored, **bad}.items())]

    async def abatch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """The scores of many samples, to be awaited."""
        return self.batch_score(inputs)

    def _read(self, row: Any) -> Both:
        """What was retrieved, and the gold."""
        fields = fields_of(row)
        sides = []
        for field in (self.retrieved, self.reference):
            if fields.get(field) is None:
                raise InputError(f'{self.name} needs "{field}", a list')
            sides.append(items_of(field, fields[field]))
        return [self._item(item) for item in sides[0]], self._gold(sides[1])

    def _results(self, rows: Sequence[Both]) -> list[MetricResult]:
        if not rows:
            return []
        run = evaluate(
            retrieved=[retrieved for retrieved, _ in rows],
            gold=[gold for _, gold in rows],
            metrics=self.metric,
            judge=self._judge(),
            convention=self.convention,
        )
        scores = run.scores[self.metric].tolist()
        return [
            MetricResult(score, self.undefined if isnan(score) else self._reason(run, row))
            for row, score in enumerate(scores)
        ]

    def _reason(self, run: Run, row: int) -> str:
        gold = run.gold(row + 1)
        return f"{sum(item.rank is not None for item in gold)} of {len(gold)} reference items were retrieved"


class Precision(Metric):
    """Tells of the retrieved items, not of the references."""

    def _reason(self, run: Run, row: int) -> str:
        ranks = {hit.rank for hit in run.hits(row + 1)}
        return f"{len(ranks)} of {run.all_hits.depth[row]} retrieved items are relevant"
