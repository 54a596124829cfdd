"""For pytest: the fixture `karat`, whose runs can be asserted, kept, and set against a baseline.

Importing this loads nothing of karat's own: pytest does it at every start.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from karat.report.assertion import TestedRun


_LONGEST = 120


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


_SAVED, _UPDATED = "karat_saved", "karat_baseline"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("karat", "retrieval evaluation (karat)")
    group.addoption(
        "--karat-baseline", metavar="PATH", help="what no-drop is set against: a folder of runs, or one run file"
    )
    group.addoption("--karat-save", metavar="DIR", help="keep the run of each test in this folder")
    group.addoption(
        "--karat-update-baseline", action="store_true", help="write the runs into the folder of --karat-baseline"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Settle the paths, before other processes are started that have to agree on them."""
    option = config.option
    for name in ("karat_baseline", "karat_save"):
        if given := getattr(option, name):
            setattr(option, name, str(config.invocation_params.dir / given))
    if option.karat_save and Path(option.karat_save).is_file():
        raise pytest.UsageError("--karat-save: wanted a folder, each test has a file of its own in it")
    if option.karat_update_baseline and (not option.karat_baseline or is_file(option.karat_baseline)):
        raise pytest.UsageError(
            "--karat-update-baseline needs --karat-baseline DIR: a folder, each test has a file of its own in it"
        )


def is_file(baseline: str) -> bool:
    """Whether a baseline is one run file for all tests, and not a folder."""
    return baseline.endswith(".parquet") or Path(baseline).is_file()


@pytest.fixture
def karat(request: pytest.FixtureRequest) -> Karat:
    """karat, for a test: karat.evaluate(samples).assert_that("recall@5 >= 0.8")."""
    return Karat(request.node, request.config.option)


class Karat:
    """The module karat as a test sees it: its runs can be asserted."""

    def __init__(self, node: pytest.Item, option: Any) -> None:
        self._node = node
        self._option = option
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        """Everything else that karat has: the fixture stands where the module's name would."""
        import karat

        return getattr(karat, name)

    def evaluate(self, *args: Any, name: str | None = None, **options: Any) -> TestedRun:
        """A run as karat.evaluate gives it; `name` tells the runs of one test apart in files."""
        from karat.pipeline import evaluate
        from karat.report.assertion import TestedRun

        self._count += 1
        own = place(self._node.nodeid, name or (str(self._count) if self._count > 1 else None))
        run = evaluate(*args, **options)
        kept, baseline = self._option.karat_save, self._option.karat_baseline
        if kept:
            self._keep(run, Path(kept) / own, _SAVED)
        if baseline is None:
            return TestedRun(run, None)
        path = Path(baseline) if is_file(baseline) else Path(baseline) / own
        if self._option.karat_update_baseline:
            self._keep(run, path, _UPDATED)
        return TestedRun(run, path)

    def _keep(self, run: Any, path: Path, what: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        run.save(path)
        self._node.user_properties.append((what, str(path)))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was written; the tests may have run in other processes."""
    written: dict[str, set[str]] = {_SAVED: set(), _UPDATED: set()}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name in written:
                    written[name].add(value)
    for name, folder in ((_SAVED, config.option.karat_save), (_UPDATED, config.option.karat_baseline)):
        if written[name]:
            what = "baseline" if name == _UPDATED else "run"
            count = len(written[name])
            terminalreporter.write_line(f"karat: {count} {what}{'s' if count > 1 else ''} written to {folder}")
