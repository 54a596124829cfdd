"""How karat was called."""

from __future__ import annotations

import sys


def program() -> str:
    """How to call karat again: by its name, or by its path where it is not on the search path."""
    from shutil import which

    return "karat" if which("karat") or not sys.argv[0].endswith("karat") else sys.argv[0]
