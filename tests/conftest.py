"""Settings of the whole suite."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# CI uses fixed examples, so that an unrelated change cannot fail; local runs also search for new ones. Time is not
# tested: a busy machine is slow.
settings.register_profile("karat", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("karat")

NOT_MEASURED = {"compat", "fuzz", "laws", "llm", "oracles", "report", "scale"}
"""Folders whose tests do not count for the coverage: it makes them slow, and the core has tests of its own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pause the measurement of the coverage in those folders."""
    for item in items:
        if item.path.parent.name in NOT_MEASURED:
            item.add_marker("no_cover")
