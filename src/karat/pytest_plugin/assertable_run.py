"""A run that a test can assert; separate from the hooks, because pytest loads those at every start, and this NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from karat.analysis.gate import gate
from karat.analysis.rules import NoChange, NoDrop, read_rules, with_fields
from karat.errors import BadArgument
from karat.report.gate import checks, summary, worst_queries
from karat.run import Run

_WORST = 3


class AssertableRun(Run):
    """A run with `assert_that`: the rules of the gate, raised as an AssertionError that shows which failed."""

    def __init__(self, run: Run, baseline: Path | None) -> None:
        super().__init__(
            ids=run.ids,
            hits=run.all_hits,
            metrics=run.requested,
            convention=run.convention,
            scores=run.columns,
            provenance=run.provenance,
            query=run.query,
            meta=run.meta,
            items=lambda: run.stored_items,
        )
        self._baseline = baseline

    def assert_that(self, *rules: str, **options: Any) -> None:
        """Fail the test unless the rules hold. The rules and options are those of `karat.gate`."""
        __tracebackhide__ = True
        options.setdefault("baseline", self._baseline_of(rules))
        found = gate(self, *rules, **options)
        if not found.passed:
            parts = [f"{summary(found)}\n{checks(found)}", repr(self), worst_queries(found, _WORST)]
            raise AssertionError("\n\n".join(filter(None, parts)))

    def _baseline_of(self, rules: tuple[str, ...]) -> Path | None:
        """The baseline, if it exists; an error if a rule needs it and it does not.

        The gate is undecided then, and prints it. A test that passed would print nothing.
        """
        __tracebackhide__ = True
        path = self._baseline
        if path is not None and path.is_file():
            return path
        for rule in read_rules(rules, with_fields(self, rules)):
            if isinstance(rule, NoDrop | NoChange):
                problem = "and --karat-baseline was not given" if path is None else f"and there is no {path}"
                hint = "pytest --karat-baseline DIR --karat-update-baseline"
                raise BadArgument(f'"{rule}" needs a baseline, {problem}', hint=hint)
        return None
