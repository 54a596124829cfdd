"""The errors that karat raises, and how they are printed.

KaratError
├── InputError      (ValueError)    the data cannot be read as samples
│   └── NoColumn                    a column is missing; others may have what it should
├── UnknownName     (LookupError)   no such metric, judge, convention or column
├── BadArgument     (ValueError)    an argument or setting is invalid
├── RunFileError    (OSError)       a run file cannot be written or read
└── Unavailable     (RuntimeError)  a feature or dependency is not available
    └── NotJudged                   too few queries were judged, or every call of a model or retriever fails
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SHOWN = 120
_LONGEST = 2000
"""Characters of a sentence: names from the data or the command line may be longer."""


class Signs(dict[int, str]):
    """A table for `str.translate`, with another text for each invisible character; which these are is decided here.

    They are control characters, direction marks and other formats, line and paragraph separators, surrogates, private
    and unassigned characters. Spaces of any width are not.
    """

    def __init__(self, sign: Callable[[str], str]) -> None:
        self._sign = sign

    def __missing__(self, code: int) -> str:
        char = chr(code)
        is_hidden = not char.isprintable() and unicodedata.category(char) != "Zs"
        self[code] = text = self._sign(char) if is_hidden else char
        return text


SIGNS = Signs(lambda char: " " if char in "\t\n\r" else "\ufffd")
"""The signs on one line of a terminal."""


class KaratError(Exception):
    """An error with the problem, the value that was given, and what to try."""

    def __init__(self, problem: str, *, got: object = ..., hint: str | None = None) -> None:
        self.problem = _one_line(problem)
        self.got = None if got is ... else shorten(got)
        self.hint = None if hint is None else _one_line(hint)
        super().__init__(self.problem)

    def __str__(self) -> str:
        lines = [self.problem]
        if self.got is not None:
            lines.append(f"  got  {self.got}")
        if self.hint is not None:
            lines.append(f"  try  {self.hint}")
        return "\n".join(lines)


class InputError(KaratError, ValueError):
    """The data cannot be read as samples."""


class NoColumn(InputError):
    """A column is missing. `fields` are the columns that may be read instead, by karat's names."""

    def __init__(
        self, problem: str, *, got: object = ..., hint: str | None = None, fields: Mapping[str, str] | None = None
    ) -> None:
        self.fields = dict(fields or {})
        quoted = ", ".join(f'"{name}": "{theirs}"' for name, theirs in self.fields.items())
        super().__init__(problem, got=got, hint=f"fields={{{quoted}}}" if fields else hint)


class UnknownName(KaratError, KeyError):
    """No metric, judge, convention or column has this name."""


class BadArgument(KaratError, ValueError):
    """An argument or setting is invalid."""


class RunFileError(KaratError, OSError):
    """A run file cannot be written or read."""


class Unavailable(KaratError, RuntimeError):
    """A feature or dependency is not available."""


class NotJudged(Unavailable):
    """Too few queries were judged, or none because every call of a model or retriever fails."""


def shorten(value: object) -> str:
    """The `repr` of a value, cut to one short line."""
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except ValueError:  # an integer with thousands of digits
        text = f"a very long {type(value).__name__}"
    except Exception:  # noqa: BLE001  # deep nesting, or the object's own code
        text = f"a {type(value).__name__} that cannot be shown"
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _one_line(text: str) -> str:
    """The text without what a terminal or a CI server acts on: it may contain, or begin with, names from the data."""
    text = text.translate(SIGNS)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    return text.replace("::", ": :", 1) if text.lstrip().startswith("::") else text


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The most similar known name, if any is similar."""
    from difflib import get_close_matches

    found = get_close_matches(str(name).lower(), list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def nearest_file(path: Path) -> str | None:
    """The path of the most similar file in the folder of one that does not exist, if any is similar.

    The names without their endings must be similar, too: with a long ending, "a.parquet" is similar to "b.parquet".
    """
    try:
        others = [other.name for other in path.parent.iterdir()]
    except OSError:
        return None
    stems = {name: name.partition(".")[0].lower() for name in others}
    stem = nearest(path.name.partition(".")[0], stems.values())
    close = nearest(path.name, [name for name in others if stems[name] == stem], cutoff=0.8)
    return str(path.parent / close) if close else None


def unknown(kind: str, name: str, known: Iterable[str], where: str | None) -> UnknownName:
    """The error for an unknown name, with the most similar known name."""
    names = list(known)
    close = nearest(name, names)
    meant = f" Did you mean {close}?" if close else ""
    return UnknownName(f'no {kind} "{name}".{meant}', hint=where)


def first_line(error: BaseException) -> str:
    """The first line of another library's error message."""
    return str(error).strip().partition("\n")[0]
