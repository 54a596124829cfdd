"""The folders `in_…` hold tests that run in the environment of a framework, started by test_frameworks.py."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("KARAT_IN_FRAMEWORK") else ["in_*"]
