"""Settings of the whole suite."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# CI uses fixed examples, so that an unrelated change cannot fail; local runs also search for new ones. Time is not
# tested: a busy machine is slow.
settings.register_profile("karat", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("karat")

# The coverage of this process is measured, not that of the processes which tests start.
MEASURED = os.environ.pop("SLIPCOVER_ENABLED", "") if "PYTEST_XDIST_WORKER" in os.environ else ""


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Let the coverage be written."""
    if MEASURED:
        os.environ["SLIPCOVER_ENABLED"] = MEASURED
