"""`karat view`: its folder, its port, its browser, and what it says without the extra."""

from __future__ import annotations

import os
import subprocess
import sys
from socket import create_server

import pytest

from karat.cli import main
from karat.cli import view as command


@pytest.mark.parametrize("given", ["nowhere", "a.txt/b", "x\0y"])
def test_a_folder_that_is_none(given, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("no folder")
    assert main(["view", given, "--no-open"]) == 2
    assert "karat view FOLDER" in capsys.readouterr().err


def test_a_run_file_is_opened_in_its_folder(tmp_path):
    (tmp_path / "main.parquet").write_bytes(b"")
    folder, path = command._folder(tmp_path / "main.parquet")
    assert folder == tmp_path.resolve()
    assert path.startswith("/run/")
    assert "main" not in path


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("make.py", b"print()", "its name does not end with .parquet"),
        ("rows.parquet", b"id,text", "it is not Parquet"),
        (".hidden.parquet", b"PAR1", "begins with a dot"),
    ],
)
def test_a_file_that_is_no_run_is_refused_at_the_start(name, content, words, tmp_path, capsys):
    (tmp_path / name).write_bytes(content)
    assert main(["view", str(tmp_path / name), "--no-open", "--port", "0"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in " ".join(printed.err.split())


def test_the_usual_port_may_be_taken(monkeypatch):
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(command, "_PORT", port)
        with command.listen_at(None) as other:
            assert other.getsockname()[0] == "127.0.0.1"
            assert other.getsockname()[1] != port


def test_a_port_that_was_asked_for_is_taken(capsys):
    with create_server(("127.0.0.1", 0)) as taken:
        assert main(["view", "--no-open", "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot listen" in capsys.readouterr().err


def test_no_browser_without_a_screen(monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("webbrowser.open", lambda address: pytest.fail("a browser was opened"))
    command.open_browser("http://127.0.0.1:1/")
    assert "open the address yourself" in capsys.readouterr().err


def test_the_browser_has_the_address(monkeypatch):
    opened = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    command.open_browser("http://127.0.0.1:1/?token=x")
    assert opened == ["http://127.0.0.1:1/?token=x"]


@pytest.mark.parametrize("beside", [False, True])
def test_without_the_extra_one_sentence_says_how_to_install_it_here(tmp_path, beside):
    code = "import sys; sys.modules['litestar'] = None; from karat.cli import main; sys.exit(main(sys.argv[1:]))"
    own = tmp_path / "bin" / "python"
    code = f"import sys; sys.executable = {str(own)!r}; {code}"
    pip = (own.parent if beside else tmp_path / "other") / "pip"
    pip.parent.mkdir()
    pip.write_text("#!/bin/sh\n")
    pip.chmod(0o755)
    start = [sys.executable, "-c", code, "view", str(tmp_path), "--no-open", "--port", "0"]
    env = os.environ | {"PATH": str(pip.parent)}
    done = subprocess.run(start, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert done.returncode != 0
    assert done.stdout == ""
    assert "karat view needs the extra web" in done.stderr
    pip_of_this = "try pip" if beside else f"{own} -m pip"
    assert f"{pip_of_this} install litestar uvicorn httptools" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
