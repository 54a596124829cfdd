"""Small pieces, so that small files are evaluated as files larger than memory are."""

from __future__ import annotations

import pytest

from karat.scale import large_files as streaming
from karat.scale import pieces
from karat.scale import pieces as memory


@pytest.fixture
def tiny(monkeypatch):
    """Allow so little memory that whatever is read from a file is read in pieces of a few rows."""
    monkeypatch.setattr(memory, "_LEAST", 0)
    monkeypatch.setattr(pieces, "_FEWEST", 7)
    monkeypatch.setattr(streaming, "_ITEM_BYTES", 0)
    return 3000
