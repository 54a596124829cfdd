"""The user's code within a call of the kernel: keys that raise or change their dict, signals, Ctrl-C, threads."""

from __future__ import annotations

import ctypes
import gc
import operator
import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from karat._kernel import kernel
from support.kernels import NEEDS_KERNEL, same_outcome

pytestmark = NEEDS_KERNEL

MANY = 300_000
"""More items than the kernel reads between two looks for signals."""


class Same(str):  # noqa: SLOT000
    """An id with the hash of another string; `action` runs when the two are compared."""

    like: object
    action: Callable[[], bool]

    def __new__(cls, text, like, action):
        self = super().__new__(cls, text)
        self.like, self.action = like, action
        return self

    def __hash__(self):
        return hash(self.like)

    def __eq__(self, other):
        return self.action()


def rank(dicts, keys, *, numbers=True, check=False):
    own, above, tied = np.empty(len(keys)), np.empty(len(keys), np.int64), np.empty(len(keys), bool)
    start = np.array([0, *[len(keys)] * len(dicts)])
    finite = kernel().find_in_dicts(dicts, keys, start, False, numbers, check, own, above, tied)
    return finite, own.tolist()


def failing():
    raise LookupError("this key cannot be compared")


def test_an_error_of_a_key_is_raised_as_it_is():
    with pytest.raises(LookupError, match="this key cannot be compared"):
        rank([{Same("x", "a", failing): 0.5}], ["a"])
    with pytest.raises(LookupError):
        rank([{Same("x", 5, failing): 0.5, "5": 0.25}], ["5"])
    error, _ = same_outcome(
        lambda: {"retrieved": {"q": {Same("x", "a", failing): 0.5, "b": 1}}, "gold": {"q": ["a"]}, "metrics": "rr"}
    )
    assert error is LookupError


@pytest.mark.parametrize("equal", [True, False])
def test_a_key_that_says_what_it_equals(equal):
    _, scores = rank([{Same("x", "a", lambda: equal): 0.5, "b": 1.0}], ["a"])
    assert str(scores) == ("[0.5]" if equal else "[nan]")
    same_outcome(
        lambda: {
            "retrieved": {"q": {Same("x", "a", lambda: equal): 0.5, "b": 1}},
            "gold": {"q": ["a"]},
            "metrics": "rr",
            "convention": "standard(ties=given)",
        }
    )


@pytest.mark.parametrize("like", [None, True, False])
def test_a_key_that_changes_its_dict_while_ids_are_checked(like):
    scored = {"a": 1.0}
    dicts = [scored, {"z": 1.0}]
    changed = []

    def action():
        changed.append(like)
        scored.clear()
        dicts.clear()
        return False

    scored[Same("x", like, action)] = 2.0
    with pytest.raises(IndexError):  # the second dict is there no more
        rank(dicts, ["z"], check=True)
    assert changed == [like]
    with pytest.raises(LookupError, match="this key cannot be compared"):
        rank([{"a": 1.0, Same("x", like, failing): 2.0}], ["a"], check=True)


@pytest.mark.parametrize("text", ["5", "a"])
@pytest.mark.parametrize("change", ["clear", "replace", "grow", "list", "keys"])
def test_a_key_that_changes_the_data_while_it_is_compared(text, change):
    """The kernel holds what it uses: the answer may be any, or an error, but memory is not read after it is freed."""
    armed = []

    def action():
        if armed:
            armed.clear()
            actions[change]()
        return False

    like = int(text) if text.isdecimal() else text
    scored = dict(zip([Same("x", like, action), text, "z"], map(int, ("1000000", "10000000", "100000")), strict=True))
    dicts, keys = [scored, {"z": 1}], [text, "z"]
    actions = {
        "clear": scored.clear,
        "replace": lambda: scored.update({text: 1.0}),
        "grow": lambda: scored.update({f"more {i}": 1.0 for i in range(1000)}),
        "list": dicts.clear,
        "keys": keys.clear,
    }
    armed.append(True)
    try:
        rank(dicts, keys)
    except (RuntimeError, IndexError, ValueError):
        assert change in {"list", "keys"}
    assert not armed


def pending_then(number, *calls):
    """Call functions one after the other while a signal is pending: nothing in between lets Python handle it."""
    raised = partial(ctypes.pythonapi.PyErr_SetInterruptEx, number)
    return list(map(operator.call, [raised, *calls]))


@pytest.fixture
def on_signal():
    """A function that sets what SIGUSR1 does; SIGINT is Ctrl-C, whatever started the tests."""
    before = signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda action: signal.signal(signal.SIGUSR1, lambda *_: action())
    signal.signal(signal.SIGUSR1, before[0])
    signal.signal(signal.SIGINT, before[1])


def lists():
    return [[f"{i}" for i in range(MANY)], [f"second {i}" for i in range(40)], ["third"]]


def search_lists(rankings, depth):
    return partial(kernel().find_in_lists, rankings, ["3", "second 39", "third"], np.arange(4), depth)


