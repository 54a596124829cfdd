"""A stream that claims to be a terminal."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    def isatty(self):
        return True
