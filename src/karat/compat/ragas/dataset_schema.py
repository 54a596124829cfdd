"""Samples, datasets and results of ragas."""

from __future__ import annotations

import csv
import json
from collections import UserList
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from io import StringIO
from math import isnan
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from karat._internal.arrays import mean_defined
from karat._internal.display import plural
from karat._internal.output import write_text
from karat._internal.writers import escape_json, html_table
from karat.compat.ragas.cost import TokenUsage
from karat.errors import BadArgument, InputError, unknown

if TYPE_CHECKING:
    import pandas as pd

_FIELDS = (
    "user_input", "retrieved_contexts", "reference_contexts", "retrieved_context_ids", "reference_context_ids",
    "response", "multi_responses", "reference", "rubrics", "persona_name", "query_style", "query_length",
)  # fmt: skip
_FIRST_VERSION = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "ground_truth": "reference",
}
_LISTS = frozenset(name for name in _FIELDS if name.endswith(("contexts", "ids", "responses")))


def items_of(name: str, value: Any) -> list[Any]:
    """The items of a list, tuple, set or array."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping):
        try:
            return list(value)
        except TypeError:  # an array without dimensions claims to be iterable
            pass
    raise InputError(f'"{name}" is a {type(value).__name__}; expected a list', got=value)


class SingleTurnSample(SimpleNamespace):
    """One query with its contexts, references and response. Every field is optional."""

    def __init__(self, **fields: Any) -> None:
        values = {name: fields.get(name) for name in _FIELDS}
        lists = {name: items_of(name, values[name]) for name in _LISTS if values[name] is not None}
        super().__init__(**{**values, **lists})

    @classmethod
    def model_construct(cls, **fields: Any) -> SingleTurnSample:
        """A sample whose fields are not checked."""
        sample = cls()
        vars(sample).update(_known(fields))
        return sample

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"SingleTurnSample has no field {name!r}")

    @classmethod
    def model_validate(cls, fields: Any) -> SingleTurnSample:
        """A sample from a dict, or the sample itself."""
        return fields if isinstance(fields, cls) else cls(**fields_of(fields))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> SingleTurnSample:
        """A copy with other values of some fields."""
        fields = deepcopy(vars(self)) if deep else dict(vars(self))
        return self.model_construct(**{**fields, **(update or {})})

    def to_dict(self) -> dict[str, Any]:
        """The fields that are not None."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def to_string(self) -> str:
        """Every field that is not None under its name."""
        return "".join(f"\n{name}:\n\t{value}\n" for name, value in self.to_dict().items())

    def model_dump(
        self, *, include: Collection[str] = _FIELDS, exclude: Collection[str] = (), exclude_none: bool = False
    ) -> dict[str, Any]:
        """Every field, or those that are not None."""
        fields = self.to_dict() if exclude_none else vars(self)
        return {name: value for name, value in fields.items() if name in include and name not in exclude}

    def model_dump_json(self, *, indent: int | None = None, **settings: Any) -> str:
        """`model_dump` as JSON."""
        separators = (",", ":") if indent is None else None
        return json.dumps(self.model_dump(**settings), ensure_ascii=False, indent=indent, separators=separators)

    def get_features(self) -> list[str]:
        """The names of the fields that are not None."""
        return list(self.to_dict())


def fields_of(row: Any) -> Mapping[Any, Any]:
    """The fields of a sample or a dict."""
    if isinstance(row, SingleTurnSample):
        return row.to_dict()
    if isinstance(row, Mapping):
        return row
    if hasattr(row, "model_dump") and not isinstance(row, type):  # pydantic
        fields: Mapping[Any, Any] = row.model_dump()
        return fields
    raise InputError(f"a sample is a {type(row).__name__}; expected a SingleTurnSample or a dict", got=row)


