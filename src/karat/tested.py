"""A run inside a test: what it is asserted with, and where it is kept."""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote

from karat.errors import BadArgument
from karat.gatekeeping import gate
from karat.report.gate import checks, summary, worst_queries
from karat.rules import NoDrop, read_rules
from karat.run import Run

_LONGEST = 120
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


def place(test: str, name: str | None) -> Path:
    """Where the run of a test is kept: a folder for the file of tests, in it a file for each run.

    Different tests have different files, whatever their parameters are called, so that they can run at
    the same time.
    """
    test = re.sub(r"@[^\]]*$", "", test)  # a group that pytest-xdist adds
    module, _, inside = test.partition("::")
    function, bracket, parameters = inside.partition("[")
    own = function.replace("::", ".") + bracket + parameters + ("" if name is None else f"~{name}")
    folders = [quote(part).replace("..", "%2E%2E") for part in module.removesuffix(".py").split("/")]
    return Path(*folders, f"{_short(quote(own, safe='[]~'))}.parquet")


def _short(name: str) -> str:
    """A name that every file system takes."""
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}-{blake2b(name.encode(), digest_size=6).hexdigest()}"
