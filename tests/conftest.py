"""Settings of the whole suite."""

from __future__ import annotations

import gc
import os
import signal
import sys

import pytest
from hypothesis import settings

# CI uses fixed examples, so that an unrelated change cannot fail; local runs also search for new ones. Time is not
# tested: a busy machine is slow.
settings.register_profile("karat", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("karat")

# Tests start hundreds of processes, which load karat and frameworks. They are compiled once, also where the environment
# says otherwise, as that of a container often does.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

SECONDS = {
    "test_frameworks.py": 100, "test_spark.py": 80, "test_width.py": 30, "test_streaming.py": 30, "test_init.py": 30,
    "test_pytest_plugin.py": 20, "test_jobs.py": 20, "test_laws.py": 20, "test_twins.py": 15, "test_merge.py": 15,
    "test_accessibility.py": 25, "test_run_screen.py": 15, "test_runs_screen.py": 15, "test_query_screen.py": 12,
    "test_screens_open.py": 10, "test_keyboard.py": 10, "test_hostile_texts.py": 10, "test_large_run.py": 10,
    "test_view_security.py": 10, "test_label_page.py": 30, "test_label_api.py": 20, "test_label_files.py": 15,
}  # fmt: skip
"""The longest files. A process runs a whole file: one that began last would run alone in the end."""

# The coverage of this process is measured, not that of the processes which tests start.
MEASURED = os.environ.pop("SLIPCOVER_ENABLED", "") if "PYTEST_XDIST_WORKER" in os.environ else ""


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Let the coverage be written."""
    if MEASURED:
        os.environ["SLIPCOVER_ENABLED"] = MEASURED


@pytest.fixture(autouse=True)
def _signals_are_not_blocked():
    """Let no test block Ctrl-C for those after it: processes that they start would never get it."""
    yield
    assert not hasattr(signal, "pthread_sigmask") or not signal.pthread_sigmask(signal.SIG_BLOCK, ())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; `make test` keeps this order."""
    items.sort(key=lambda item: -SECONDS.get(item.path.name, 0))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what lives until the end out of garbage collection."""
    gc.freeze()