class EvaluationDataset(UserList[SingleTurnSample]):
    """A list of samples."""

    def __init__(
        self, samples: Sequence[SingleTurnSample], backend: str | None = None, name: str | None = None
    ) -> None:
        super().__init__(items_of("samples", samples))
        self.samples, self.backend, self.name = self.data, backend, name
        for number, sample in enumerate(self.samples, 1):
            if not isinstance(sample, SingleTurnSample):
                raise InputError(
                    f"sample {number} is a {type(sample).__name__}; expected a SingleTurnSample", got=sample
                )

    @classmethod
    def from_list(cls, data: Iterable[Mapping[str, Any]], **settings: Any) -> EvaluationDataset:
        """From dicts, one per sample; keys that are not fields of a sample are ignored."""
        rows = [fields_of(row) for row in items_of("data", data)]
        return cls([SingleTurnSample(**_known(row)) for row in rows], **settings)

    @classmethod
    def from_dict(cls, mapping: Any) -> EvaluationDataset:
        """From a dict of columns, or a list of dicts."""
        if not isinstance(mapping, Mapping):
            return cls.from_list(mapping)
        columns = {name: items_of(str(name), column) for name, column in mapping.items()}
        if len(set(map(len, columns.values()))) > 1:
            sizes = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
            raise InputError("the columns differ in length", got=sizes)
        return cls.from_list([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])

    @classmethod
    def from_pandas(cls, dataframe: pd.DataFrame) -> EvaluationDataset:
        """From a frame with one row per sample; an empty cell is a missing field."""
        return cls.from_list(_records(dataframe))

    @classmethod
    def from_hf_dataset(cls, dataset: Any) -> EvaluationDataset:
        """From a Hugging Face dataset."""
        return cls.from_list(dataset.to_list())

    @classmethod
    def from_jsonl(cls, path: str | PathLike[str]) -> EvaluationDataset:
        """From a JSONL file."""
        from karat.samples.files import read_file
        from karat.samples.json_rows import Rows

        read: Any = read_file(Path(path))
        if not isinstance(read, Rows):
            raise InputError(f"{path}: expected a JSON object in each line", hint="data.jsonl")
        return cls.from_list(read.rows)

    def to_jsonl(self, path: str | PathLike[str]) -> None:
        """Write a JSONL file."""
        lines = [escape_json(json.dumps(row, ensure_ascii=False)) + "\n" for row in self.to_list()]
        write_text(path, "".join(lines))

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write a CSV file with every field of any sample; lists are written as in Python."""
        write_text(path, csv_text(self.to_list()))

    def to_hf_dataset(self) -> Any:
        """The samples as a Hugging Face dataset."""
        from datasets import Dataset

        return Dataset.from_list(self.to_list())

    def get_sample_type(self) -> type[SingleTurnSample]:
        """The class of the samples."""
        return SingleTurnSample

    def is_multi_turn(self) -> bool:
        """False: there are no conversations."""
        return False

    def to_list(self) -> list[dict[str, Any]]:
        """The samples as dicts."""
        return [sample.to_dict() for sample in self.samples]

    def to_pandas(self) -> pd.DataFrame:
        """The samples as a frame."""
        import pandas as pd

        return pd.DataFrame(self.to_list())

    def features(self) -> list[str]:
        """The fields of the samples."""
        return list(dict.fromkeys(name for sample in self.samples for name in sample.to_dict()))

    def __repr__(self) -> str:
        return f"EvaluationDataset(features={self.features()}, len={len(self)})"


class MetricResult(float):
    """A score: a float with a reason."""

    reason: str | None
    traces: Any

    def __new__(cls, value: float, reason: str | None = None, traces: Any = None) -> Self:
        """Create it from a score."""
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
    """The scores of every sample; printed, the mean of each metric."""

    def __init__(
        self,
        rows: Sequence[Mapping[Any, Any]],
        results: Mapping[str, list[MetricResult]],
        *,
        tokens: TokenUsage | None = None,
        run_id: Any = None,
        name: str | None = None,
    ) -> None:
        self.rows, self.run_id, self.name = rows, run_id, name
        self.results = results
        """By metric, the score of every sample, with its reason."""
        self.scores = [
            dict(zip(results, (float(score) for score in row), strict=True))
            for row in zip(*results.values(), strict=True)
        ]
        self._tokens = tokens

    @property
    def traces(self) -> list[dict[str, Any]]:
        """By sample, each metric's score, its reason and the judgements behind it."""
        return [
            {
                metric: {"output": one.value, "reason": one.reason, "judgements": one.traces}
                for metric, one in zip(self.results, row, strict=True)
            }
            for row in zip(*self.results.values(), strict=True)
        ]

    @property
    def _repr_dict(self) -> dict[str, float]:
        """The mean of each metric, of the defined scores."""
        return {name: mean_defined(np.array(scores, float)) for name, scores in self.results.items()}

    def total_tokens(self) -> TokenUsage:
        """The tokens that were used; answers from the cache use none."""
        if self._tokens is None:
            raise BadArgument("the tokens were not counted", hint="evaluate(…, token_usage_parser=True)")
        return self._tokens

    def total_cost(self, cost_per_input_token: float, cost_per_output_token: float | None = None) -> float:
        """The cost at these prices per token."""
        return self.total_tokens().cost(cost_per_input_token, cost_per_output_token)

    @property
    def dataset(self) -> EvaluationDataset:
        """The samples, also those that could not be read."""
        return EvaluationDataset([SingleTurnSample.model_construct(**_known(row)) for row in self.rows])

    def __getitem__(self, name: str) -> list[float]:
        if name not in self.results:
            raise unknown("metric", str(name), self.results, f"one of: {', '.join(self.results)}")
        return [float(score) for score in self.results[name]]

    def to_pandas(self) -> pd.DataFrame:
        """The samples with their scores."""
        import pandas as pd

        frame = pd.DataFrame(list(self.rows))
        for name in self.results:
            frame[name] = self[name]
        return frame

    def __repr__(self) -> str:
        return "{" + ", ".join(f"'{name}': {_mean(scores)}" for name, scores in self.results.items()) + "}"

    def _repr_html_(self) -> str:
        rows = [[name, _mean(scores)] for name, scores in self.results.items()]
        return html_table(("metric", "mean"), rows, plural(len(self.rows), "sample", "samples"))


