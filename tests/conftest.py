"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

# CI uses fixed examples, so that an unrelated change cannot fail; local runs also search for new ones.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
