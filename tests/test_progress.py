"""The bar for long work: on a terminal, after two seconds; nothing otherwise."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

SLOW = """
import karat, time
from karat._internal import progress
progress.Progress.delay = {patience}
def similarity(a, b):
    time.sleep(0.02)
    return 0.5
texts = [[f"{{i}} {{j}}" for j in range(5)] for i in range(4)]
from karat.judges import fuzzy
fuzzy._AT_ONCE = 5
print(karat.evaluate(retrieved=texts, gold=[["x"]] * 4, metrics="recall", judge=karat.Fuzzy(0.8, similarity)).mean)
"""


def on_terminal(code):
    """What a program writes to a terminal as its standard error, and to a pipe as its output."""
    master, slave = pty.openpty()
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=slave, check=True)
    os.close(slave)
    os.set_blocking(master, False)
    try:
        written = os.read(master, 100_000).decode()
    except (BlockingIOError, OSError):
        written = ""
    os.close(master)
    return done.stdout.decode(), written


def test_long_work_shows_how_far_it_is_and_cleans_up():
    out, bar = on_terminal(SLOW.format(patience=0.05))
    assert out == "{'recall': 0.0}\n"
    assert "fuzzy(threshold=0.8, scorer=similarity)" in bar
    assert "100%" in bar or " 75%" in bar
    assert bar.endswith("\r\x1b[K")


def test_short_work_shows_nothing():
    assert on_terminal(SLOW.format(patience=2.0)) == ("{'recall': 0.0}\n", "")


@pytest.mark.parametrize("where", [subprocess.PIPE, subprocess.DEVNULL])
def test_nothing_is_shown_where_nobody_looks(where):
    done = subprocess.run(
        [sys.executable, "-c", SLOW.format(patience=0.0)], stdout=subprocess.PIPE, stderr=where, check=True
    )
    assert not done.stderr
