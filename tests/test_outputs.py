"""Outputs are checked before work starts, inputs are never overwritten, and nothing complete is replaced by less."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import polars as pl
import pytest

import karat
from karat._internal.output import atomic_path, check_outputs, write_text
from karat.cli import main
from karat.llm.cache import Cache
from karat.llm.model import Reply
from support.scripted import script
from support.server import Server

SAMPLES = "".join(f'{{"id": "q{n}", "query": "who?", "retrieved": ["a"], "gold": ["a"]}}\n' for n in range(6))
GOOD, BAD = "recall@1 >= 0.5", "recall@1 < 0.5"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder: samples, their gold, a run, and files with which outputs may collide."""
    monkeypatch.chdir(tmp_path)
    Path("samples.jsonl").write_text(SAMPLES)
    Path("gold").write_text(SAMPLES)
    Path("ids.txt").write_text("q1\n")
    karat.evaluate("samples.jsonl", "recall@1").save("run.parquet")
    for name in ("x.parquet", "page.html"):
        Path(name).write_bytes(Path("run.parquet").read_bytes())
    Cache("cache").put("k", "m", "1", Reply({}, 1, 1))
    Path("inputs").mkdir()
    Path("inputs/part.jsonl").write_text(SAMPLES)
    return tmp_path


def contents(folder):
    files = (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if "cache" not in file.name}


def refused(capsys, *arguments, code=2):
    assert main([str(one) for one in arguments]) == code
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return " ".join(said.split())


COLLISIONS = [
    ("eval x.parquet recall@1 -o {}", "x.parquet"),
    ("eval samples.jsonl recall@1 --gold gold -o {}", "gold"),
    ("eval samples.jsonl recall@1 --import code.py -o {}", "code.py"),
    ("eval samples.jsonl recall@1 --tokens code.py:size -o {}", "code.py"),
    ("merge x.parquet -o {}", "x.parquet"),
    ("gate run.parquet {rule} --markdown {}", "run.parquet"),
    ("gate run.parquet {rule} --junit {}", "run.parquet"),
    ("gate run.parquet {rule} --baseline x.parquet --markdown {} --force", "x.parquet"),
    ("gate run.parquet {rule} --must-pass ids.txt --markdown {} --force", "ids.txt"),
    ("report page.html -o {}", "page.html"),
    ("report run.parquet --baseline page.html -o {}", "page.html"),
    ("cache export --cache cache -o {}", "cache"),
]


@pytest.mark.parametrize("way", ["itself", "through a link", "through a hard link", "by another path"])
@pytest.mark.parametrize(("line", "name"), COLLISIONS)
def test_an_input_is_never_an_output(folder, capsys, line, name, way):
    Path("code.py").write_text("size = len\n")
    path = {"itself": name, "by another path": f"inputs/../{name}"}.get(way, f"other{Path(name).suffix}")
    if way == "through a link":
        Path(path).symlink_to(name)
    if way == "through a hard link":
        os.link(name, path)
    before = contents(folder)
    said = refused(capsys, *(word.format(path, rule=GOOD) for word in line.split(" ")))
    assert f"cannot write {path}: it is an input, too" in said
    assert contents(folder) == before


@pytest.mark.parametrize("pattern", ["inputs", "inputs/*", "./inputs/../inputs", "inputs/*.parquet", "in*/*.parquet"])
@pytest.mark.parametrize("output", ["inputs/part.parquet", "inputs/new.parquet", "link.parquet"])
def test_an_output_is_not_among_the_inputs(folder, capsys, pattern, output):
    Path("inputs/part.jsonl").unlink()
    Path("x.parquet").rename("inputs/part.parquet")
    Path("link.parquet").symlink_to("inputs/part.parquet")
    before = contents(folder)
    assert "is an input" in refused(capsys, "eval", pattern, "recall@1", "-o", output)
    assert contents(folder) == before


def test_standard_input_is_an_input(folder):
    with Path("x.parquet").open("rb") as file:
        command = [sys.executable, "-m", "karat", "eval", "-", "-o", "x.parquet"]
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "it is the input, too" in done.stderr


