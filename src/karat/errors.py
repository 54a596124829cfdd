"""Every error karat raises on purpose, and the words it is told in.

KaratError
├── InputError      (ValueError)    the data cannot be read as samples
├── UnknownName     (LookupError)   no such metric, judge, convention or column
├── BadArgument     (ValueError)    a setting is outside of what it may be
├── RunFileError    (OSError)       a run file cannot be written or read
└── Unavailable     (RuntimeError)  this version of karat cannot do it
"""

from __future__ import annotations

from collections.abc import Iterable

_SHOWN = 120


class KaratError(Exception):
    """An error that says what was wanted, what came, and the nearest right thing."""

    def __init__(self, problem: str, *, got: object = None, hint: str | None = None) -> None:
        self.problem = problem
        self.got = None if got is None else shorten(got)
        self.hint = hint
        super().__init__(problem)

    def __str__(self) -> str:
        lines = [self.problem]
        if self.got is not None:
            lines.append(f"  got  {self.got}")
        if self.hint is not None:
            lines.append(f"  try  {self.hint}")
        return "\n".join(lines)


class InputError(KaratError, ValueError):
    """The data cannot be read as samples."""


class UnknownName(KaratError, KeyError):
    """No metric, judge, convention or column has this name."""


class BadArgument(KaratError, ValueError):
    """A setting is outside of what it may be."""


class RunFileError(KaratError, OSError):
    """A run file cannot be written or read."""


class Unavailable(KaratError, RuntimeError):
    """This version of karat cannot do it."""


def shorten(value: object) -> str:
    """The value as Python writes it, cut to one short line."""
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except ValueError:  # a number of thousands of digits has no text
        text = f"a very long {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that looks most like this one, if any does."""
    from difflib import get_close_matches

    found = get_close_matches(name.lower(), list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def unknown(kind: str, name: str, known: Iterable[str], where: str | None) -> UnknownName:
    """The error for a name that nothing has, with the name that was probably meant."""
    names = list(known)
    close = nearest(name, names)
    meant = f" Did you mean {close}?" if close else ""
    return UnknownName(f'no {kind} "{name}".{meant}', hint=where)


def first_line(error: BaseException) -> str:
    """What another library's error says first; the rest is for its own users."""
    return str(error).strip().partition("\n")[0]
