"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

# A change must not fail because of what chance found this time; at the desk chance may look on.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