def test_two_outputs_are_two_files(folder, capsys):
    said = refused(capsys, "gate", "run.parquet", GOOD, "--junit", "out", "--markdown", "./out")
    assert "--junit and --markdown name the same file" in said


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("no/run", "there is no folder"), ("inputs", "it is a folder"), ("new/", "it is a folder"),
        ("gold/run", "is not a folder"), ("", "expected the name of a file"), ("-", "expected the name of a file"),
        ("loop", "Too many levels"), ("x" * 300, "File name too long"), ("a\0b", "null byte"),
    ],
)  # fmt: skip
def test_outputs_are_checked_before_the_first_call(folder, capsys, monkeypatch, path, problem):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    Path("loop").symlink_to("loop")
    with Server(script) as server:
        judge = ("--judge", f"claims({server.model()})", "--cache", "answers")
        assert problem in refused(capsys, "eval", "samples.jsonl", "recall@1", *judge, "-o", path)
        assert server.count == 0
    for command in (
        ("gate", "run.parquet", GOOD, "--markdown", path), ("gate", "run.parquet", GOOD, "--junit", path),
        ("report", "run.parquet", "-o", path), ("cache", "export", "--cache", "cache", "-o", path),
        ("merge", "run.parquet", "-o", path),
    ):  # fmt: skip
        assert problem in refused(capsys, *command)
    with pytest.raises(karat.RunFileError, match="cannot write"):
        karat.load("run.parquet").save(path)
    with pytest.raises(karat.BadArgument, match="cannot write"):
        karat.load("run.parquet").report(path)
    assert not list(folder.rglob("*.tmp"))


def test_a_run_is_not_saved_over_its_samples(folder):
    pl.read_ndjson("samples.jsonl").write_parquet("data.parquet")
    run = karat.evaluate("data.parquet", "recall@1")
    with pytest.raises(karat.RunFileError, match="it is an input"):
        run.save(folder / "data.parquet")
    both = karat.evaluate(retrieved="samples.jsonl", gold="gold", metrics="recall@1")
    with pytest.raises(karat.RunFileError, match="it is an input"):
        both.save("gold")
    karat.load("x.parquet").save("x.parquet")
    karat.evaluate([{"retrieved": ["a"], "gold": ["a"]}], "recall@1").save("inputs/samples")


def refused_for_nobody(path):
    """True if the check refuses a path for a user without rights, who is a forked process if this one is root's."""
    child = os.fork()
    if not child:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            check_outputs({"-o": path})
        except karat.BadArgument as error:
            os._exit(7 if "Permission denied" in str(error) else 8)
        finally:
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_what_may_not_be_written():
    with TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o777)
        (folder / "locked").mkdir(mode=0o555)
        (folder / "sticky").mkdir()
        (folder / "sticky").chmod(0o1777)
        for name, mode in (("readonly", 0o444), ("open", 0o666), ("sticky/theirs", 0o666)):
            (folder / name).write_text("old")
            (folder / name).chmod(mode)
        assert refused_for_nobody(folder / "locked/run")
        assert refused_for_nobody(folder / "readonly")
        assert refused_for_nobody(folder / "sticky/theirs") == (os.geteuid() == 0)
        assert not refused_for_nobody(folder / "open")
        assert not refused_for_nobody(folder / "sticky/new")


