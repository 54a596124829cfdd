"""Where ragas' datasets and experiments are stored: CSV files, JSONL files, or memory."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

from karat._internal.output import write_text
from karat._internal.writers import escape_json
from karat.compat.ragas.dataset_schema import MetricResult, csv_text
from karat.errors import BadArgument, InputError

Rows = list[dict[str, Any]]


class BaseBackend(ABC):
    """A store of named tables; datasets and experiments are kept apart."""

    @abstractmethod
    def load_dataset(self, name: str) -> Rows:
        """The rows of a dataset; FileNotFoundError if there is none of this name."""

    @abstractmethod
    def load_experiment(self, name: str) -> Rows:
        """The rows of an experiment; FileNotFoundError if there is none of this name."""

    @abstractmethod
    def save_dataset(self, name: str, data: Rows, data_model: Any = None) -> None:
        """Store a dataset, in place of one with the same name."""

    @abstractmethod
    def save_experiment(self, name: str, data: Rows, data_model: Any = None) -> None:
        """Store an experiment, in place of one with the same name."""

    @abstractmethod
    def list_datasets(self) -> list[str]:
        """The names of the datasets."""

    @abstractmethod
    def list_experiments(self) -> list[str]:
        """The names of the experiments."""


class InMemoryBackend(BaseBackend):
    """Tables in memory, for as long as the object lives."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, Rows]] = {"datasets": {}, "experiments": {}}

    def _load(self, kind: str, name: str) -> Rows:
        if name not in self._tables[kind]:
            raise FileNotFoundError(f"there is no {kind[:-1]} {name!r}")
        return deepcopy(self._tables[kind][name])

    def load_dataset(self, name: str) -> Rows:
        """The rows of a dataset."""
        return self._load("datasets", name)

    def load_experiment(self, name: str) -> Rows:
        """The rows of an experiment."""
        return self._load("experiments", name)

    def save_dataset(self, name: str, data: Rows, data_model: Any = None) -> None:
        """Store a dataset."""
        self._tables["datasets"][name] = deepcopy(data)

    def save_experiment(self, name: str, data: Rows, data_model: Any = None) -> None:
        """Store an experiment."""
        self._tables["experiments"][name] = deepcopy(data)

    def list_datasets(self) -> list[str]:
        """The names of the datasets."""
        return sorted(self._tables["datasets"])

    def list_experiments(self) -> list[str]:
        """The names of the experiments."""
        return sorted(self._tables["experiments"])

    def __repr__(self) -> str:
        return "InMemoryBackend()"


class _Files(BaseBackend):
    """Tables in the folders `datasets` and `experiments`, a file each."""

    suffix: str

    def __init__(self, root_dir: str | PathLike[str]) -> None:
        self.root_dir = Path(root_dir)

    def _path(self, kind: str, name: str) -> Path:
        if not isinstance(name, str) or not name or Path(name).name != name:
            raise BadArgument(f"the name of a {kind[:-1]} must be a file name without a folder", got=name)
        return self.root_dir / kind / f"{name}{self.suffix}"

    def _load(self, kind: str, name: str) -> Rows:
        path = self._path(kind, name)
        if not path.exists():
            raise FileNotFoundError(f"there is no {kind[:-1]} {name!r}: {path} does not exist")
        return self._rows(path)

    def _save(self, kind: str, name: str, data: Rows) -> None:
        path = self._path(kind, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, self._text(data))

    def _list(self, kind: str) -> list[str]:
        return sorted(path.stem for path in (self.root_dir / kind).glob(f"*{self.suffix}"))

    def _rows(self, path: Path) -> Rows:
        raise NotImplementedError

    def _text(self, data: Rows) -> str:
        raise NotImplementedError

    def load_dataset(self, name: str) -> Rows:
        """The rows of a dataset."""
        return self._load("datasets", name)

    def load_experiment(self, name: str) -> Rows:
        """The rows of an experiment."""
        return self._load("experiments", name)

    def save_dataset(self, name: str, data: Rows, data_model: Any = None) -> None:
        """Store a dataset."""
        self._save("datasets", name, data)

    def save_experiment(self, name: str, data: Rows, data_model: Any = None) -> None:
        """Store an experiment."""
        self._save("experiments", name, data)

    def list_datasets(self) -> list[str]:
        """The names of the datasets."""
        return self._list("datasets")

    def list_experiments(self) -> list[str]:
        """The names of the experiments."""
        return self._list("experiments")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(root_dir={str(self.root_dir)!r})"


class LocalCSVBackend(_Files):
    """CSV files: every value comes back as a string, as in ragas."""

    suffix = ".csv"

    def _rows(self, path: Path) -> Rows:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def _text(self, data: Rows) -> str:
        return csv_text(data)


class LocalJSONLBackend(_Files):
    """JSONL files: lists, numbers and nested values come back as they were; dates as strings."""

    suffix = ".jsonl"

    def _rows(self, path: Path) -> Rows:
        rows = []
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if line.strip():
                try:
                    rows.append(json.loads(line))
                except ValueError as error:
                    raise InputError(f"{path}: line {number} is not JSON: {error}") from None
        return rows

    def _text(self, data: Rows) -> str:
        dumped = (json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_plain) for row in _unpacked(data))
        return "".join(escape_json(line) + "\n" for line in dumped)


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    raise InputError("a JSONL file cannot hold this value", got=value)


def _unpacked(data: Sequence[Mapping[str, Any]]) -> Rows:
    """The rows with plain numbers for results of metrics."""
    return [{k: float(one) if isinstance(one, MetricResult) else one for k, one in row.items()} for row in data]


_BACKENDS: dict[str, type[BaseBackend]] = {
    "local/csv": LocalCSVBackend,
    "local/jsonl": LocalJSONLBackend,
    "inmemory": InMemoryBackend,
}


def find_backend(wanted: BaseBackend | str, **settings: Any) -> BaseBackend:
    """The backend with this name, or the backend itself; one of ragas, or one's own with its methods, works too."""
    if isinstance(wanted, str):
        if wanted not in _BACKENDS:
            raise BadArgument("there is no such backend", got=wanted, hint=f"one of: {', '.join(_BACKENDS)}")
        try:
            return _BACKENDS[wanted](**settings)
        except TypeError:
            raise BadArgument(f"the backend {wanted} needs a folder", hint='root_dir="evaluations"') from None
    if not hasattr(wanted, "save_dataset"):
        hint = f"one of: {', '.join(_BACKENDS)}"
        raise BadArgument("this is not a backend", got=wanted, hint=hint)
    return wanted
