"""Small limits, so that small files are evaluated like files larger than memory."""

from __future__ import annotations

import pytest

from karat.scale.memory import MemoryLimits


@pytest.fixture
def tiny():
    """So little memory that every file is read in pieces of a few rows."""
    return MemoryLimits(3000, fewest_rows=7, item_bytes=0)
