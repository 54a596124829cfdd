"""kill -9 while runs are stored: no acknowledged run is lost, and none is half written."""

from __future__ import annotations

import os
import signal
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread

import pytest

import karat
from karat._internal.output import delete_leftovers
from karat.web.store import Store
from support.served import served
from support.waiting import wait_until

BODY = {"samples": [{"id": i, "retrieved": ["a", "b"], "gold": ["b"]} for i in range(500)], "metrics": "rr"}


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_every_acknowledged_run_is_there_and_whole(tmp_path):
    acknowledged, over = [], Event()

    def store(server):
        while not over.is_set():
            try:
                acknowledged.append(server.ask("/v1/evaluate", BODY | {"store": "run"}).json["id"])
            except (OSError, HTTPException, ValueError):  # the server is gone
                return

    with served("--store", tmp_path) as server:
        threads = [Thread(target=store, args=(server,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(acknowledged) >= 10)
        pid = server.process.pid
        workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in (pid, *map(int, workers)):
            os.kill(one, signal.SIGKILL)
        over.set()
        for thread in threads:
            thread.join(30)
    places = Store(str(tmp_path)).places()
    assert set(acknowledged) <= {place.id for place in places}
    assert {karat.load(place.path).mean["rr"] for place in places} == {0.5}


def test_temporary_files_of_killed_servers_are_deleted(tmp_path):
    old, new, other = (tmp_path / name for name in (f".a.{'0' * 16}.tmp", f".b.{'1' * 16}.tmp", ".c.tmp"))
    for path in (old, new, other):
        path.write_bytes(b"PAR1")
    for path in (old, other):
        os.utime(path, (0, 0))
    delete_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == [new, other]
