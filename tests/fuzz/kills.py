"""Real commands, killed at a random moment: while they start, work, write, or replace their output."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple
from xml.etree import ElementTree as ET

import karat
from fuzz.frame import Fault, fuzzer
from karat.errors import KaratError
from karat.llm.cache import Cache
from karat.llm.model import Reply

_QUERIES, _ANSWERS = 3000, 2000
_SECONDS = 60
"""A process that takes longer hangs."""
_GATE = ("gate", "run.parquet", "recall@5 >= 0.1")


class Command(NamedTuple):
    """A command, its outputs, and the test of a complete output."""

    arguments: tuple[str, ...]
    outputs: dict[str, Callable[[Path], bool]]


def _is_run(path: Path) -> bool:
    return len(karat.load(path)) == _QUERIES


def _is_loaded(path: Path) -> bool:
    return len(karat.load(path)) > 0


def _is_page(path: Path) -> bool:
    return path.read_text("utf-8").endswith("</html>\n")


def _is_export(path: Path) -> bool:
    return len([json.loads(line) for line in path.read_text("utf-8").splitlines()]) == _ANSWERS


def _is_summary(path: Path) -> bool:
    text = path.read_text("utf-8")
    return ("karat gate passed" in text and text.endswith("</details>\n")) or "could not decide\n" in text


def _is_junit(path: Path) -> bool:
    return ET.parse(path).getroot()[0].get("tests") == "1"


COMMANDS = (
    Command(("eval", "samples.jsonl", "-o", "out.parquet"), {"out.parquet": _is_run}),
    Command(("eval", "samples.jsonl", "--judge", "exact", "--tokens", "code.py:size", "recall@50t", "--jobs", "2", "-o",
             "out.parquet"), {"out.parquet": _is_run}),
    Command(("merge", "run.parquet", "-o", "out.parquet"), {"out.parquet": _is_run}),
    Command(("report", "run.parquet", "-o", "out.html"), {"out.html": _is_page}),
    Command(("cache", "export", "--cache", "answers", "-o", "out.jsonl"), {"out.jsonl": _is_export}),
    Command(("demo", "-o", "demo"), {"demo/bm25.parquet": _is_loaded, "demo/report.html": _is_page}),
    Command((*_GATE, "--markdown", "out.md", "--junit", "out.xml"), {"out.md": _is_summary, "out.xml": _is_junit}),
)  # fmt: skip
OLD = {
    "out.html": "<html>old</html>", "out.jsonl": '{"old": 1}\n', "out.md": "### ✅ karat gate passed: old\n",
    "out.xml": '<?xml version="1.0"?>\n<testsuites>\n  <testsuite name="karat gate" tests="9"/>\n</testsuites>',
}  # fmt: skip


@cache
def _inputs() -> dict[str, bytes]:
    """The files that the commands read, made once, and an earlier run."""
    rows = [
        {
            "id": f"q{n}",
            "query": "?",
            "retrieved": [f"d{n * k % 997}" for k in range(1, 9)],
            "gold": [f"d{n % 991}"],
        }
        for n in range(_QUERIES)
    ]
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "samples.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        (folder / "code.py").write_text("def size(text):\n    return len(text)\n")
        karat.evaluate(folder / "samples.jsonl", "recall@5 rr").save(folder / "run.parquet")
        karat.evaluate(rows[:3], "recall@5").save(folder / "out.parquet")
        answers = Cache(folder / "answers")
        answers._execute("BEGIN")
        for n in range(_ANSWERS):
            answers.put(f"key {n}", "model", "1", Reply({"said": "x" * 200}, 1, 1))
        answers._execute("COMMIT")
        answers._execute("PRAGMA wal_checkpoint(TRUNCATE)")
        del answers
        return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith("answers-")}


@fuzzer(
    "kills",
    "A killed command leaves the old file or the new one, and no temporary file, except after kill -9; then the next "
    "run succeeds.",
    short=5,
    long=400,
)
def kills(random: Random, folder: Path) -> str:
    chosen = random.choice(COMMANDS)
    number = random.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
    for name, content in _inputs().items():
        (folder / name).write_bytes(content)
    for name, text in OLD.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "tmp").mkdir()
    old = {name: _content(folder / name) for name in chosen.outputs}
    process = _started(chosen, folder)
    _wait(random, process, folder)
    group = number is not signal.SIGKILL and random.random() < 0.5
    if process.poll() is None:
        _send(process, number, group=group)
    code, said = _ended(process)
    states = _states(chosen, folder, old)
    ended = "finished" if code == 0 else number.name
    if code not in {0, -number, 128 + number}:
        raise Fault(f"exit code {code} after {number.name} of {chosen.arguments}\n{said}")
    if "Traceback" in said and code != -signal.SIGINT:  # before karat itself runs, Python prints one
        raise Fault(f"{chosen.arguments}, {number.name}:\n{said}")
    left = [str(path) for path in (*folder.rglob("*.tmp"), *(folder / "tmp").iterdir())]
    if left and code != -signal.SIGKILL:
        raise Fault(f"temporary files after {number.name}, exit code {code}: {left} of {chosen.arguments}\n{said}")
    if code == -signal.SIGKILL:
        code, said = _ended(_started(chosen, folder))
        if code or _states(chosen, folder, old) != {"new"}:
            raise Fault(f"the next run of {chosen.arguments} ended with {code}\n{said}")
    return f"{ended}, {' and '.join(sorted(states))}"


PROGRAM = """import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts the fuzzers may ignore it
from karat.cli import main
sys.exit(main(sys.argv[1:]))
"""


def _started(chosen: Command, folder: Path) -> subprocess.Popen[str]:
    run = [sys.executable, "-c", PROGRAM, *chosen.arguments]
    return subprocess.Popen(
        run, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
    )  # fmt: skip


def _wait(random: Random, process: subprocess.Popen[str], folder: Path) -> None:
    """Wait until a random moment: of the processor's time, so that a busy machine matters less, or of writing."""
    if random.random() < 0.4:
        moment = random.uniform(0, 0.9)
        while process.poll() is None and _processor_seconds(process.pid) < moment:
            time.sleep(0.001)
        return
    sights, seen = random.choice((1, 1, 2)), set[str]()
    while process.poll() is None and len(seen) < sights:
        names = (entry.name for place in (folder, folder / "tmp") for entry in os.scandir(place))
        seen |= {name for name in names if name.endswith(".tmp") or name.startswith("karat-")}
        time.sleep(0.0002)
    time.sleep(random.choice((0, 0.0005, 0.002, 0.01)) * random.random())


def _processor_seconds(process: int) -> float:
    """The processor time that a process has used; infinite where the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.inf
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _send(process: subprocess.Popen[str], number: signal.Signals, *, group: bool) -> None:
    with suppress(ProcessLookupError):
        if group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


def _ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and the messages of a process, when it and its workers have ended."""
    try:
        _, said = process.communicate(timeout=_SECONDS)
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            os.killpg(process.pid, 0)
            time.sleep(0.002)
    except ProcessLookupError:
        return process.returncode, said
    except subprocess.TimeoutExpired:
        pass
    os.killpg(process.pid, signal.SIGKILL)
    raise Fault(f"a process did not end within {_SECONDS} s")


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _states(chosen: Command, folder: Path, old: dict[str, bytes | None]) -> set[str]:
    """For each output, whether it is the old one or a new one; anything else is a fault."""
    states = set()
    for name, is_complete in chosen.outputs.items():
        content = _content(folder / name)
        try:
            if content != old[name] and not is_complete(folder / name):
                raise Fault(f"{name} is neither the old file nor complete: {content[:200]!r}")
        except (KaratError, ValueError, SyntaxError) as error:
            raise Fault(f"{name} is damaged: {error}") from error
        states.add("old" if content == old[name] else "new")
    return states
