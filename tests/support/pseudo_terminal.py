"""Commands in a real terminal of a given width: one interpreter runs them all, so that NumPy is loaded once."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import unicodedata
from typing import NamedTuple

STYLE = re.compile(r"\x1b\[\d*m")
_DRIVER = """
import json, sys
from karat.cli import main
for arguments in json.loads(sys.argv[1]):
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    sys.stderr.flush()
    print(f"\\n%exit {code}", flush=True)
"""
_END = re.compile(r"\n%exit (\S+)\n")


class Shown(NamedTuple):
    """What a command has written, and its exit code."""

    text: str
    code: int

    @property
    def widest(self) -> str:
        return max(STYLE.sub("", self.text).split("\n"), key=columns)


def columns(line: str) -> int:
    """The columns that a line takes, counted independently of karat: marks take none, wide characters two."""
    marks = sum(unicodedata.category(char) == "Mn" for char in line)
    return len(line) - marks + sum(unicodedata.east_asian_width(char) in {"W", "F"} for char in line)


def show(commands, folder, *, width=None, **environment):
    """Run commands (lists of arguments) in a folder, in a terminal of this width, or in a pipe."""
    env = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "FORCE_COLOR"}}
    env |= {"TERM": "xterm", "XDG_CACHE_HOME": str(folder)} | environment
    program = [sys.executable, "-c", _DRIVER, json.dumps([[*map(str, command)] for command in commands])]
    if width is None:
        done = subprocess.run(program, cwd=folder, env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        written = done.stdout + done.stderr
    else:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        started = subprocess.Popen(program, cwd=folder, env=env, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL)
        os.close(theirs)
        written = _read(ours)
        started.wait()
    text = written.decode().replace("\r\n", "\n").replace("\r", "\n")
    parts = _END.split(text)
    shown = [Shown(parts[i], int(parts[i + 1])) for i in range(0, len(parts) - 1, 2)]
    assert len(shown) == len(commands), text
    return shown


def _read(terminal):
    written = b""
    try:
        while part := os.read(terminal, 65536):
            written += part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(terminal)
    return written
