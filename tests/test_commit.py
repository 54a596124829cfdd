"""The commit that a run file names, read from the files of a repository as git writes them, and from odd ones."""

from __future__ import annotations

import os
import subprocess

import pytest

import karat
from karat._internal.commit import current_commit
from karat.analysis.changes import check_comparable
from karat.cli import main

SAMPLES = [{"id": f"q{i}", "retrieved": ["a", "b"], "gold": ["ab"[i % 2]]} for i in range(6)]
A, B = "a" * 40, "0123456789abcdef" * 2 + "01234567"


@pytest.fixture(autouse=True)
def _no_ci(monkeypatch):
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one commit, made by git; the working directory is a folder in it."""
    path = tmp_path / "repository"
    path.mkdir()
    (path / "inner").mkdir()
    git(path, "init", "-q", "-b", "main")
    git(path, "commit", "-q", "--allow-empty", "-m", "first")
    monkeypatch.chdir(path / "inner")
    return path


def git(path, *words):
    """The output of git, without the settings of the user."""
    who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"]
    own = {"PATH": os.environ["PATH"], "HOME": str(path), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *who, *words], cwd=path, env=own, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_branch(repository):
    assert current_commit() == git(repository, "rev-parse", "HEAD")


def test_no_branch(repository):
    git(repository, "checkout", "-q", "--detach")
    assert current_commit() == git(repository, "rev-parse", "HEAD")


def test_packed_references(repository):
    git(repository, "branch", "feature/a")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    git(repository, "tag", "-a", "-m", "x", "v1")
    git(repository, "pack-refs", "--all")
    assert current_commit() == git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "feature/a")
    assert current_commit() == git(repository, "rev-parse", "HEAD")


def test_a_worktree(repository):
    git(repository, "worktree", "add", "-q", "-b", "other", "../other")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    other = repository.parent / "other"
    assert current_commit(other) == git(other, "rev-parse", "HEAD") != current_commit()
    git(other, "pack-refs", "--all")
    assert current_commit(other) == git(other, "rev-parse", "HEAD")


def test_a_repository_without_commits(tmp_path):
    git(tmp_path, "init", "-q")
    assert current_commit(tmp_path) == ""


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"HEAD": ""},
        {"HEAD": "ref: refs/heads/main"},
        {"HEAD": "ref: refs/heads/main", "refs/heads/main": "no commit"},
        {"HEAD": "ref: refs/heads/main", "refs/heads/main": "ref: refs/heads/main"},
        {"HEAD": "ref: ../../secret"},
        {"HEAD": "ref: refs/../../../secret"},
        {"HEAD": "ref: /etc/hostname"},
        {"HEAD": A[:-1]},
        {"HEAD": "A" * 40},
        {"HEAD": A + " " * 5000},
        {"HEAD": b"\xff\xfe"},
        {"HEAD": "ref: refs/heads/a\0b"},
        {"HEAD": "ref: refs/heads/main", "packed-refs": f"{A} refs/heads/main2\n{A}\nrefs/heads/main\n"},
    ],
)
def test_an_odd_repository(tmp_path, files):
    (tmp_path / "secret").write_text(A)
    for name, text in files.items():
        path = tmp_path / "x" / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "x" / ".git").mkdir(parents=True, exist_ok=True)
    assert current_commit(tmp_path / "x") == ""


@pytest.mark.parametrize("text", ["", "gitdir: none", "gitdir: .", "nonsense", "gitdir: a\0b"])
def test_an_odd_worktree(tmp_path, text):
    (tmp_path / ".git").write_text(text)
    assert current_commit(tmp_path) == ""


def test_a_pipe_is_not_waited_for(tmp_path):
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert current_commit(tmp_path) == ""


def test_a_folder_that_is_gone(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert current_commit() == ""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ""),
        ({"GITHUB_SHA": A}, A),
        ({"CI_COMMIT_SHA": B.upper()}, B),
        ({"GITHUB_SHA": "x", "CI_COMMIT_SHA": B}, B),
        ({"GITHUB_SHA": A + "0"}, ""),
    ],
)
def test_in_ci(tmp_path, monkeypatch, given, expected):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert current_commit(tmp_path) == expected


def test_a_repository_is_believed_before_ci(repository, monkeypatch):
    monkeypatch.setenv("GITHUB_SHA", A)
    assert current_commit() == git(repository, "rev-parse", "HEAD")


def test_runs_have_the_commit_at_which_they_were_saved(repository):
    run, first = karat.evaluate(SAMPLES, "rr"), git(repository, "rev-parse", "HEAD")
    run.save("a.parquet")
    run.save("b.parquet")
    assert (repository / "inner/a.parquet").read_bytes() == (repository / "inner/b.parquet").read_bytes()
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    second = git(repository, "rev-parse", "HEAD")
    run.save("c.parquet")
    loaded = karat.load("a.parquet")
    loaded.save("d.parquet")
    loaded.take([0, 1]).save("e.parquet")
    commits = {name: karat.load(f"{name}.parquet").commit for name in "abcde"}
    assert commits == dict.fromkeys("abde", first) | {"c": second}
    assert loaded.to_dict()["provenance"]["commit"] == first
    assert f" · commit {first[:7]}\n" in str(loaded)
    assert "commit" not in str(run), "it may be saved at another one"


def test_a_loaded_run_without_a_commit_gets_none(repository, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.evaluate(SAMPLES, "rr").save("a.parquet")
    monkeypatch.chdir(repository)
    run = karat.load(tmp_path / "a.parquet")
    run.save(tmp_path / "b.parquet")
    assert (run.commit, karat.load(tmp_path / "b.parquet").commit) == ("", "")
    assert "commit" not in run.to_dict()["provenance"]


def test_parts_of_two_commits_have_the_commit_at_which_they_are_merged(repository):
    karat.evaluate(SAMPLES[:3], "rr").save("a.parquet")
    first = git(repository, "rev-parse", "HEAD")
    karat.evaluate(SAMPLES[3:], "rr").save("b.parquet")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    assert karat.merge(["a.parquet", "b.parquet"]).commit == first
    karat.evaluate(SAMPLES[3:], "rr").save("b.parquet")
    assert karat.merge(["a.parquet", "b.parquet"]).commit == git(repository, "rev-parse", "HEAD") != first


def test_comparisons_and_gates_ignore_it(repository, capsys):
    karat.evaluate(SAMPLES, "rr").save("a.parquet")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    karat.evaluate(SAMPLES, "rr").save("b.parquet")
    a, b = karat.load("a.parquet"), karat.load("b.parquet")
    assert a.commit != b.commit
    assert a.provenance == b.provenance
    check_comparable(a, b)
    assert main(["compare", "a.parquet", "b.parquet"]) == 0
    assert main(["gate", "b.parquet", "rr >= 0.5", "rr no-drop 0.9", "--baseline", "a.parquet"]) == 0


def test_the_report_shows_it(repository):
    run = karat.evaluate(SAMPLES, "rr")
    run.report("a.html")
    commit = git(repository, "rev-parse", "HEAD")
    assert f"<dt>commit</dt><dd><bdi>{commit}</bdi></dd>" in (repository / "inner/a.html").read_text("utf-8")
