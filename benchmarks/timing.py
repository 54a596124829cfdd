"""Timing: the best of several calls, karat and its peers interleaved."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A call to time, and a function that returns its data (not timed)."""

    call: Callable[[Any], object]
    data: Callable[[], Any]
    repetitions: int


def best(entries: Mapping[str, Entry], *, collect: bool = True) -> dict[str, float]:
    """The shortest time of each entry, in seconds.

    Calls are interleaved, so that a slow phase of the machine affects all entries.
    Garbage is collected before each call, unless `collect` is False.
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
    del result  # freed after the clock stops
    return taken