def _mean(scores: Sequence[float]) -> str:
    """The mean of the defined scores, and the number of the others."""
    values = np.array(scores, float)
    mean, lost = mean_defined(values), int(np.isnan(values).sum())
    text = "undefined" if isnan(mean) else f"{mean:.4f}"
    return f"{text} ({lost} of {len(scores)} undefined or failed)" if lost else text


def rows_of(dataset: Any, column_map: Mapping[str, str]) -> list[Mapping[Any, Any]]:
    """The samples of any dataset as dicts, with the names of ragas."""
    if hasattr(dataset, "columns"):
        rows: list[Any] = _records(dataset)
    else:  # datasets of ragas and Hugging Face have a method
        rows = items_of("dataset", dataset.to_list() if hasattr(dataset, "to_list") else dataset)
    if not rows:
        raise InputError("a dataset must have at least one sample")
    names = {theirs: ours for ours, theirs in column_map.items()}
    renamed = [{names.get(name, name): value for name, value in fields_of(row).items()} for row in rows]
    return [{_present(name, row): value for name, value in row.items()} for row in renamed]


def _present(name: Any, row: Mapping[Any, Any]) -> Any:
    """The present name of a column of ragas' first version, unless the row has that column, too."""
    now = _FIRST_VERSION.get(name, name)
    return name if now in row else now


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV, with a column for every field of any row."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if not columns:
        return ""
    text = StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: float(cell) if isinstance(cell, MetricResult) else cell for name, cell in row.items()} for row in rows
    )
    return text.getvalue()


def _records(frame: Any) -> list[dict[Any, Any]]:
    """The rows of a frame without their empty cells."""
    records = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict(orient="records")  # Polars, pandas
    return [{name: cell for name, cell in row.items() if not _empty(cell)} for row in records]


def _empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and isnan(cell))


def _known(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _FIELDS if name in row}
