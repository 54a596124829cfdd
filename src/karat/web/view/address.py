"""Addresses of the screens: parameters are read and written in one way, separate from what each screen has in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

from karat.web.problems import Refused

_SAFE = ",@/"
_DIGITS = 9
_SHOWN = 80


def link(path: str, parameters: Mapping[str, str] | list[tuple[str, str]], section: str = "") -> str:
    """The address of a path with parameters, at a section of the page."""
    words = urlencode(parameters, safe=_SAFE)
    return f"{path}{'?' if words else ''}{words}{'#' if section else ''}{section}"


def without_empty(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters that have a value."""
    return {name: value for name, value in parameters.items() if value}


def run_link(run_id: str) -> str:
    """The address of a run."""
    return f"/run/{run_id}"


def compare_link(run_ids: Iterable[str]) -> str:
    """The address of the comparison of some runs, the baseline first."""
    return link("/compare", {"runs": ",".join(run_ids)})


def run_ids(arguments: Mapping[str, str]) -> tuple[str, ...]:
    """The ids of the runs that an address names, each once."""
    return tuple(dict.fromkeys(one for one in arguments.get("runs", "").split(",") if one))


def whole_number(text: str) -> int | None:
    """The number that a text says, or the greatest that is read; None if it is no whole number."""
    if not (text.isascii() and text.isdecimal()):
        return None
    return int(text) if len(text) <= _DIGITS else 10**_DIGITS - 1


def count_of(arguments: Mapping[str, str], name: str, usual: int = 1) -> int:
    """A number from 1 in an address; refuse any other text."""
    text = arguments.get(name, "") or str(usual)
    number = whole_number(text)
    if number is None:
        raise Refused(400, f"{name} is a whole number from 1", got=text[:_SHOWN], hint=f"{name}={usual}")
    return max(number, 1)
