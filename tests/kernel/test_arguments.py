"""Arguments of the kernel's functions: arrays of another type or size are refused, before they are read or written."""

from __future__ import annotations

import inspect

import numpy as np
import polars as pl
import pytest

from karat._kernel import kernel
from support.kernels import NEEDS_KERNEL

pytestmark = NEEDS_KERNEL


def unaligned(size):
    """8-byte integers at an odd address."""
    return np.frombuffer(b"x" + bytes(8 * size), np.int64, offset=1)


def readonly(array):
    array.flags.writeable = False
    return array


def in_lists(start=None, depth=None, keys=("a", "b")):
    start = np.array([0, 1, 2]) if start is None else start
    depth = np.zeros(2, np.int64) if depth is None else depth
    return kernel().find_in_lists([["a"], ["b"]], list(keys), start, depth)


def in_dicts(**given):
    arrays = {"start": np.arange(3), "own": np.zeros(2), "above": np.zeros(2, np.int64), "tied": np.zeros(2, bool)}
    start, *results = (arrays | given).values()
    return kernel().find_in_dicts([{"a": 1.0}, {"b": 1.0}], ["a", "b"], start, False, False, False, *results)


def in_texts(start=None, first=0, last=2):
    start = np.array([0, 1, 2]) if start is None else start
    return kernel().find_texts(["a", "b"], start, [["a"], ["b"]], first, last, 1)


FUNCTIONS = [in_lists, in_dicts, in_texts]


@pytest.mark.parametrize("call", FUNCTIONS)
def test_correct_arguments_are_accepted(call):
    assert call() is not None
    assert call(start=readonly(np.array([0, 1, 2]))) is not None


OFFSETS = {
    "too short": np.array([0, 1]),
    "too long": np.array([0, 1, 2, 2]),
    "empty": np.array([], np.int64),
    "floats": np.array([0.0, 1.0, 2.0]),
    "32 bits": np.array([0, 0, 1, 0, 2, 0], np.int32),
    "another byte order": np.array([0, 1, 2], ">i8"),
    "with gaps": np.arange(6)[::2],
    "not aligned": unaligned(3),
    "at an odd address": memoryview(bytearray(25))[1:].cast("q"),
    "bytes": bytes(24),
    "a list": [0, 1, 2],
    "no array": object(),
    "a string": "abc",
}


@pytest.mark.parametrize("call", FUNCTIONS)
@pytest.mark.parametrize("start", OFFSETS)
def test_offsets_of_another_type_or_size_are_refused(call, start):
    with pytest.raises((TypeError, ValueError, BufferError)):
        call(start=OFFSETS[start])


@pytest.mark.parametrize("call", FUNCTIONS)
@pytest.mark.parametrize(
    "start", [[0, 1, 3], [-1, 1, 2], [0, 2, 1], [1, 0, 2], [0, 1, 2**62], [-(2**63), 0, 2], [5, 5, 5]]
)
def test_offsets_that_do_not_fit_the_keys_are_refused(call, start):
    with pytest.raises(ValueError, match="the offsets do not fit the keys"):
        call(start=np.array(start, np.int64))


RESULTS = [
    (in_lists, "depth", np.int64),
    (in_dicts, "own", float),
    (in_dicts, "above", np.int64),
    (in_dicts, "tied", bool),
]


@pytest.mark.parametrize(("call", "name", "kind"), RESULTS)
def test_results_of_another_type_or_size_are_refused(call, name, kind):
    assert call(**{name: np.zeros(2, kind)}) is not None
    other = {np.int64: float, float: np.int64, bool: np.uint8}[kind]
    for array in (
        np.zeros(1, kind),
        np.zeros(3, kind),
        np.zeros(2, other),
        np.zeros(4, kind)[::2],
        bytearray(16),
        None,
    ):
        with pytest.raises((TypeError, ValueError, BufferError)):
            call(**{name: object() if array is None else array})
    with pytest.raises((ValueError, BufferError)):
        call(**{name: readonly(np.zeros(2, kind))})


def test_queries_that_are_not_there_are_refused():
    for first, last in ((-1, 1), (0, 3), (2, 1), (-(2**62), 2**62)):
        with pytest.raises(ValueError, match="there are no such queries"):
            in_texts(first=first, last=last)
    assert in_texts(first=2, last=2) == bytearray()


@pytest.mark.parametrize("name", ["find_in_lists", "find_in_dicts", "find_in_column", "find_texts"])
def test_other_arguments_are_refused(name):
    function = getattr(kernel(), name)
    for count in range(12):
        with pytest.raises(TypeError):
            function(*[()] * count)


def test_no_queries():
    none = np.zeros(0, np.int64)
    zero = np.zeros(1, np.int64)
    assert kernel().find_in_lists([], [], zero, none) == bytearray()
    assert kernel().find_in_dicts([], [], zero, False, False, False, np.zeros(0), none, np.zeros(0, bool)) is True
    assert kernel().find_texts([], zero, [], 0, 0, 7) == bytearray()


def test_the_stubs_name_the_arguments_of_the_functions():
    stubs = (inspect.getfile(kernel()).rpartition("native")[0]) + "native.pyi"
    with open(stubs) as file:  # noqa: PTH123  # one line
        described = file.read()
    for name in [name for name in dir(kernel()) if not name.startswith("_")]:
        given = described.partition(f"def {name}(")[2].partition("/")[0]
        stub = [part.partition(":")[0].strip() for part in given.replace("\n", " ").split(",") if ":" in part]
        assert stub == list(inspect.signature(getattr(kernel(), name)).parameters)


class Longer(np.ndarray):
    """An array that says it is longer than it is."""

    def __len__(self):
        return 2**61


@pytest.mark.parametrize("size", [0, 2])
def test_the_length_of_an_array_is_that_of_its_memory(size):
    start = np.arange(size).view(Longer)
    items, keys = (pl.Series(["a"] * max(size - 1, 0)).__arrow_c_stream__() for _ in range(2))
    if not size:
        with pytest.raises(ValueError, match="expected an aligned array"):
            kernel().find_in_column(items, start, keys, start, None, False)
    else:
        found = kernel().find_in_column(items, start, keys, start, None, False)
        assert np.frombuffer(found[0], np.int64).tolist() == [0, 0, 0, 0]
