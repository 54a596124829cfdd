"""ragas' `Dataset`: rows with a name and a backend that stores them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Self

from karat.compat.ragas.backends import BaseBackend, InMemoryBackend, find_backend
from karat.errors import BadArgument, InputError

if TYPE_CHECKING:
    import pandas as pd


class DataTable:
    """Rows, as dicts or as objects of a pydantic class, with a name and a backend."""

    DATATABLE_TYPE: ClassVar[str] = "Dataset"

    def __init__(
        self,
        name: str,
        backend: BaseBackend | str,
        data_model: Any = None,
        data: Sequence[Any] | None = None,
        **settings: Any,
    ) -> None:
        self.name, self.data_model = name, data_model
        self.backend = find_backend(backend, **settings)
        self._data: list[Any] = list(data or [])

    @classmethod
    def load(cls, name: str, backend: BaseBackend | str, data_model: Any = None, **settings: Any) -> Self:
        """The table that the backend has stored under this name."""
        table = cls(name, backend, data_model, **settings)
        table.reload()
        return table

    @classmethod
    def from_pandas(
        cls, dataframe: pd.DataFrame, name: str, backend: BaseBackend | str, data_model: Any = None, **settings: Any
    ) -> Self:
        """A table of the rows of a frame."""
        if not hasattr(dataframe, "to_dict"):
            raise TypeError(f"expected a pandas frame, got {type(dataframe).__name__}")
        table = cls(name, backend, data_model, **settings)
        table._fill(dataframe.to_dict(orient="records"))
        return table

    def save(self) -> None:
        """Store the table in its backend."""
        rows = [_fields(row) for row in self._data]
        is_experiment = self.DATATABLE_TYPE == "Experiment"
        save = self.backend.save_experiment if is_experiment else self.backend.save_dataset
        save(self.name, rows, data_model=self.data_model)

    def reload(self) -> None:
        """Read the rows again that the backend has stored."""
        is_experiment = self.DATATABLE_TYPE == "Experiment"
        self._fill((self.backend.load_experiment if is_experiment else self.backend.load_dataset)(self.name))

    def _fill(self, rows: Sequence[Mapping[Any, Any]]) -> None:
        self._data = [row if self.data_model is None else self.data_model(**row) for row in rows]

    def validate_with(self, data_model: Any) -> Self:
        """The same table with every row as an object of this pydantic class."""
        if self.data_model is not None:
            raise InputError(f"the {self.DATATABLE_TYPE.lower()} has a class already", got=self.data_model.__name__)
        return type(self)(self.name, self.backend, data_model, [data_model(**_fields(row)) for row in self._data])

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a frame."""
        import pandas as pd

        return pd.DataFrame([_fields(row) for row in self._data])

    def append(self, item: Any) -> None:
        """Add a row: a dict, or an object of the table's class."""
        if isinstance(item, dict):
            self._data.append(item if self.data_model is None else self.data_model(**item))
        elif self.data_model is not None and type(item) is self.data_model:
            self._data.append(item)
        else:
            wanted = "a dict" if self.data_model is None else f"{self.data_model.__name__} or a dict"
            raise TypeError(f"a row of this {self.DATATABLE_TYPE.lower()} must be {wanted}; got {type(item).__name__}")

    def get_row_value(self, row: Any, key: str) -> Any:
        """A value of a row, or None."""
        return row.get(key) if isinstance(row, dict) else getattr(row, key, None)

    def train_test_split(self, test_size: float = 0.2, random_state: int | None = None) -> tuple[Self, Self]:
        """Two tables in memory: the rows in order, or shuffled with this seed. This table stays as it is."""
        if not isinstance(test_size, int | float) or not 0 <= test_size <= 1:
            raise BadArgument("test_size must be a share between 0 and 1", got=test_size)
        rows = list(self._data)
        if random_state is not None:
            Random(random_state).shuffle(rows)  # noqa: S311
        cut = int(len(rows) * (1 - test_size))
        backend = InMemoryBackend()
        parts = {"train": rows[:cut], "test": rows[cut:]}
        train, test = (
            type(self)(f"{self.name}_{part}", backend, self.data_model, some) for part, some in parts.items()
        )
        train.save()
        test.save()
        return train, test

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: Any) -> Any:
        return self._data[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._data)

    def __repr__(self) -> str:
        model = "" if self.data_model is None else f"model={self.data_model.__name__}, "
        return f"{self.DATATABLE_TYPE}(name={self.name}, {model}len={len(self)})"


class Dataset(DataTable):
    """A table of samples."""


def _fields(row: Any) -> dict[str, Any]:
    """The fields of a dict or a pydantic object."""
    if isinstance(row, dict):
        return row
    if hasattr(row, "model_dump"):
        fields: dict[str, Any] = row.model_dump()
        return fields
    raise TypeError(f"a row is a {type(row).__name__}; expected a dict or a pydantic object")
