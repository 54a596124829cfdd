"""`karat view`: its folder, its port, its browser, and what it says without the extra."""

from __future__ import annotations

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


def test_without_the_extra_one_sentence_says_how_to_install_it(tmp_path):
    code = "import sys; sys.modules['litestar'] = None; from karat.cli import main; sys.exit(main(sys.argv[1:]))"
    start = [sys.executable, "-c", code, "view", str(tmp_path), "--no-open", "--port", "0"]
    done = subprocess.run(start, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert done.stdout == ""
    assert "karat view needs the extra web" in done.stderr
    assert "pip install litestar uvicorn httptools" in done.stderr
    assert "Traceback" not in done.stderr
