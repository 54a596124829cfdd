"""Reports: a run as something to read."""

from __future__ import annotations
