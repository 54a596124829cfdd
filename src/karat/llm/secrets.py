"""Secrets: keys and header values. They are removed from every text that comes from a model or its endpoint."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from karat._internal.display import sanitize

HIDDEN = "[secret]"
_VARIABLES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_HEADERS = re.compile(r"AUTH|COOKIE|" + _VARIABLES.pattern, re.IGNORECASE)
# What a key looks like, for keys that are not in the environment; services quote parts of them, too.
_NAMED = r"""["']?\s*[=:]\s*["']?"""
_VALUE = r"""(?!\{(?:query|k)\}|(?-i:\$\{?[A-Z_][A-Z0-9_]*\}?(?:[&"'\s]|$)))[^\s&"',;]"""
"""The first character of a value that is neither a place for the query nor the name of an environment variable."""
_REST = r"""[^\s&"',;]*"""
_LOOKS_SECRET = re.compile(
    r"\bsk-[\w*.…-]{4,}|\bBearer\s+\S+|(?<=://)[^/\s@]+@"
    rf"|(?P<named>(?:api[-_]?key|passw(?:or)?d|pwd){_NAMED}){_VALUE}{_REST}"
    rf"|(?P<header>\bauthorization{_NAMED})(?:(?:basic|digest|token|apikey)\s+)?{_VALUE}{_REST}"
    rf"|(?P<url>[?&](?:(?:[\w.-]*[._-])?(?:key|sig|auth)|[\w.-]*(?:token|secret|signature|credential))=){_VALUE}{_REST}"
    # A short or numeric value may be a count or a word: "token=3", "Unexpected token: end".
    rf"|(?P<text>(?:token|secret)(?:[-_]key)?{_NAMED})(?=[\w.+/=-]*[a-z])(?=[\w.+/=-]*\d){_VALUE}[\w.+/=-]{{5,}}"
    rf"|(?P<equal>\b[a-z_-]*(?:token|secret)=)(?=[\w.+/-]*[a-z]){_VALUE}[\w.+/-]{{5,}}",
    re.IGNORECASE,
)
_ENTITIES = {"&": ["amp"], "<": ["lt"], ">": ["gt"], '"': ["quot"], "'": ["apos"]}
_SHORTEST = 6
"""Shorter values are not looked for: they may be part of any word."""
_SHORTEST_IN_ANSWERS = 8
"""In answers a word that happens to be a key, such as "ollama", must stay."""
_SHORTEST_OF_OTHERS = 16
"""A value of the environment that is not the key of the model: it may be a setting, such as a path."""
_WIDTH = 240
"""The length of a message."""


class Secrets:
    """The values that no file and no message may contain: those of a model, and those of the environment.

    The model's own are found in any usual spelling: plain, escaped as in URLs, JSON or HTML, as base64 and as hex.
    """

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = given = {value.strip() for value in own}
        others = {value.strip() for name, value in os.environ.items() if _VARIABLES.search(name)} - given
        self._in_messages = _pattern(_longest(given, _SHORTEST), _longest(others, _SHORTEST))
        self._in_answers = _pattern(_longest(given, _SHORTEST_IN_ANSWERS), _longest(others, _SHORTEST_OF_OTHERS))

    def and_those_of(self, error: BaseException) -> Secrets:
        """These values, and those in the headers of the request that failed."""
        request = getattr(error, "request", None) or getattr(getattr(error, "response", None), "request", None)
        headers = getattr(request, "headers", None)
        return Secrets(self._own.union(secret_headers(headers))) if isinstance(headers, Mapping) else self

    def message(self, text: str) -> str:
        """The text on one short line, without secrets and without anything that looks like one."""
        found = text if self._in_messages is None else self._in_messages.sub(HIDDEN, text)
        return sanitize(hide(found), _WIDTH)

    def clean(self, value: Any) -> Any:
        """The answer of a model without secrets, in its strings and in the names of its fields."""
        if self._in_answers is None:
            return value
        if isinstance(value, str):
            return self._in_answers.sub(HIDDEN, value)
        if isinstance(value, dict):
            return {self.clean(name): self.clean(one) for name, one in value.items()}
        return [self.clean(one) for one in value] if isinstance(value, list) else value


def hide(text: str) -> str:
    """The text without anything that looks like a secret; the names before the values stay."""
    return _LOOKS_SECRET.sub(lambda found: f"{next(filter(None, found.groups()), '')}{HIDDEN}", text)


def secret_headers(headers: Mapping[str, Any]) -> list[str]:
    """The words of all header values that may be secrets, by the names of the headers."""
    return [word for name, value in headers.items() if _HEADERS.search(name) for word in str(value).split()]


def _longest(values: Iterable[str], shortest: int) -> tuple[str, ...]:
    """The values of at least this length, the longest first: one may contain another."""
    return tuple(sorted((value for value in values if len(value) >= shortest), key=lambda one: (-len(one), one)))


@cache
def _pattern(own: tuple[str, ...], others: tuple[str, ...]) -> re.Pattern[str] | None:
    parts = [spelling for secret in own for spelling in _spellings(secret)] + [re.escape(secret) for secret in others]
    return re.compile("|".join(parts), re.IGNORECASE) if parts else None


def _spellings(secret: str) -> list[str]:
    """Patterns of a secret: each character plain or escaped, or the whole encoded, also inside a longer text."""
    data = secret.encode("utf-8", "surrogatepass")
    found = [r"\\{0,4}".join(map(_character, secret)), data.hex()]
    for before, start in enumerate((0, 2, 3)):  # in base64, three bytes are four characters
        whole = ((before + len(data)) * 8) // 6
        encoded = b64encode(bytes(before) + data).decode()[start:whole]
        found.append(re.escape(encoded).replace(r"\+", "[+-]").replace("/", "[/_]"))
    return found


def _character(char: str) -> str:
    code, data = ord(char), char.encode("utf-8", "surrogatepass")
    percent = "".join(f"%(?:25)?{byte:02x}" for byte in data)
    entities = "|".join([f"#0*{code}", f"#x0*{code:x}", *_ENTITIES.get(char, ())])
    return f"(?:&(?:amp;)?(?:{entities});|{re.escape(char)}|{percent}|u{code:04x}|x{code:02x})"
