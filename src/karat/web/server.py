"""The server, separate from its application: a socket, and an end that lets running requests finish."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from shlex import quote
from shutil import which

from karat._internal.output import Terminated
from karat.errors import BadArgument, Unavailable
from karat.web.settings import Settings

_GRACE = 5
"""Seconds beyond the limit of an evaluation in which running requests may finish."""


def listen(host: str, port: int, settings: Settings) -> socket.socket:
    """A socket at the address; port 0 takes a free one. Other machines may ask only with keys."""
    if settings.keys is None and not is_loopback(host):
        problem = "without keys, karat answers only on this machine"
        raise BadArgument(problem, got=host, hint="--keys keys.json, or --host 127.0.0.1")
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=512
        )
    except OverflowError as error:
        raise BadArgument("a port is a number from 0 to 65535", got=port) from error
    except OSError as error:
        hint = "--port 0" if 0 < port < 65535 else None
        cause = str(error.strerror or error).partition(" (")[0]  # the rest repeats the address
        raise BadArgument(f"cannot listen on {host}:{port}: {cause}", hint=hint) from error


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the address."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _pip() -> str:
    """The command that installs into the environment of this process, which the pip of the shell need not do."""
    found, own = which("pip"), Path(sys.executable)
    return "pip" if found is not None and Path(found).parent == own.parent else f"{quote(str(own))} -m pip"


def serve(at: socket.socket, settings: Settings, started: Callable[[], None]) -> None:
    """Serve until a signal comes: then no request is accepted, running ones finish, and the workers end."""
    try:
        import uvicorn

        from karat.web.application import application
        from karat.web.heads import LimitedHeads
        from karat.web.log import Handler, Log
    except ImportError as error:
        hint = f"{_pip()} install litestar uvicorn httptools"
        raise Unavailable(f"karat {settings.command} needs the extra web", hint=hint) from error
    log = Log(faults_only=settings.view is not None)
    logging.basicConfig(handlers=[Handler(log)], level=logging.WARNING, force=True)
    config = uvicorn.Config(
        application(settings, log), http=LimitedHeads, ws="none", log_config=None, access_log=False,
        server_header=False, date_header=False, proxy_headers=False, lifespan="on",
        timeout_graceful_shutdown=int(settings.limits.seconds) + _GRACE, timeout_keep_alive=30,
    )  # fmt: skip
    with suppress(KeyboardInterrupt, Terminated):
        started()
        sys.stdout.flush()
        uvicorn.Server(config).run([at])
