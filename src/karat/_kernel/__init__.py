"""The kernel: the loops over users' items, compiled. It is optional: each function has a twin in Python."""

from __future__ import annotations

import os
from functools import cache
from types import ModuleType

OFF = "KARAT_KERNEL"
"""The environment variable that turns the kernel off if it is 0."""


@cache
def kernel() -> ModuleType | None:
    """The compiled functions (`native.pyi` describes them); None if they were not built or are turned off."""
    if os.environ.get(OFF) == "0":
        return None
    try:
        from karat._kernel import native
    except ImportError:
        return None
    return native


def description() -> str:
    """The kernel that runs, for `karat --version`."""
    if kernel() is not None:
        return "native kernel"
    return f"Python kernel ({OFF}=0)" if os.environ.get(OFF) == "0" else "Python kernel (no compiled one in this build)"
