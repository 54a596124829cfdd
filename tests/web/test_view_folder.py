"""The folder of the viewer: which files are found, their ids, and the state that follows every change."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from karat.web.view import folder as folders
from karat.web.view.folder import Found, FoundFile, WatchedFolder, find_files, id_of


def put(folder, *names):
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")
        os.utime(path, (1000 + number, 1000 + number))


def names(folder):
    return sorted(file.name for file in find_files(folder).files)


def test_files_of_all_folders_are_found_the_newest_first(tmp_path):
    put(tmp_path, "old.parquet", "a/b/c/deep.parquet", "new.parquet", "a/readme.md", "data.csv")
    found = find_files(tmp_path)
    assert [file.name for file in found.files] == ["new", "a/b/c/deep", "old"]
    assert found.files[1].short_name == "deep"
    assert found.whole


def test_hidden_files_and_folders_of_packages_are_passed_over(tmp_path):
    put(tmp_path, ".run.parquet.tmp", ".x.parquet", ".git/a.parquet", ".venv/b.parquet", "node_modules/c.parquet")
    put(tmp_path, "lib/site-packages/d.parquet", "shown.parquet")
    assert names(tmp_path) == ["shown"]


def test_links_to_files_are_followed_and_links_to_folders_are_not(tmp_path):
    put(tmp_path, "runs/a.parquet", "elsewhere/b.parquet")
    (tmp_path / "runs" / "around").symlink_to(tmp_path / "runs")
    (tmp_path / "runs" / "b.parquet").symlink_to(tmp_path / "elsewhere" / "b.parquet")
    (tmp_path / "runs" / "nowhere.parquet").symlink_to(tmp_path / "nothing")
    assert names(tmp_path / "runs") == ["a", "b"]


def test_only_regular_files_are_found(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    os.mkfifo(tmp_path / "pipe.parquet")
    assert names(tmp_path) == []


def test_equal_names_in_several_folders_have_their_own_ids(tmp_path):
    put(tmp_path, "a/main.parquet", "b/main.parquet")
    first, second = find_files(tmp_path).files
    assert first.id != second.id
    assert {first.name, second.name} == {"a/main", "b/main"}


def test_an_id_is_opaque_and_the_same_the_next_time(tmp_path):
    put(tmp_path, "secret/main.parquet")
    (file,) = find_files(tmp_path).files
    assert file.id == id_of("secret/main.parquet")
    assert "secret" not in file.id
    assert file.id.isalnum()
    assert find_files(tmp_path).by_id(file.id) == file
    assert find_files(tmp_path).by_id("../secret/main.parquet") is None


def test_names_that_are_no_utf8_are_shown_and_differ(tmp_path):
    for raw in (b"\xff.parquet", b"\xfe.parquet", b"line\nbreak.parquet", b"x" * 247 + b".parquet"):
        (tmp_path / os.fsdecode(raw)).write_bytes(b"")
    found = names(tmp_path)
    assert len(set(found)) == 4
    assert "\\xff" in found
    for name in found:
        name.encode()


def test_a_large_folder_is_looked_at_in_part_and_says_so(tmp_path):
    put(tmp_path, *(f"{i}.parquet" for i in range(5)), "below/6.parquet")
    found = find_files(tmp_path, most=3)
    assert not found.whole
    assert found.looked_at == 3
    assert len(found.files) <= 3
    assert find_files(tmp_path, most=7).whole


def test_folders_count_too(tmp_path):
    for i in range(10):
        (tmp_path / f"empty{i}").mkdir()
    assert not find_files(tmp_path, most=5).whole


def test_a_folder_that_is_gone_or_locked_has_no_files(tmp_path):
    assert find_files(tmp_path / "gone") == Found([], whole=True, locked=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_below_that_may_not_be_read_is_counted(tmp_path):
    put(tmp_path, "a.parquet", "locked/b.parquet")
    (tmp_path / "locked").chmod(0)
    found = find_files(tmp_path)
    (tmp_path / "locked").chmod(0o700)
    assert ([file.name for file in found.files], found.locked) == (["a"], 1)
    assert found.state != find_files(tmp_path).state


def test_the_state_changes_with_every_file(tmp_path):
    put(tmp_path, "a.parquet")
    states = [find_files(tmp_path).state]

    def changed():
        states.append(find_files(tmp_path).state)
        return states[-1] != states[-2]

    assert not changed()
    put(tmp_path, "sub/b.parquet")
    assert changed()
    (tmp_path / "sub" / "b.parquet").write_bytes(b"longer")
    assert changed()
    os.utime(tmp_path / "a.parquet", (5, 5))
    assert changed()
    put(tmp_path, "new")
    (tmp_path / "new").rename(tmp_path / "a.parquet")
    os.utime(tmp_path / "a.parquet", (5, 5))
    assert changed()
    (tmp_path / "a.parquet").unlink()
    assert changed()
    put(tmp_path, "notes.txt")
    assert not changed()


def test_runs_are_compared_in_the_order_of_time_after_the_baseline(tmp_path):
    files = [FoundFile(name, name, tmp_path, time, 1) for name, time in (("new", 30), ("mid", 20), ("old", 10))]
    found = Found(files, whole=True)
    assert found.oldest_first(["new", "old", "mid", "new"]) == ["old", "mid", "new"]
    assert found.oldest_first(["new", "old", "mid"], "new") == ["new", "old", "mid"]
    assert found.oldest_first(["gone", "new"]) == ["new", "gone"]


def test_many_pages_look_at_the_folder_once(tmp_path, monkeypatch):
    looks = []

    def look(folder):
        looks.append(folder)
        return find_files(folder)

    monkeypatch.setattr(folders, "find_files", look)

    async def ask():
        watched = WatchedFolder(tmp_path)
        first = await asyncio.gather(*(watched.state() for _ in range(20)))
        assert len(looks) == 1
        put(tmp_path, "a.parquet")
        await asyncio.sleep(0.35)
        assert await watched.state() not in first
        assert len(looks) == 2

    asyncio.run(ask())


@pytest.mark.parametrize("module", ["karat.web.view.folder", "karat.web.view.routes"])
def test_the_server_looks_at_the_folder_without_numpy(module, tmp_path):
    code = f"import sys, {module}, pathlib; from karat.web.view.folder import find_files; "
    code += f"find_files(pathlib.Path({str(tmp_path)!r})).state; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "polars"} & set(loaded)