def limited(size, *command, cwd):
    """Run karat with files of at most this size, as on a full disk."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))  # noqa: E731
    program = [sys.executable, "-m", "karat", *command]
    return subprocess.run(program, capture_output=True, text=True, check=False, cwd=cwd, preexec_fn=limit)


def test_a_full_disk_loses_no_answers(folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    long = os.urandom(200_000).hex()
    Path("samples.jsonl").write_text(json.dumps({"query": long, "retrieved": ["a b"], "answer": "a b."}) + "\n")
    with Server(script) as server:
        command = ["eval", "samples.jsonl", "recall@1", "--judge", f"claims({server.model()})", "--cache", "answers"]
        done = limited(150_000, *command, "-o", "big.parquet", cwd=folder)
        calls = server.count
        assert done.returncode == 2
        assert "recall@1" in done.stdout
        assert "cannot write big.parquet: File too large" in done.stderr
        assert "). The answers of the model are cached in answers: they are not paid for again.\n" in done.stderr
        assert not Path("big.parquet").exists()
        assert not list(folder.glob(".*.tmp"))
        assert main([*command, "-o", "big.parquet"]) == 0
        assert server.count == calls > 0


def test_a_partial_run_replaces_no_run(folder, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    rows = [{"id": f"q{n}", "query": f"{n}?", "retrieved": [f"{n} b"], "answer": f"{n} b."} for n in range(8)]
    Path("claims.jsonl").write_text("\n".join(map(json.dumps, rows)))
    old = Path("run.parquet").read_bytes()
    with Server(script) as server:
        command = ["eval", "claims.jsonl", "recall@1", "--judge", f"claims({server.model()})", "--cache", "answers"]
        few = [*command, "--max-calls", "4", "--min-judged", "0.9", "-o"]
        said = refused(capsys, *few, "run.parquet", code=3)
        assert "run.parquet is kept: the new run is partial, and is saved to run.partial.parquet" in said
        assert Path("run.parquet").read_bytes() == old
        assert karat.load("run.partial.parquet").judged < 8
        Path("run.partial.parquet").unlink()
        Path("run.partial.parquet").mkdir()
        said = refused(capsys, *few, "run.parquet", code=2)  # the partial run cannot be saved
        assert "cannot write run.partial.parquet" in said
        assert "is saved to" not in said
        refused(capsys, *few, "first.parquet", code=3)  # there is nothing to keep
        assert karat.load("first.parquet").judged < 8
        assert main([*command, "-o", "first.parquet"]) == 0
        assert karat.load("first.parquet").judged == 8


FAILURES = [
    (["gate", "run.parquet", BAD], 1),
    (["gate", "none.parquet", GOOD], 2),
    (["gate", "gold", GOOD], 2),
    (["gate", "run.parquet", "nonsense"], 2),
    (["gate", "run.parquet", GOOD, "--alpha", "x"], 2),
    (["gate", "run.parquet", GOOD, "--no-such-option"], 2),
    (["gate", "run.parquet", GOOD, "--must-pass", "none.txt"], 2),
    (["gate"], 2),
]


@pytest.mark.parametrize(("command", "code"), FAILURES)
def test_a_gate_that_did_not_pass_leaves_no_earlier_pass(folder, capsys, command, code):
    files = ["--markdown", "gate.md", "--junit", "gate.xml"]
    assert main(["gate", "run.parquet", GOOD, *files]) == 0
    assert "gate passed" in Path("gate.md").read_text("utf-8")
    assert main([*command, *files]) == code
    assert "gate passed" not in Path("gate.md").read_text("utf-8")
    assert 'failures="0" errors="0"' not in Path("gate.xml").read_text("utf-8")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()])
def test_nor_does_one_that_was_interrupted(folder, monkeypatch, error):
    files = ["--markdown", "gate.md", "--junit", "gate.xml"]
    assert main(["gate", "run.parquet", GOOD, *files]) == 0

    def interrupted(*_, **__):
        raise error

    monkeypatch.setattr("karat.analysis.gate.gate", interrupted)
    try:
        assert main(["gate", "run.parquet", GOOD, *files]) == 130
    except MemoryError:
        assert isinstance(error, MemoryError)
    assert "could not decide" in Path("gate.md").read_text("utf-8")
    assert 'errors="1"' in Path("gate.xml").read_text("utf-8")


def test_nor_does_one_that_cannot_be_written(folder):
    assert main(["gate", "run.parquet", GOOD, "--markdown", "gate.md"]) == 0
    done = limited(10, "gate", "run.parquet", BAD, "--markdown", "gate.md", cwd=folder)
    assert done.returncode == 2
    assert "FAIL" in done.stdout
    assert "cannot write gate.md: File too large" in done.stderr
    assert not Path("gate.md").exists()


@pytest.mark.parametrize("option", ["--markdown", "--junit"])
def test_a_gate_replaces_its_own_files_only(folder, capsys, option):
    command = ["gate", "run.parquet", GOOD, option, "out"]
    for text in ("# Notes\n", "<?xml version='1.0'?><testsuite name='pytest'/>", "see ### ✅ karat gate passed"):
        Path("out").write_text(text)
        said = refused(capsys, *command)
        assert f"out: it exists, and karat gate did not write it try {option} new-out, or --force" in said
        assert Path("out").read_text() == text
    assert main([*command, "--force"]) == 0
    assert main(command) == 0
    Path("out").write_text("")
    assert main(command) == 0


def test_the_summary_of_a_step_is_appended_to_anywhere(folder, monkeypatch):
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    for times in (1, 2):
        assert main(["gate", "run.parquet", GOOD, "--markdown", "summary.md"]) == 0
        text = Path("summary.md").read_text("utf-8")
        assert text.startswith("before\n")
        assert text.count("### ✅ karat gate passed") == times


def test_an_empty_export_replaces_nothing(folder, capsys):
    assert main(["cache", "export", "--cache", "cache", "-o", "answers.jsonl"]) == 0
    old = Path("answers.jsonl").read_text()
    assert "answers.jsonl is not replaced" in refused(
        capsys, "cache", "export", "--cache", "typo", "-o", "answers.jsonl"
    )
    assert Path("answers.jsonl").read_text() == old


def test_the_demo_keeps_what_was_changed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    before = contents(tmp_path)
    assert not capsys.readouterr().err
    for name in ("samples.jsonl", "bm25.parquet", "report.html"):
        Path("karat-demo", name).write_text("mine")
    Path("karat-demo/first-words.parquet").unlink()
    assert main(["demo"]) == 0
    said = capsys.readouterr().err
    assert said.count("it was changed; --force replaces it") == 3
    assert [name for name, content in contents(tmp_path).items() if content != before[name]] != []
    assert Path("karat-demo/samples.jsonl").read_text() == "mine"
    assert Path("karat-demo/first-words.parquet").read_bytes() == before["karat-demo/first-words.parquet"]
    assert main(["demo", "--force"]) == 0
    assert contents(tmp_path) == before


def test_a_temporary_file_follows_no_link(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda size: b"\0" * size)  # an attacker who could guess
    victim = tmp_path / "victim"
    victim.write_text("old")
    (tmp_path / f".out.{'00' * 8}.tmp").symlink_to(victim)
    with pytest.raises(karat.BadArgument, match="File exists"):
        write_text(tmp_path / "out", "new")
    assert victim.read_text() == "old"


def test_the_names_of_temporary_files_are_unpredictable(tmp_path):
    names = set()
    for _ in range(3):
        with atomic_path(tmp_path / ("é" * 120)) as place:
            names.add(place.name)
            place.write_text("x")
    assert len(names) == 3
    assert not list(tmp_path.glob(".*"))


def test_permissions_are_kept(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    old.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(old, 65534, 65534)
    before = os.umask(0o027)
    try:
        write_text(old, "new")
        write_text(new, "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    assert old.stat().st_uid in {65534, os.geteuid()} - ({0} if os.geteuid() == 0 else set())


def test_standard_output_is_continued(folder):
    Path("log").write_text("before\n")
    with Path("log").open("a") as log:
        command = [sys.executable, "-m", "karat", "gate", "run.parquet", GOOD, "--markdown"]
        for path in ("/dev/stdout", "log"):
            assert subprocess.run([*command, path], stdout=log, check=False).returncode == 0
    text = Path("log").read_text("utf-8")
    assert text.startswith("before\n### ✅ karat gate passed")
    assert text.count("### ✅") == text.count("· exit 0") == 2


def test_a_pipe_is_written_to_directly(folder):
    os.mkfifo("pipe")
    read = []
    reader = Thread(target=lambda: read.append(Path("pipe").read_text("utf-8")))
    reader.start()
    assert main(["gate", "run.parquet", GOOD, "--markdown", "pipe"]) == 0
    reader.join(10)
    assert "karat gate passed" in read[0]
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)  # noqa: PTH116


ENDED = """
import os, pathlib, signal, sys
if signal.getsignal(signal.{0}) is signal.SIG_IGN:  # as under nohup
    signal.signal(signal.{0}, signal.SIG_DFL)
