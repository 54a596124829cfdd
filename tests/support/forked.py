"""Runs of `karat` in a fork of a process that has karat loaded: as a new process, without half a second of imports.

`python -m support.forked SOCKET` is that process. It is single-threaded and has computed nothing, so that a fork of it
is safe: Polars starts its threads only when they are needed.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_MOST = 2**20
"""The longest request in bytes: the arguments, the folder and the environment."""


def run_karat(*arguments, text=False, input=None, env=None, cwd=None):  # noqa: A002  # as in subprocess.run
    """`subprocess.run(["karat", …], capture_output=True)`, in a fork."""
    given = input.encode() if isinstance(input, str) else input or b""
    request = {"arguments": [*map(str, arguments)], "env": dict(env or os.environ), "cwd": str(cwd or Path.cwd())}
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(given)
        stdin.seek(0)
        streams = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
        socket.send_fds(_server(os.getpid()), [json.dumps(request).encode()], streams)
        code = int(_server(os.getpid()).recv(64))
        stdout.seek(0)
        stderr.seek(0)
        written = [stream.read() for stream in (stdout, stderr)]
    return subprocess.CompletedProcess(["karat"], code, *([one.decode() for one in written] if text else written))


@cache
def _server(process):
    """The connection to the server of this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server = subprocess.Popen(
        [sys.executable, "-m", "support.forked", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


def _serve(connection):
    """Answer requests with exit codes until the other end is closed."""
    while True:
        request, streams, _, _ = socket.recv_fds(connection, _MOST, 3)
        if not request:
            return
        if (child := os.fork()) == 0:
            connection.close()
            _become_karat(json.loads(request), streams)
        for stream in streams:
            os.close(stream)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.send(str(code).encode())


def _become_karat(request, streams):
    """Run the command line in this process, and end it."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["karat", *request["arguments"]]
    sys.path[:] = [folder for folder in sys.path if folder not in {"", request["cwd"]}]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding=request["env"].get("PYTHONIOENCODING", "utf-8"))
    code: object = 1
    try:
        from karat.cli import main

        code = main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001  # printed as the interpreter does
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    import numpy as np  # noqa: F401
    import polars as pl  # noqa: F401

    import karat.cli.analyze
    import karat.cli.evaluate
    import karat.pipeline  # noqa: F401

    _serve(socket.socket(fileno=int(sys.argv[1])))
