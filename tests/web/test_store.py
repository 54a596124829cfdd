"""The folder of the stored runs: odd files, faults of the disk, and what is told of them."""

from __future__ import annotations

import asyncio
import json
import os
from errno import ENOSPC, EROFS
from pathlib import Path

import polars as pl
import pytest

import karat
from karat.web.api import listed as listed_pages
from karat.web.api.listed import Listed
from karat.web.messages import Call, Reply
from karat.web.tasks import do, load_tasks

RUN = karat.evaluate([{"id": "q1", "retrieved": ["a"], "gold": ["a"]}], "rr")
PARQUET = "application/vnd.apache.parquet"


@pytest.fixture
def folder(tmp_path):
    load_tasks()
    folder = tmp_path / "operators"
    folder.mkdir()
    return folder


def ask(task, folder, body=b"", **more):
    arguments = more.pop("arguments", {})
    reply, content = do(Call(task, store=str(folder), arguments=arguments, **more), body, lambda *_: None)
    assert str(folder).encode() not in content
    assert "operators" not in content.decode("latin-1") + str(reply.fault)
    return reply, content


def listed(folder):
    return {run["name"]: run for run in json.loads(ask("runs", folder)[1])["runs"]}


def test_the_folder_is_not_told_whatever_a_file_is_called(folder):
    names = [b"junk", b"new\nline <b>", b"bad\xff", b"two  blanks", b"[x]*?"]
    for name in names:
        (Path(os.fsdecode(os.fsencode(folder) + b"/" + name + b".parquet"))).write_bytes(b"junk")
    found = listed(folder)
    assert len(found) == len(names)
    assert all("not a run file" in run["error"] for run in found.values())
    for run in found.values():
        assert ask("run", folder, arguments={"run_id": run["id"]})[0].status == 422


def test_only_a_run_is_downloaded(folder, tmp_path):
    (tmp_path / "secret").write_text("root:x:0")
    (folder / "link.parquet").symlink_to(tmp_path / "secret")
    RUN.save(folder / "real.parquet")
    for _ in range(2):
        for name, status in (("link", 422), ("real", 200)):
            reply, content = ask("run", folder, arguments={"run_id": name}, accept=PARQUET)
            assert (reply.status, b"root:x" in content) == (status, False)
        assert listed(folder)["link"]["error"]
    assert content == (folder / "real.parquet").read_bytes()


def test_a_file_that_cannot_be_deleted(folder, monkeypatch):
    RUN.save(folder / "x.parquet")
    monkeypatch.setattr(Path, "unlink", _failing(EROFS))
    reply, content = ask("delete_run", folder, arguments={"run_id": listed(folder)["x"]["id"]})
    assert (reply.status, reply.fault) == (507, "OSError: Read-only file system")
    assert json.loads(content)["detail"] == "the run cannot be deleted: Read-only file system"


@pytest.mark.parametrize("by_polars", [True, False])
def test_a_disk_that_is_full(folder, monkeypatch, by_polars):
    def fail(*_):
        raise pl.exceptions.ComputeError(f"IO error: No space left on device (os error {ENOSPC}): {folder}")

    monkeypatch.setattr("karat.run.file.add_checksum", fail if by_polars else _failing(ENOSPC))
    body = {"samples": [{"retrieved": ["a"], "gold": ["a"]}], "store": True}
    reply, content = ask("evaluate", folder, json.dumps(body).encode())
    assert (reply.status, reply.fault) == (507, "OSError: No space left on device")
    assert json.loads(content)["detail"] == "the run was evaluated, but cannot be stored: No space left on device"
    assert not list(folder.iterdir())


def test_a_folder_that_is_gone(folder):
    folder.rmdir()
    reply, content = ask("evaluate", folder, b'{"samples": [{"retrieved": ["a"], "gold": ["a"]}], "store": true}')
    assert (reply.status, reply.fault) == (507, "OSError: No such file or directory")
    reply, content = ask("runs", folder)
    assert (reply.status, b"No such file or directory" in content) == (503, True)


def test_a_file_that_cannot_be_read_now_is_read_later(folder, monkeypatch):
    RUN.save(folder / "x.parquet")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", _failing(5))
        assert listed(folder)["x"]["error"] == "the file of the run cannot be read: Input/output error"
        assert ask("run", folder, arguments={"run_id": "x"})[0].status == 503
    assert listed(folder)["x"]["mean"] == {"rr": 1.0}


def test_a_page_is_read_again_only_if_a_file_has_changed(folder, monkeypatch):
    done, pages = [], Listed(folder)

    def page(asked="", status=200):
        async def work():
            done.append(asked)
            return Reply(status), b"x" * 10

        return asyncio.run(pages.page(asked, work))[0].status

    def count(*asked, **more):
        before = len(done)
        for one in asked:
            page(one, **more)
        return len(done) - before

    (folder / "loop.parquet").symlink_to("loop.parquet")
    assert count("a", "a", "b", "b", "a") == 2
    RUN.save(folder / "x.parquet")
    assert count("a", "a") == 1
    os.utime(folder / "x.parquet")
    assert count("a", "b", "a") == 2
    (folder / "x.parquet").unlink()
    assert count("a") == 1
    assert count("c", "c", status=503) == 2
    monkeypatch.setattr(listed_pages, "_BYTES", 25)
    assert count("d", "e", "f", "f", "a") == 4
    (folder / "loop.parquet").unlink()
    folder.rmdir()
    assert count("a", "a") == 2


def test_the_list_over_http(server, store):
    def names():
        return [run["name"] for run in server.ask("/v1/runs?limit=1000", Prefer="respond-async").json["runs"]]

    before = names()
    RUN.save(store / "listed-later.parquet")
    assert names() == names() == ["listed-later", *before]
    (store / "listed-later.parquet").unlink()
    assert names() == before


def _failing(number):
    def fail(path, *_, **__):
        raise OSError(number, os.strerror(number), str(path))

    return fail
