"""Memory: many calls of the kernel keep nothing, whether they succeed, give up or fail."""

from __future__ import annotations

import gc
import sys
from array import array
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from karat._kernel import kernel
from support.kernels import NEEDS_KERNEL

pytestmark = NEEDS_KERNEL

SIZE = 20_000
"""Items of one ranking: a call that keeps one of its arrays keeps 160 kB or more."""
CALLS = 400
ALLOWED = CALLS * 40_000
"""Bytes by which the process may grow meanwhile; it would be four times as much if a call kept anything."""


class Failing(str):
    __slots__ = ()

    def __hash__(self):
        return hash("failing")

    def __eq__(self, other):
        raise LookupError("this key cannot be compared")


def resident():
    """The bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def in_lists(ranking, keys):
    size = len(keys)
    return kernel().find_in_lists([ranking, ranking], keys * 2, np.array([0, size, 2 * size]), np.empty(2, np.int64))


def in_dicts(scored, keys):
    size = len(keys)
    results = np.empty(size), np.empty(size, np.int64), np.empty(size, bool)
    return kernel().find_in_dicts([scored, scored], keys, np.array([0, size, size]), False, True, False, *results)


def in_texts(needles, texts):
    size = len(needles)
    return kernel().find_texts(needles, np.array([0, size, size]), [texts, texts], 0, 2, 7)


def in_columns(items, keys, scores):
    """Two queries: the second one has no keys."""
    size, start = len(items) // 2, np.array([0, len(keys), len(keys)])
    item, key, number = (column.__arrow_c_stream__() for column in (items, keys, scores))
    return kernel().find_in_column(item, np.array([0, size, 2 * size]), key, start, number, False)


def changes(items):
    return kernel().changes_in_column(items.__arrow_c_stream__())


def columns(*more, numbers=None):
    """Items, keys and scores in chunks of a column each; the strings are too long to be in their views."""
    items = pl.Series([f"{'x' * 20}{name}" for name in ids()])
    keys, scores = pl.Series([*items[:99], *more]), pl.Series(np.linspace(3, 2, SIZE))
    return items[:999].append(items[999:]), keys, scores if numbers is None else pl.Series(numbers)


def ids():
    return [f"doc-{i}" for i in range(SIZE)]


def scores():
    return dict(zip(ids(), np.linspace(2, 3, SIZE).tolist(), strict=True))


CASES = {
    "lists": (in_lists, lambda: (ids(), ids()), bytearray),
    "few keys": (in_lists, lambda: (ids(), ids()[:9]), bytearray),
    "another type at the end": (in_lists, lambda: ([*ids(), 1], ids()), type(None)),
    "another key at the end": (in_lists, lambda: (ids(), [*ids(), 1]), type(None)),
    "a lone surrogate": (in_lists, lambda: ([*ids(), "\ud800"], ["a", "b"]), type(None)),
    "a key twice": (in_lists, lambda: (ids(), [*ids(), "doc-1"]), type(None)),
    "dicts": (in_dicts, lambda: (scores(), [*ids(), *map(str, range(10**6, 10**6 + 99))]), bool),
    "integers": (
        in_dicts,
        lambda: ({10**6 + i: 1.0 * i for i in range(SIZE)}, [str(10**6 + i) for i in range(99)]),
        bool,
    ),
    "both spellings": (in_dicts, lambda: (scores() | {"12345": 1.0, 12345: 1.0}, ["12345"]), type(None)),
    "a score that is none": (in_dicts, lambda: (scores() | {"x": None}, ["a"]), type(None)),
    "a score that is too large": (in_dicts, lambda: (scores() | {"x": 10**400}, ["a"]), type(None)),
    "a key that fails": (in_dicts, lambda: (scores() | {Failing("x"): 1.0}, ["doc-1", "failing"]), LookupError),
    "columns": (in_columns, columns, tuple),
    "no strings": (in_columns, lambda: (columns()[2], *columns()[1:]), type(None)),
    "a key of a column twice": (in_columns, lambda: columns("x", "x"), type(None)),
    "other scores": (in_columns, lambda: columns(numbers=[1.0]), ValueError),
    "scores without a number": (in_columns, lambda: columns(numbers=[np.nan] * SIZE), type(None)),
    "changes": (changes, lambda: columns()[:1], bytearray),
    "changes of numbers": (changes, lambda: columns()[2:], type(None)),
    "texts": (in_texts, lambda: (["a b" * 9, "ä b" * 9], ["ä b " * 20_000, "a b " * 20_000]), bytearray),
    "a text with a surrogate": (in_texts, lambda: (["ä" * 99], ["ä " * 40_000, "\ud800"]), type(None)),
    "a slow search": (in_texts, lambda: (["a" + " " * 20_000 + "b"], ["a " * 80_000]), type(None)),
    "too many pairs": (in_texts, lambda: (["a"] * 201, ["b" * 80_000] * 100), type(None)),
}


def kind_of(function, arguments):
    try:
        return type(function(*arguments))
    except Exception as error:  # noqa: BLE001  # of whatever kind
        return type(error)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the files of Linux that describe a process")
@pytest.mark.parametrize("case", CASES)
def test_memory_does_not_grow(case):
    function, make, expected = CASES[case]
    arguments = make()
    calls = CALLS // 10 if case == "a slow search" else CALLS
    for _ in range(3):
        assert kind_of(function, arguments) is expected
    gc.collect()
    before = resident()
    for _ in range(calls):
        kind_of(function, arguments)
    assert resident() - before < ALLOWED * calls // CALLS + 2**20


@pytest.mark.parametrize("case", CASES)
def test_no_object_is_kept_or_released_too_often(case):
    function, make, _ = CASES[case]
    arguments = make()
    singles = [None, True, False]
    kept = [one for own in arguments for one in (own, *list(own)[:20], *list(own)[-20:])]
    kept += list(arguments[0].values())[:20] if isinstance(arguments[0], dict) else []
    kept = [one for one in kept if sys.getrefcount(one) < 1000]

    def counts():
        gc.collect()
        return [sys.getrefcount(one) for one in kept], [sys.getrefcount(one) for one in singles]

    kind_of(function, arguments)

    def growth():
        blocks = sys.getallocatedblocks()
        for _ in range(50):
            kind_of(function, arguments)
        return sys.getallocatedblocks() - blocks

    own, single = counts()
    assert any(growth() < 25 for _ in range(20))  # Python's lists of free objects fill up at first
    own_after, single_after = counts()
    assert own_after == own
    assert all(abs(now - then) < 25 for now, then in zip(single_after, single, strict=True))


def test_the_buffers_of_arrays_are_released():
    """An array cannot grow while its buffer is in use."""
    start, depth, own, above = array("q", [0, 1]), array("q", [0]), array("d", [0]), array("q", [0])
    tied = np.zeros(1, bool)
    references = sys.getrefcount(tied)
    for key in ("a", 1):
        kernel().find_in_lists([["a"]], [key], start, depth)
        kernel().find_in_dicts([{"a": 1.0}], [key], start, False, False, False, own, above, tied)
        kernel().find_texts([key], start, [["a"]], 0, 1, 1)
    with pytest.raises(ValueError, match="expected an aligned array"):
        kernel().find_in_lists([["a"]], ["a"], start, own)
    with pytest.raises(ValueError, match="expected an aligned array"):
        kernel().find_in_dicts([{"a": 1.0}], ["a"], start, False, False, False, own, above, np.zeros(9))
    with pytest.raises(ValueError, match="expected an aligned array"):
        kernel().find_texts(["a"], own, [["a"]], 0, 1, 1)
    for used in (start, depth, own, above):
        used.append(1)  # a BufferError otherwise
    assert sys.getrefcount(tied) == references


@pytest.mark.parametrize("key", ["é" * 1000, "5" * 999 + "é", "\ud800" * 9, "-é"])
def test_a_key_that_is_no_integer_keeps_no_bytes(key):
    """It is looked for as an integer, too, for which it need not be encoded."""
    before = sys.getsizeof(key)
    own, above, tied = np.empty(1), np.empty(1, np.int64), np.empty(1, bool)
    kernel().find_in_dicts([{5: 1.0}], [key], np.array([0, 1]), False, True, False, own, above, tied)
    assert np.isnan(own[0])
    assert sys.getsizeof(key) == before
