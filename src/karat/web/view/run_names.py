"""Short names for runs that are shown side by side, from which only what all share is left out, and their times."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from karat._internal.commit import short
from karat._internal.display import cut_name
from karat.report.html.history import moment
from karat.report.html.markup import Child, h
from karat.web.view.opened import OpenedFile

_SHORT, _LONGEST = 24, 40
"""Letters of a name up to which nothing inside it is cut, and of the longest one."""
_NUMBERED = 5
"""Letters for the number of a name that would not be told from another one."""
_WORDS = re.compile(r"[^-_. ]*[-_. ]?")
Parts = list[str]


def short_names(names: Sequence[str]) -> list[str]:
    """A short name for each file, given by its path; they are different from each other if the paths are.

    The folders are left out, or where files in them have the same name, only the first and the last parts that all
    paths share. Of a name that is still long, the words that all share give way to "…".
    """
    return _different(_by_words(_by_parts(names)))


def saved(file: OpenedFile) -> list[Child]:
    """The time of a run, and the first letters of its commit if it is known."""
    time = h("time", moment(file.file.time), datetime=file.file.time.isoformat(timespec="seconds"))
    commit = short(file.run.commit)
    return [time, " · commit ", h("code", commit)] if commit else [time]


def _by_parts(names: Sequence[str]) -> list[str]:
    paths = [name.split("/") for name in names]
    stems = [path[-1] for path in paths]
    if len(set(stems)) == len(set(names)):
        return stems
    start = _shared(paths, lambda path: path)
    ends = _shared([path[start:] for path in paths], lambda path: path[::-1])
    return ["/".join(path[start : len(path) - ends]) for path in paths]


def _by_words(names: Sequence[str]) -> list[str]:
    """The names without words that all share: those at the end first, as few as make them short."""
    if len(set(names)) < 2 or max(map(len, names)) <= _SHORT:
        return list(names)
    words = [[word for word in _WORDS.findall(name) if word] for name in names]
    first = _shared(words, lambda own: own)
    last = _shared([own[first:] for own in words], lambda own: own[::-1])
    steps = [(0, cut) for cut in range(1, last + 1)] + [(cut, last) for cut in range(1, first + 1)]
    found = list(names)
    for start, end in steps:
        found = [_without(own, start, end) for own in words]
        if max(map(len, found)) <= _SHORT:
            break
    return found if sum(map(len, found)) < sum(map(len, names)) else list(names)


def _without(words: Parts, start: int, end: int) -> str:
    kept = "".join(words[start : len(words) - end])
    return ("…" if start else "") + (kept.rstrip("-_. ") + "…" if end else kept)


def _shared(lists: Sequence[Parts], way: Callable[[Parts], Parts]) -> int:
    """The number of equal parts that all begin with, or end with; each list keeps one part at least."""
    ways = [way(own) for own in lists]
    most = min(map(len, ways)) - 1
    return next((i for i in range(most) if len({own[i] for own in ways}) > 1), max(most, 0))


def _different(names: Sequence[str]) -> list[str]:
    """The names, the long ones cut in the middle; with a number where two would be the same."""
    cut = [cut_name(name, _LONGEST) for name in names]
    if len(set(cut)) == len(set(names)):
        return cut
    return [f"{place}: {cut_name(name, _LONGEST - _NUMBERED)}" for place, name in enumerate(names, 1)]
