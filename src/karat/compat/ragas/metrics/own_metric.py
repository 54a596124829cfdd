"""Custom metrics: classes derived from `SingleTurnMetric`, as in ragas, also as dataclasses."""

from __future__ import annotations

import re
from asyncio import gather
from collections.abc import Mapping, Sequence
from enum import Enum
from math import nan
from typing import Any

from karat.compat.ragas.dataset_schema import MetricResult, SingleTurnSample, fields_of
from karat.compat.ragas.metrics.metric import Metric
from karat.errors import InputError
from karat.llm.engine import run_in_thread


class MetricType(Enum):
    """The kind of sample that a metric reads."""

    SINGLE_TURN = "single_turn"
    MULTI_TURN = "multi_turn"


class MetricOutputType(Enum):
    """The kind of score; karat's are continuous."""

    BINARY = "binary"
    DISCRETE = "discrete"
    CONTINUOUS = "continuous"
    RANKING = "ranking"


class SingleTurnMetric(Metric):
    """A metric whose subclass has `async def _single_turn_ascore(self, sample, callbacks)`."""

    name = ""
    _required_columns: Mapping[Any, Any] = {}
    """The fields that a sample must have, by `MetricType`."""

    def __post_init__(self) -> None:
        """Name a dataclass without a name after its class."""
        self.name = self.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.__post_init__()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The required columns, in alphabetical order."""
        return tuple(sorted(self._required_columns.get(MetricType.SINGLE_TURN, ())))

    def _read(self, row: Any) -> SingleTurnSample:
        fields = fields_of(row)
        if missing := [name for name in self.parameters if fields.get(name) is None]:
            raise InputError(f'{self.name} needs "{missing[0]}"')
        return SingleTurnSample(**fields)

    def _one(self, row: Mapping[Any, Any]) -> MetricResult:
        (score,) = self._awaited([self._read(row)])
        if isinstance(score, BaseException):
            raise score
        return MetricResult(score)

    def _results(self, rows: Sequence[Any]) -> list[MetricResult]:
        return [
            MetricResult(nan, f"{type(score).__name__}: {score}")
            if isinstance(score, BaseException)
            else MetricResult(score)
            for score in self._awaited(rows)
        ]

    def _awaited(self, samples: Sequence[SingleTurnSample]) -> list[Any]:
        """The scores of all samples, or the error of each that failed."""

        async def every() -> list[Any]:
            works = (self._single_turn_ascore(sample, None) for sample in samples)
            return list(await gather(*works, return_exceptions=True))

        return run_in_thread(every, lambda: None)
