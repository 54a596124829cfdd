"""Objects of frameworks as items: separate because it is read only where such objects are."""

from __future__ import annotations

from typing import Any


def plain_items(found: Any) -> list[Any]:
    """The items of a result."""
    return list(found)
