"""Words of others, made fit for a run, a log or a terminal: short, on one line, without a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from karat.tables import clean

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
# What a key looks like, for those that came from elsewhere than the environment; services show parts of them, too.
_LOOKS = re.compile(r"\bsk-[\w*.…-]{4,}|\bBearer\s+\S+|(?<=://)[^/\s@]+@|(?<=api[-_]key[=:])\s*\S+", re.IGNORECASE)
_SHORTEST = 6
_WIDTH = 240


def told(text: str, secrets: Iterable[str] = ()) -> str:
    """The text on one short line, with every value of the environment that may be a secret taken out."""
    hidden = {value for name, value in os.environ.items() if _NAMES.search(name)} | set(secrets)
    for value in sorted((value for value in hidden if len(value) >= _SHORTEST), key=len, reverse=True):
        text = text.replace(value, "[secret]")
    return clean(_LOOKS.sub("[secret]", text), _WIDTH)
