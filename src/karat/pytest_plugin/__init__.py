"""The pytest plugin: the fixture `karat`, whose runs can be asserted, saved, and compared with a baseline.

Importing it loads nothing else of karat, because pytest does so at every start.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from karat.pytest_plugin.assertable_run import AssertableRun

_LONGEST = 120
_SAVED, _UPDATED = "karat_saved", "karat_baseline"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("karat", "retrieval evaluation (karat)")
    group.addoption(
        "--karat-baseline", metavar="PATH", help="the baseline of no-drop rules: a folder of runs, or one run file"
    )
    group.addoption("--karat-save", metavar="DIR", help="save the run of each test in this folder")
    group.addoption(
        "--karat-update-baseline", action="store_true", help="write the runs into the folder of --karat-baseline"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the paths absolute before pytest-xdist starts its workers, and check them."""
    option = config.option
    for name in ("karat_baseline", "karat_save"):
        if given := getattr(option, name):
            setattr(option, name, str(config.invocation_params.dir / given))
    folder = "a folder, in which each test has its own file"
    if option.karat_save and Path(option.karat_save).is_file():
        raise pytest.UsageError(f"--karat-save: expected {folder}")
    if option.karat_update_baseline and (not option.karat_baseline or _is_run_file(option.karat_baseline)):
        raise pytest.UsageError(f"--karat-update-baseline needs --karat-baseline DIR: {folder}")


@pytest.fixture
def karat(request: pytest.FixtureRequest) -> Karat:
    """karat, for a test: karat.evaluate(samples).assert_that("recall@5 >= 0.8")."""
    return Karat(request.node, request.config.option)


class Karat:
    """The module karat in a test: its runs can be asserted."""

    def __init__(self, node: pytest.Item, option: Any) -> None:
        self._node = node
        self._option = option
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        """Everything else in karat: the fixture hides the name of the module."""
        import karat

        return getattr(karat, name)

    def evaluate(self, *args: Any, name: str | None = None, **options: Any) -> AssertableRun:
        """A run, as from karat.evaluate; `name` tells the runs of one test apart in files."""
        from karat._internal.output import check_outputs
        from karat.pipeline import evaluate
        from karat.pytest_plugin.assertable_run import AssertableRun

        self._count += 1
        own = run_path(self._node.nodeid, name or (str(self._count) if self._count > 1 else None))
        folder, baseline = self._option.karat_save, self._option.karat_baseline
        path = None if baseline is None else Path(baseline) if _is_run_file(baseline) else Path(baseline) / own
        written = {_SAVED: Path(folder) / own} if folder else {}
        if path is not None and self._option.karat_update_baseline:
            written[_UPDATED] = path
        for file in written.values():
            file.parent.mkdir(parents=True, exist_ok=True)
            check_outputs({"": file})
        run = evaluate(*args, **options)
        for kind, file in written.items():
            run.save(file)
            self._node.user_properties.append((kind, str(file)))
        return AssertableRun(run, path)


def run_path(test: str, name: str | None) -> Path:
    """The file of a test's run: a folder for each file of tests, in it a file for each run.

    Different tests have different files, whatever their parameters are, so that they can run in parallel.
    """
    test = re.sub(r"@[^\]]*$", "", test)  # a group that pytest-xdist adds
    module, _, inside = test.partition("::")
    function, bracket, parameters = inside.partition("[")
    own = function.replace("::", ".") + bracket + parameters + ("" if name is None else f"~{name}")
    folders = [quote(part).replace("..", "%2E%2E") for part in module.removesuffix(".py").split("/")]
    file = quote(own, safe="[]~")
    if len(file) > _LONGEST:  # more than some file systems take
        file = f"{file[:_LONGEST]}-{blake2b(file.encode(), digest_size=6).hexdigest()}"
    return Path(*folders, f"{file}.parquet")


def _is_run_file(baseline: str) -> bool:
    """True if a baseline is one run file for all tests, not a folder."""
    return baseline.endswith(".parquet") or Path(baseline).is_file()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Report the files that were written, in whichever process the tests ran."""
    written: dict[str, set[str]] = {_SAVED: set(), _UPDATED: set()}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for kind, value in getattr(report, "user_properties", ()):
                if kind in written:
                    written[kind].add(value)
    for kind, folder in ((_SAVED, config.option.karat_save), (_UPDATED, config.option.karat_baseline)):
        if count := len(written[kind]):
            noun = "baseline" if kind == _UPDATED else "run"
            terminalreporter.write_line(f"karat: {count} {noun}{'s' if count > 1 else ''} written to {folder}")
