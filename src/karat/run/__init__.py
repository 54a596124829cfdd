"""Run: hits and scores → the result of an evaluation, and its file."""

from __future__ import annotations

from karat.run.run import Run as Run
