"""The cache: keys, several processes at once, files that cannot be used, and `karat cache`."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from karat.cli import main
from karat.errors import BadArgument
from karat.llm import BadAnswer, Cache, Engine, Reply, Request, find_model
from karat.llm.cache import default_path
from support.questions import SCHEMA, questions, request, said, values
from support.server import Act, Server, echo

HERE = Path(__file__).parent
KEPT = Reply({"said": "x"}, 3, 4)


def test_a_second_run_makes_no_call_and_needs_no_key_and_no_server(tmp_path):
    with Server() as server:
        first = Engine(server.model(), cache=tmp_path / "c").ask(questions(30))
    again = Engine(server.model(), cache=tmp_path / "c")
    found = again.ask(questions(30))
    assert values(found) == values(first)
    assert all(answer.cached for answer in found)
    assert [answer[2:] for answer in found] == [answer[2:] for answer in first]
    assert again.spent == (0, 30, 0, 0, None)


def test_the_cache_key_covers_everything_that_matters():
    base = Request([{"role": "user", "content": "a"}], SCHEMA, said, "v1")
    others = [
        ("m", Request([{"role": "user", "content": "b"}], SCHEMA, said, "v1")),
        ("m", Request([{"role": "system", "content": "a"}], SCHEMA, said, "v1")),
        ("m", Request(base.messages, {**SCHEMA, "title": "t"}, said, "v1")),
        ("m", Request(base.messages, SCHEMA, said, "v2")),
        ("n", base),
    ]
    assert len({base.key("m"), *(other.key(model) for model, other in others)}) == 6
    assert base.key("m") == Request(base.messages, dict(reversed(SCHEMA.items())), len, "v1").key("m")


def test_sampling_parameters_and_endpoints_do_not_share_answers(tmp_path):
    with Server() as one, Server() as other:
        for model in (one.model(), one.model(temperature=1), one.model(seed=3), other.model()):
            Engine(model, cache=tmp_path / "c").ask(questions(1))
        assert (one.count, other.count) == (3, 1)


def test_only_checked_answers_are_cached(tmp_path):
    with Server(lambda call: Act(content='{"said": "forbidden"}')) as server:
        Engine(server.model(), cache=tmp_path / "c", backoff=0, retries=1).ask(questions(2))
    assert Cache(tmp_path / "c").models() == []


def test_a_cached_answer_that_fails_its_check_is_requested_again(tmp_path):
    with Server(lambda call: Act(content=json.dumps({"said": str(call.number)}))) as server:
        Engine(server.model(), cache=tmp_path / "c").ask([request("x")])

        def stricter(answer):
            if answer["said"] == "0":
                raise BadAnswer("zero")
            return answer["said"]

        for _ in range(2):
            assert values(Engine(server.model(), cache=tmp_path / "c").ask([request("x", check=stricter)])) == ["1"]
        assert server.count == 2


def test_equal_requests_are_called_once(tmp_path):
    with Server(lambda call: Act(content='{"said": "good"}', delay=0.05)) as server:
        asked = Engine(server.model(), cache=tmp_path / "c")
        assert values(asked.ask([request("x") for _ in range(50)])) == ["good"] * 50
        assert server.count == 1
        assert asked.spent[:2] == (1, 49)
        Engine(server.model(), cache=None).ask([request("x") for _ in range(5)])
        assert server.count == 6


def test_equal_requests_fail_independently(tmp_path):
    with Server(lambda call: Act(status=400) if call.before == 0 else echo(call)) as server:
        found = values(Engine(server.model(), cache=tmp_path / "c").ask([request("x") for _ in range(3)]))
    assert sorted(found)[1:] == ["x", "x"]


def test_several_processes_at_once_lose_nothing_and_agree(tmp_path):
    """Each process sees other answers; all end with those that were first."""
    with Server(lambda call: Act(content=json.dumps({"said": f"{call.text} {call.number}"}), delay=0.005)) as server:
        command = [
            sys.executable,
            str(HERE.parent / "support" / "questions.py"),
            str(server.port),
            str(tmp_path / "c"),
            "150",
            "8",
        ]
        with ThreadPoolExecutor(6) as pool:
            runs = list(
                pool.map(lambda _: subprocess.run(command, capture_output=True, text=True, check=False), range(6))
            )
    assert [run.stderr for run in runs] == [""] * 6
    reported = [json.loads(run.stdout)["values"] for run in runs]
    assert all(one == reported[0] for one in reported)
    assert all(value.startswith(f"q{place} ") for place, value in enumerate(reported[0]))
    [held] = Cache(tmp_path / "c").models()
    assert held.answers == 150


def test_a_forked_process_opens_the_file_for_itself(tmp_path):
    cache = Cache(tmp_path / "c")
    cache.put("a", "m", "v", KEPT)
    before = cache._connections[os.getpid()]
    if (child := os.fork()) == 0:
        try:
            cache.put("b", "m", "v", KEPT)
        finally:
            os._exit(0 if cache._connections[os.getpid()] is not before else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.get("b") == KEPT


def test_the_journal_is_written_ahead(tmp_path):
    Cache(tmp_path / "c").put("a", "m", "v", KEPT)
    assert sqlite3.connect(tmp_path / "c").execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("spoiled", ["garbage", "cut", "foreign", "folder", "parent"])
def test_a_file_that_cannot_be_used_is_reported(tmp_path, spoiled):
    path = tmp_path / "c"
    if spoiled == "garbage":
        path.write_bytes(b"this is no database, but it is long enough to be taken for one" * 100)
    elif spoiled == "cut":
        cache = Cache(path)
        for place in range(500):
            cache.put(str(place), "m", "v", KEPT)
        del cache
        path.write_bytes(b"SQLite format 3\0" + os.urandom(5000))
    elif spoiled == "foreign":
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE precious (x)")
        connection.close()
    elif spoiled == "folder":
        path.mkdir()
    else:
        path.write_text("a file")
        path /= "c"
    with pytest.raises(BadArgument, match="cache"):
        Engine("m", cache=path)
    assert main(["cache", "info", "--cache", str(path)]) == (0 if spoiled == "parent" else 2)


DAMAGE = {
    "broken JSON": "UPDATE answers SET answer = '{\"said'",
    "no JSON": "UPDATE answers SET answer = ''",
    "another type": "UPDATE answers SET answer = 7",
    "bytes": "UPDATE answers SET answer = x'ff00ff'",
    "invalid UTF-8": "UPDATE answers SET answer = CAST(x'22ff22' AS TEXT)",
    "deep": f"UPDATE answers SET answer = '{'[' * 100_000}'",
    "another schema": "UPDATE answers SET answer = '{\"other\": 1}'",
    "no object": "UPDATE answers SET answer = '[1]'",
    "NaN": "UPDATE answers SET answer = '{\"said\": NaN}'",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_answer_is_requested_once_and_replaced(tmp_path, damage, capsys):
    with Server() as server:
        Engine(server.model(), cache=tmp_path / "c").ask(questions(3))
        with sqlite3.connect(tmp_path / "c") as connection:
            connection.execute(damage + " WHERE key = (SELECT min(key) FROM answers)")
        connection.close()
        assert main(["cache", "export", "--cache", str(tmp_path / "c")]) == 0
        assert len([json.loads(line) for line in capsys.readouterr().out.splitlines()]) == 3
        for _ in range(3):
            assert values(Engine(server.model(), cache=tmp_path / "c").ask(questions(3))) == ["q0", "q1", "q2"]
        assert server.count == 4


def test_damaged_numbers_cost_no_call(tmp_path, capsys):
    with Server() as server:
        Engine(server.model(), cache=tmp_path / "c").ask(questions(3))
        with sqlite3.connect(tmp_path / "c") as connection:
            connection.execute("UPDATE answers SET prompt_tokens = 'x', completion_tokens = 9e30, created = 'today'")
            connection.execute("UPDATE answers SET prompt_tokens = 9223372036854775807, model = x'ff' WHERE key > '8'")
        connection.close()
        engine = Engine(server.model(), cache=tmp_path / "c")
        assert [answer[1:] for answer in engine.ask(questions(3))] == [(True, 0, 0)] * 3
        assert server.count == 3
    for action in ("info", "export"):
        assert main(["cache", action, "--cache", str(tmp_path / "c")]) == 0


@pytest.mark.parametrize("old", [0o022, 0o000])
def test_only_the_owner_can_read_it(tmp_path, old):
    mask = os.umask(old)
    try:
        cache = Cache(tmp_path / "made" / "c")
        cache.put("a", "m", "v", KEPT)
        modes = {file.name: file.stat().st_mode & 0o777 for file in cache.path.parent.iterdir()}
    finally:
        os.umask(mask)
    assert modes == {"c": 0o600, "c-wal": 0o600, "c-shm": 0o600}
    assert cache.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_locked_file_is_reported_before_the_first_call(tmp_path, monkeypatch):
    monkeypatch.setattr("karat.llm.cache._LOCK_TIMEOUT", 0.1)
    Cache(tmp_path / "c").put("a", "m", "v", KEPT)
    other = sqlite3.connect(tmp_path / "c", isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BadArgument, match=r"cannot use the cache .*: database is locked"):
        Engine("m", cache=tmp_path / "c")
    other.close()


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_a_damaged_page_is_reported_before_the_first_call(tmp_path, place):
    cache = Cache(tmp_path / "c")
    for number in range(2000):
        cache.put(f"{number:064}", "m", "v", KEPT)
    del cache
    data = bytearray((tmp_path / "c").read_bytes())
    start = int(len(data) * place) // 4096 * 4096
    data[start : start + 4096] = b"\xaa" * 4096
    (tmp_path / "c").write_bytes(data)
    with Server() as server:
        for asked in (questions(1), [request(str(place)) for place in range(2000)]):
            with pytest.raises(BadArgument, match=r"cache .*(malformed|damaged)"):
                Engine(server.model(), cache=tmp_path / "c").ask(asked)
        assert server.count == 0


def test_other_columns_are_reported_before_the_first_call(tmp_path):
    Cache(tmp_path / "c")
    with sqlite3.connect(tmp_path / "c") as connection:
        connection.execute("ALTER TABLE answers RENAME COLUMN answer TO said")
    connection.close()
    with pytest.raises(BadArgument, match="cannot use the cache"):
        Engine("m", cache=tmp_path / "c")


def test_a_cache_that_fails_during_a_run_loses_no_answer(tmp_path, caplog):
    def script(call):
        if call.number == 5:
            sqlite3.connect(tmp_path / "c").execute("DROP TABLE answers")
        return echo(call)

    with Server(script) as server:
        asked = Engine(server.model(), cache=tmp_path / "c", concurrency=1)
        assert values(asked.ask(questions(20))) == [f"q{place}" for place in range(20)]
    assert "answers are no longer stored" in asked.warning
    assert sum("no longer stored" in record.message for record in caplog.records) == 1


def test_a_read_only_cache_is_read(tmp_path):
    """In a process that may not write it; whoever runs the tests may, perhaps."""
    folder = Path("/tmp") / f"karat-{os.getpid()}"  # where another user can read, which pytest's own folder is not
    folder.mkdir()
    try:
        path = folder / "c"
        with Server() as server:
            Engine(server.model(), cache=path).ask(questions(3))
            _unwritable(folder, path)
            reader, writer = os.pipe()
            if (child := os.fork()) == 0:
                _reported_by_nobody(path, writer, server.model())
            os.close(writer)
            with os.fdopen(reader) as reported:
                remark, first, fourth = json.loads(reported.read())
            os.waitpid(child, 0)
        assert "is read-only: new answers are not stored" in remark
        assert (first, fourth) == ("q0", "q3")
    finally:
        folder.chmod(0o700)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def _unwritable(folder, path):
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    assert path.exists()


class Stranger:
    """Goes by the name of a model, and needs nothing that another user could not read."""

    def __init__(self, model):
        self.name = find_model(model).name

    async def complete(self, messages, schema):
        return Reply({"said": messages[0]["content"]}, 1, 1)


def _reported_by_nobody(path, writer, model):
    reported = ["crashed", "", ""]
    try:
        if os.geteuid() == 0:
            os.setuid(65534)
        asked = Engine(Stranger(model), cache=path)
        found = values(asked.ask(questions(4)))
        reported = [asked.warning, found[0], found[3] if asked.spent.cached == 3 else "not read"]
    finally:
        os.write(writer, json.dumps(reported).encode())
        os._exit(0)


def test_the_default_file(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "karat" / "answers.sqlite"
    with Server() as server:
        Engine(server.model()).ask(questions(1))
    assert default_path().exists()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_path().is_relative_to(tmp_path / "home")


@pytest.fixture
def filled(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = Cache()
    for place in range(1200):
        cache.put(f"{place:04}", "a" if place % 3 else "b\x1b[2J", "v1", KEPT)
    return cache


def test_info(filled, capsys):
    assert main(["cache", "info"]) == 0
    reported = capsys.readouterr().out
    assert "1,200 answers" in reported
    assert "\x1b" not in reported
    assert [line.split()[:4] for line in reported.splitlines()[3:]] == [
        ["a", "800", "2,400", "3,200"],
        ["b\ufffd[2J", "400", "1,200", "1,600"],
    ]


def test_info_creates_no_file(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["cache", "info"]) == 0
    assert "no cache yet" in capsys.readouterr().out
    assert main(["cache", "clear", "--yes"]) == 0
    assert main(["cache", "export"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_clear(filled, capsys):
    assert main(["cache", "clear"]) == 1  # nobody is there to be asked
    assert "--yes" in capsys.readouterr().out
    assert main(["cache", "clear", "--model", "a", "--yes"]) == 0
    assert "deleted 800 answers" in capsys.readouterr().out
    assert main(["cache", "clear", "--yes"]) == 0
    assert filled.models() == []


def test_export(filled, capsys, tmp_path):
    assert main(["cache", "export"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["key"] for line in lines] == [f"{place:04}" for place in range(1200)]
    assert lines[1].keys() == {"key", "model", "version", "answer", "prompt_tokens", "completion_tokens", "created"}
    assert lines[1]["answer"] == {"said": "x"}
    assert main(["cache", "export", "-o", str(tmp_path / "out.jsonl")]) == 0
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == lines
    assert main(["cache", "export", "-o", str(tmp_path)]) == 2


def test_an_export_ends_if_keys_are_damaged(tmp_path):
    cache = Cache(tmp_path / "cache.sqlite")
    cache.put("a", "m", "v", Reply({"x": 1}, 1, 1))
    with sqlite3.connect(cache.path) as file:
        for key in ("CAST(x'ff' AS TEXT)", "x'ff'", "CAST(x'fe' AS TEXT)"):
            file.execute(f"INSERT INTO answers SELECT {key}, model, version, answer, 1, 1, 1.0 FROM answers LIMIT 1")
    assert len(list(islice(cache.export(), 10))) == 4
