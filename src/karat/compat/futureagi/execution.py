"""Execution handles, separate because programs import them from this path: submitted evaluations, finished at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from karat.compat.futureagi.types import BatchRunResult, EvalResult


class ExecutionError(Exception):
    """Raised by `wait` if the execution failed."""


@dataclass
class Execution:
    """A submitted evaluation; `result` is its first row, `results` are all."""

    id: str
    kind: str = "eval"
    status: str = "completed"
    result: EvalResult | None = None
    error_message: str | None = None
    error_localizer: dict[str, Any] | None = None
    results: BatchRunResult = field(default_factory=lambda: BatchRunResult([]), repr=False, compare=False)

    def is_done(self) -> bool:
        """True: nothing runs in the background."""
        return self.status in ("completed", "failed")

    def refresh(self) -> Execution:
        """The same handle, which is up to date."""
        return self

    def wait(self, *, timeout: float = 300.0, poll_interval: float = 2.0, raise_on_failure: bool = True) -> Execution:
        """The same handle, without waiting; an error if the execution failed."""
        if self.status == "failed" and raise_on_failure:
            raise ExecutionError(f"Execution {self.id} failed: {self.error_message}")
        return self
