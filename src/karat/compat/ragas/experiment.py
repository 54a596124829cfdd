"""ragas' `@experiment`: a function of one row, run on every row of a dataset; its results are stored as a table."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from functools import update_wrapper
from inspect import isawaitable
from itertools import count
from typing import Any, ClassVar

from karat._internal.progress import Progress
from karat.compat.ragas.backends import BaseBackend, find_backend
from karat.compat.ragas.dataset import DataTable


class Experiment(DataTable):
    """The results of an experiment, in the order of the dataset."""

    DATATABLE_TYPE: ClassVar[str] = "Experiment"

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.failures: dict[int, Exception] = {}
        """By the number of the row, from 1: the error of each row that has no result."""


class ExperimentFunction:
    """A function of one row that can be run on a whole dataset."""

    def __init__(
        self, function: Callable[..., Any], data_model: Any, backend: BaseBackend | str | None, name_prefix: str
    ) -> None:
        update_wrapper(self, function)
        self.func = function
        self.experiment_model, self.default_backend, self.name_prefix = data_model, backend, name_prefix

    async def __call__(self, *args: Any, **named: Any) -> Any:
        """The result of one row."""
        found = self.func(*args, **named)
        return await found if isawaitable(found) else found

    async def arun(
        self,
        dataset: DataTable,
        name: str | None = None,
        backend: BaseBackend | str | None = None,
        *args: Any,
        **named: Any,
    ) -> Experiment:
        """Run the function on every row, all at once, and store the results.

        A row whose function raises has no result: it is counted in a warning, and its error is in `failures`. A row
        whose function returns None has no result either.
        """
        chosen = backend or self.default_backend
        store = dataset.backend if chosen is None else find_backend(chosen)
        given = f"{self.name_prefix}-{name}" if self.name_prefix else name
        full_name = _new_name(store, self.name_prefix) if name is None else given
        table = Experiment(full_name, store, self.experiment_model)
        with Progress(len(dataset), "rows") as bar:
            tasks = [self._counted(bar, row, *args, **named) for row in dataset]
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for number, result in enumerate(results, 1):
            if isinstance(result, Exception):
                table.failures[number] = result
            elif isinstance(result, BaseException):
                raise result
            elif result is not None:
                table.append(result)
        self._report(table, len(results))
        table.save()
        return table

    async def _counted(self, bar: Progress, *args: Any, **named: Any) -> Any:
        try:
            return await self(*args, **named)
        finally:
            bar.step()

    def _report(self, table: Experiment, rows: int) -> None:
        if not table.failures:
            return
        number, error = next(iter(table.failures.items()))
        first = f"row {number}: {type(error).__name__}: {error}"
        warnings.warn(f"{len(table.failures)} of {rows} rows of the experiment failed; {first}", stacklevel=3)


def experiment(
    experiment_model: Any = None, backend: BaseBackend | str | None = None, name_prefix: str = ""
) -> Callable[[Callable[..., Any]], ExperimentFunction]:
    """A decorator for a function of one row, sync or async, which returns a dict or a pydantic object."""
    return lambda function: ExperimentFunction(function, experiment_model, backend, name_prefix)


def _new_name(backend: BaseBackend, prefix: str) -> str:
    """A name that no stored experiment has: the prefix and a number."""
    taken = set(backend.list_experiments())
    return next(name for number in count(1) if (name := f"{prefix or 'experiment'}-{number}") not in taken)
