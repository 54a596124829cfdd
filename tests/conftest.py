"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

# CI uses fixed examples, so that an unrelated change cannot fail; local runs also search for new ones. Time is not
# tested: a busy machine is slow.
settings.register_profile("karat", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("karat")