pathlib.Path.replace = lambda self, target: os.kill(os.getpid(), signal.{0})
"""
BY_COMMAND = "from karat.cli import main; sys.exit(main(['eval', 'samples.jsonl', '-o', 'run.parquet']))"
IN_PYTHON = "import karat; karat.evaluate('samples.jsonl').save('run.parquet')"


@pytest.mark.parametrize(
    ("code", "name", "ended"),
    [
        (BY_COMMAND, "SIGTERM", 143), (BY_COMMAND, "SIGHUP", 129), (BY_COMMAND, "SIGINT", 130),
        (IN_PYTHON, "SIGTERM", -signal.SIGTERM), (IN_PYTHON, "SIGINT", -signal.SIGINT),
    ],
)  # fmt: skip
def test_a_signal_leaves_no_temporary_file(folder, code, name, ended):
    before = contents(folder)
    done = subprocess.run([sys.executable, "-c", ENDED.format(name) + code], check=False, capture_output=True)
    assert done.returncode == ended, done.stderr
    assert contents(folder) == before


SORTED = """
import os, signal, polars as pl, karat
from karat.scale.memory import MemoryLimits
rows = [(f"q{n}", f"d{rank}", 9.0 - rank) for rank in range(8) for n in range(40)]
table = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
table.write_parquet("long.parquet", row_group_size=20)
def judge(gold, item):
    if os.listdir(os.environ["TMPDIR"]):
        print("sorted", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
    return False
gold = {f"q{n}": ["d1"] for n in range(40)}
memory = MemoryLimits(3000, fewest_rows=7, item_bytes=0)
karat.evaluate(retrieved="long.parquet", gold=gold, metrics="rr", judge=judge, memory=memory)
"""


def test_a_signal_deletes_the_files_in_which_queries_are_sorted(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SORTED], check=False, capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "sorted\n"), done.stderr
    assert not list(temporary.iterdir())


def test_ctrl_c_that_becomes_another_error(monkeypatch, capsys):
    def parse(_):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # as in the import of NumPy
            raise ImportError("could not import module") from None

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr("karat.cli._parse", parse)
        assert main(["metrics"]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "karat: interrupted\n"
