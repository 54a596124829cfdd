"""Runs that can be asserted in a test: the gate's rules, raised as an AssertionError that shows what failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from karat.analysis.gate import gate
from karat.analysis.rules import NoDrop, read_rules
from karat.errors import BadArgument
from karat.report.gate import checks, summary, worst_queries
from karat.run import Run

_WORST = 3


class TestedRun(Run):
    """A run that can be asserted; in all else it is the run that it was made of."""

    __test__ = False  # not a class of tests, whatever its name

    def __init__(self, run: Run, baseline: Path | None) -> None:
        self.__dict__.update(run.__dict__)
        self._baseline = baseline

    def assert_that(self, *rules: str, **options: Any) -> None:
        """Fail the test unless the rules hold; they and the options are those of karat.gate."""
        __tracebackhide__ = True
        options.setdefault("baseline", self._found(rules))
        judged = gate(self, *rules, **options)
        if not judged.passed:
            parts = [f"{summary(judged)}\n{checks(judged)}", repr(self), worst_queries(judged, _WORST)]
            raise AssertionError("\n\n".join(filter(None, parts)))

    def _found(self, rules: tuple[str, ...]) -> Path | None:
        """The baseline; a test that needs one and has none is told how to get it."""
        __tracebackhide__ = True
        path = self._baseline
        if path is not None and path.is_file():
            return path
        for rule in read_rules(rules, self.scores):
            if isinstance(rule, NoDrop):
                problem = "and --karat-baseline was not given" if path is None else f"and there is no {path}"
                hint = "pytest --karat-baseline DIR --karat-update-baseline writes it"
                raise BadArgument(f'"{rule}" needs a baseline, {problem}', hint=hint)
        return None
