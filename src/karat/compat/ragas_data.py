"""The data of ragas: samples, data sets, and results that are numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from karat.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_FIELDS = (
    "user_input", "retrieved_contexts", "reference_contexts", "retrieved_context_ids", "reference_context_ids",
    "response", "multi_responses", "reference", "rubrics",
)  # fmt: skip
_LISTS = frozenset(name for name in _FIELDS if name.endswith(("contexts", "ids", "responses")))


class SingleTurnSample:
    """One question: what was retrieved, what should have been, what was answered. Every field may be left out."""

    def __init__(self, **fields: Any) -> None:
        for name in _FIELDS:
            value = fields.get(name)
            if name in _LISTS and value is not None and not isinstance(value, list | tuple):
                raise InputError(f'"{name}" is a {type(value).__name__}; wanted a list', got=value)
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"SingleTurnSample has no field {name!r}")

    def to_dict(self) -> dict[str, Any]:
        """The fields that are given."""
        return {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}

    model_dump = to_dict

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleTurnSample) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SingleTurnSample({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"


class EvaluationDataset:
    """Samples in order."""

    def __init__(self, samples: Sequence[SingleTurnSample]) -> None:
        self.samples = list(samples)

    @classmethod
    def from_list(cls, data: Sequence[Mapping[str, Any]]) -> EvaluationDataset:
        """From dicts, one for each sample."""
        return cls([SingleTurnSample(**row) for row in data])

    @classmethod
    def from_dict(cls, mapping: Any) -> EvaluationDataset:
        """From a dict of columns, or a list of dicts."""
        if not isinstance(mapping, Mapping):
            return cls.from_list(mapping)
        return cls.from_list([dict(zip(mapping, row, strict=True)) for row in zip(*mapping.values(), strict=True)])

    @classmethod
    def from_pandas(cls, dataframe: pd.DataFrame) -> EvaluationDataset:
        """From a frame with a row for each sample."""
        return cls.from_list(dataframe.to_dict(orient="records"))  # type: ignore[arg-type]

    @classmethod
    def from_jsonl(cls, path: str | PathLike[str]) -> EvaluationDataset:
        """From a file with a JSON object in each line."""
        from karat.samples.files import read_file

        rows: Any = read_file(Path(path))
        return cls.from_list(rows.rows)

    def to_list(self) -> list[dict[str, Any]]:
        """The samples as dicts."""
        return [sample.to_dict() for sample in self.samples]

    def to_pandas(self) -> pd.DataFrame:
        """The samples as a frame."""
        import pandas as pd

        return pd.DataFrame(self.to_list())

    def features(self) -> list[str]:
        """The fields that the samples have."""
        return list(dict.fromkeys(name for sample in self.samples for name in sample.to_dict()))

    def __iter__(self) -> Iterator[SingleTurnSample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int | slice) -> Any:
        found = self.samples[index]
        return EvaluationDataset(found) if isinstance(found, list) else found

    def __repr__(self) -> str:
        return f"EvaluationDataset(features={self.features()}, len={len(self)})"


class MetricResult(float):
    """A score that is a number, and knows its reason."""

    reason: str | None
    traces: Any

    def __new__(cls, value: float, reason: str | None = None, traces: Any = None) -> Self:
        """Make it of a score."""
        result = super().__new__(cls, value)
        result.reason, result.traces = reason, traces
        return result

    @property
    def value(self) -> float:
        """The plain number."""
        return float(self)

    def to_dict(self) -> dict[str, Any]:
        """Number and reason."""
        return {"result": self.value, "reason": self.reason}

    def __repr__(self) -> str:
        return f"MetricResult(value={self.value}" + (f", reason={self.reason!r})" if self.reason else ")")

    __str__ = __repr__


class EvaluationResult:
    """The scores of every sample, and each mean with how many it is over."""

    def __init__(self, rows: list[Mapping[str, Any]], results: Mapping[str, list[MetricResult]]) -> None:
        self.dataset = EvaluationDataset.from_list(rows)
        self.results = results
        self.scores = [
            dict(zip(results, (float(score) for score in row), strict=True))
            for row in zip(*results.values(), strict=True)
        ]

    def __getitem__(self, name: str) -> list[float]:
        return [float(score) for score in self.results[name]]

    def to_pandas(self) -> pd.DataFrame:
        """The samples with their scores."""
        frame = self.dataset.to_pandas()
        for name, scores in self.results.items():
            frame[name] = [float(score) for score in scores]
        return frame

    def __repr__(self) -> str:
        return "{" + ", ".join(f"'{name}': {_mean(scores)}" for name, scores in self.results.items()) + "}"


def _mean(scores: Sequence[float]) -> str:
    """The mean, and how many scores are not in it."""
    defined = [score for score in scores if not isnan(score)]
    mean = f"{sum(defined) / len(defined):.4f}" if defined else "undefined"
    lost = len(scores) - len(defined)
    return f"{mean} ({lost} of {len(scores)} undefined or failed)" if lost else mean


def rows_of(dataset: Any, column_map: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """The samples of any data set as dicts, under ragas' names."""
    if isinstance(dataset, EvaluationDataset):
        rows: Any = dataset.to_list()
    elif hasattr(dataset, "to_dict") and hasattr(dataset, "columns"):  # pandas
        rows = dataset.to_dict(orient="records")
    elif hasattr(dataset, "to_list"):  # Hugging Face
        rows = dataset.to_list()
    else:
        rows = [row.to_dict() if isinstance(row, SingleTurnSample) else row for row in dataset]
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InputError("a data set holds at least one sample, as a SingleTurnSample or a dict", got=dataset)
    names = {theirs: ours for ours, theirs in column_map.items()}
    return [{names.get(name, name): value for name, value in row.items()} for row in rows]
