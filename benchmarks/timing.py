"""Timing: the best of several calls, karat and its peers taking turns."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A call to be timed, and where its data come from; getting them is not timed."""

    call: Callable[[Any], object]
    data: Callable[[], Any]
    repetitions: int


def best(entries: Mapping[str, Entry], *, collect: bool = True) -> dict[str, float]:
    """The least seconds of each entry.

    They take turns, so that a slow moment of the machine meets all of them. Unless told otherwise,
    what one call leaves to the garbage collector is collected before the next.
    """
    least = dict.fromkeys(entries, float("inf"))
    for turn in range(max(entry.repetitions for entry in entries.values())):
        for name, entry in entries.items():
            if turn >= entry.repetitions:
                continue
            data = entry.data()
            if collect:
                gc.collect()
            least[name] = min(least[name], _seconds(entry.call, data))
    return least


def _seconds(call: Callable[[Any], object], data: Any) -> float:
    start = perf_counter()
    result = call(data)
    taken = perf_counter() - start
    del result  # kept until here: to free it is not part of the call
    return taken