def search_dicts(dicts):
    own = np.zeros(3), np.zeros(3, np.int64), np.zeros(3, bool)
    return partial(kernel().find_in_dicts, dicts, ["3", "second 39", "third"], np.arange(4), False, False, False, *own)


def test_ctrl_c_ends_a_search_of_lists(on_signal):
    depth = np.zeros(3, np.int64)
    with pytest.raises(KeyboardInterrupt):
        pending_then(signal.SIGINT, search_lists(lists(), depth))
    assert depth.tolist() == [MANY, 0, 0]


def test_ctrl_c_ends_a_search_of_dicts(on_signal):
    dicts = [dict.fromkeys(ranking, 1.0) for ranking in lists()]
    done = []
    with pytest.raises(KeyboardInterrupt):
        pending_then(signal.SIGINT, search_dicts(dicts), partial(done.append, True))
    assert not done


def test_ctrl_c_ends_a_search_of_texts(on_signal):
    done = []
    search = partial(kernel().find_texts, ["a"], np.array([0, 1]), [["a"]], 0, 1, 1)
    with pytest.raises(KeyboardInterrupt):
        pending_then(signal.SIGINT, search, partial(done.append, True))
    assert not done


@pytest.mark.parametrize("way", ["lists", "dicts", "texts"])
def test_a_signal_handler_that_replaces_the_data(on_signal, way):
    """The second ranking is freed at the moment at which the kernel would begin to read it."""
    rankings = lists()
    if way == "dicts":
        rankings = [dict.fromkeys(ranking, 1.0) for ranking in rankings]

    def replace():
        rankings[1] = type(rankings[1])()
        gc.collect()

    on_signal(replace)
    if way == "texts":
        rankings = rankings[1:2] * 2
        search = partial(kernel().find_texts, ["second"] * 2, np.arange(3), rankings, 0, 2, 1)
        (_, rows) = pending_then(signal.SIGUSR1, search)
        assert len(np.frombuffer(rows, np.int64)) == 4 * 40
    elif way == "lists":
        depth = np.zeros(3, np.int64)
        pending_then(signal.SIGUSR1, search_lists(rankings, depth))
        assert depth.tolist() == [MANY, 0, 1]
    else:
        (_, finite) = pending_then(signal.SIGUSR1, search_dicts(rankings))
        assert finite is True


@pytest.mark.parametrize("way", ["lists", "dicts", "texts"])
def test_a_signal_handler_that_removes_the_data(on_signal, way):
    rankings = lists()
    if way == "dicts":
        rankings = [dict.fromkeys(ranking, 1.0) for ranking in rankings]
    on_signal(rankings.clear)
    searches = {
        "lists": lambda: search_lists(rankings, np.zeros(3, np.int64)),
        "dicts": lambda: search_dicts(rankings),
        "texts": lambda: partial(kernel().find_texts, ["a"] * 3, np.arange(4), rankings, 0, 3, 1),
    }
    with pytest.raises(IndexError):
        pending_then(signal.SIGUSR1, searches[way]())


def test_the_garbage_collector_within_a_call():
    """Making the error of a lone surrogate collects garbage, and a finalizer may take the items away."""

    class Garbage:
        def __init__(self):
            self.own = self

        def __del__(self):
            rankings[0].clear()

    try:
        gc.set_threshold(1)
        for text in ("\ud800", "a"):
            rankings = [[f"d{i}" * 5 for i in range(40)]]
            rankings[0][3] = text
            Garbage()
            kernel().find_in_lists(rankings, ["a"], np.array([0, 1]), np.zeros(1, np.int64))
    finally:
        gc.set_threshold(700, 10, 10)


LONG = "ab " * 6_000_000
NEEDLES = ["zq", "z q", "az", "bz", "z", "q", "zz", "abz"]


def long_search():
    return partial(kernel().find_texts, NEEDLES, np.array([0, len(NEEDLES)]), [[LONG]], 0, 1, 1)


@pytest.fixture
def waiting():
    """A function that lets a waiting thread act as soon as the running one releases the GIL, and not before."""
    before = sys.getswitchinterval()
    threads = []

    def begin(action):
        go = threading.Lock()
        go.acquire()
        threads.append(threading.Thread(target=lambda: (go.acquire(), action())))
        threads[-1].start()
        sys.setswitchinterval(100)
        go.release()

    yield begin
    sys.setswitchinterval(before)
    for thread in threads:
        thread.join()


def test_other_threads_run_during_a_long_search(waiting):
    """The thread needs a moment to wake up, so the search is repeated; if it keeps the GIL, none will do."""
    acted = []
    search = long_search()
    waiting(partial(acted.append, True))
    for _ in range(50):
        assert search() == bytearray()
        if acted:
            break
    assert acted


def test_ctrl_c_ends_a_long_search(waiting, on_signal):
    """Ctrl-C comes from a thread that can only run during the search; nothing after the search handles it earlier."""
    done = []
    calls = [partial(done.clear), long_search(), partial(done.append, True)]
    waiting(interrupt_main)
    with pytest.raises(KeyboardInterrupt):
        list(map(operator.call, calls * 50))
    assert not done
