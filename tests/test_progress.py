"""The progress bar: on a terminal, after two seconds; nothing otherwise."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from karat._internal.progress import Progress, track

SLOW = """
import karat, time
from karat._internal.progress import Progress
Progress.delay = {delay}
def similarity(a, b):
    time.sleep(0.02)
    return 0.5
texts = [[f"{{i}} {{j}}" for j in range(5)] for i in range(4)]
from karat.judges import fuzzy
fuzzy._AT_ONCE = 5
print(karat.evaluate(retrieved=texts, gold=[["x"]] * 4, metrics="recall", judge=karat.Fuzzy(0.8, similarity)).mean)
"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self):
        return self.now


def test_bar_is_shown_after_the_delay_and_wiped_away():
    clock, stream = Clock(), Terminal()
    with Progress(4, "fuzzy", stream=stream, clock=clock) as bar:
        for clock.now in (0.5, 1.9, 2.0, 2.05):
            bar.step()
    assert stream.getvalue() == f"\r\x1b[Kfuzzy  {'█' * 22:·<30}   75%\r\x1b[K"


def test_short_work_shows_nothing():
    stream = Terminal()
    with Progress(2, "fuzzy", stream=stream, clock=Clock()) as bar:
        bar.step(2)
    assert not stream.getvalue()


def test_a_file_gets_no_bar():
    clock, stream = Clock(), io.StringIO()
    with Progress(2, "fuzzy", stream=stream, clock=clock) as bar:
        clock.now = 9.0
        bar.step()
    assert not stream.getvalue()


def test_track_yields_every_item():
    assert list(track("abc", 3, "letters")) == ["a", "b", "c"]


def test_evaluation_on_a_terminal():
    """Standard error is a terminal, standard output a pipe."""
    master, slave = pty.openpty()
    code = SLOW.format(delay=0.05)
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=slave, check=True)
    os.close(slave)
    bar = os.read(master, 100_000).decode()
    os.close(master)
    assert done.stdout == b"{'recall': 0.0}\n"
    assert "fuzzy(threshold=0.8, scorer=similarity)" in bar
    assert "100%" in bar or " 75%" in bar
    assert bar.endswith("\r\x1b[K")


@pytest.mark.parametrize("where", [subprocess.PIPE, subprocess.DEVNULL])
def test_nothing_is_shown_without_a_terminal(where):
    code = SLOW.format(delay=0.0)
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=where, check=True)
    assert not done.stderr


def test_a_watcher_is_told_instead_of_the_terminal(monkeypatch):
    told, clock, terminal = [], Clock(), Terminal()
    monkeypatch.setattr(Progress, "watcher", lambda done, of: told.append((done, of)))
    with Progress(3, "queries", stream=terminal, clock=clock) as bar:
        clock.now = 9.0
        bar.step()
        bar.step(2)
    assert (told, terminal.getvalue()) == ([(1, 3), (3, 3)], "")
