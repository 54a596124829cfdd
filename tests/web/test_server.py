"""What holds for every request: paths, methods, keys, hosts, origins, sizes, the log, the end."""

from __future__ import annotations

import signal
import socket

import pytest

from karat.cli import main
from karat.errors import BadArgument
from karat.web.access_keys import Keys, new_key
from karat.web.server import listen
from karat.web.settings import Settings
from support.served import served


def test_health(server):
    assert server.ask("/healthz").json["status"] == "ok"
    assert server.ask("/readyz").json["status"] == "ready"


def test_the_root_leads_to_the_page(server):
    answer = server.ask("/")
    assert (answer.status, answer.body) == (200, server.ask("/docs").body)
    assert any(f"{server.url}/docs" in line for line in server.log)


@pytest.mark.parametrize(("path", "method", "status"), [("/nothing", "GET", 404), ("/healthz", "POST", 405)])
def test_a_wrong_request_is_a_problem(server, path, method, status):
    answer = server.ask(path, method=method)
    assert answer.status == answer.json["status"] == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json["instance"] == answer.headers["X-Request-Id"]


def test_one_line_of_log_per_request_without_payload(server):
    answer = server.ask("/nothing?secret=1", b"payload", Authorization="Bearer my-key")
    entry = server.logged(answer)
    assert (entry["path"], entry["status"], entry["bytes_in"]) == ("/nothing", 404, 7)
    assert not any(word in line for line in server.log for word in ("secret", "payload", "my-key"))


def test_counters(server):
    server.ask("/healthz")
    text = server.ask("/metrics").body.decode()
    assert 'karat_requests_total{path="/healthz",status="200"}' in text
    assert "karat_workers 2" in text or "karat_workers " in text


def test_another_host_is_refused(server):
    assert server.ask("/healthz", Host="example.org").status == 403
    assert server.ask("/healthz", Host="localhost:80").status == 200


def test_another_origin_is_refused(server):
    assert server.ask("/healthz", Origin="https://example.org").status == 403
    assert server.ask("/healthz", Origin=server.url).status == 200


def test_keys(locked):
    server, key = locked
    assert server.ask("/healthz").status == 200
    assert server.ask("/metrics").status == 401
    assert server.ask("/metrics", Authorization="Bearer wrong").status == 403
    assert server.ask("/metrics", Authorization=f"Bearer {key}").status == 200
    assert server.ask("/metrics", X_Api_Key="team", X_Secret_Key=key).status == 200
    assert server.ask("/metrics", X_Api_Key="other", X_Secret_Key=key).status == 403
    assert '"client":"team"' in "".join(server.log)
    assert key not in "".join(server.log)


def test_a_key_is_replaced_by_a_new_one(tmp_path):
    path = tmp_path / "keys.json"
    first, other, second = new_key(path, "a"), new_key(path, "b"), new_key(path, "a")
    keys = Keys.read(path)
    assert [keys.name_of(key) for key in (first, other, second)] == [None, "b", "a"]
    assert all(key not in path.read_text() for key in (first, other, second))
    assert path.stat().st_mode & 0o077 == 0


def test_a_key_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--new-key", "team"]) == 0
    printed = capsys.readouterr()
    assert Keys.read(tmp_path / "keys.json").name_of(printed.out.strip()) == "team"
    assert "karat serve --keys keys.json" in printed.err


def test_other_machines_need_keys():
    with pytest.raises(BadArgument, match="only on this machine"):
        listen("0.0.0.0", 0, Settings())


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(BadArgument) as caught:
        listen("127.0.0.1", port := taken.getsockname()[1], Settings())
    assert caught.value.problem == f"cannot listen on 127.0.0.1:{port}: Address already in use"


@pytest.mark.parametrize("place", ["file", "file/runs"])
def test_a_store_that_is_no_folder(tmp_path, capsys, place):
    (tmp_path / "file").write_text("")
    assert main(["serve", "--store", str(tmp_path / place), "--port", "0"]) == 2
    assert f"--store {tmp_path / place} is no folder" in capsys.readouterr().err


def test_a_body_that_is_too_long():
    with served("--max-body", "0.001", ready=False) as server:
        assert server.ask("/healthz", b"x" * 1001, method="POST").status == 413
        assert server.ask("/healthz", b"x" * 1000, method="POST").status == 405


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(number):
    with served(ready=False) as server:
        server.process.send_signal(number)
        assert server.process.wait(10) == 0
