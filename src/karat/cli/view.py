"""`karat view`: the runs of a folder in the browser."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from karat._internal.writers import put
from karat.cli import argument, command, say
from karat.errors import BadArgument

if TYPE_CHECKING:
    from socket import socket

_PORT = 5273
_HOST = "127.0.0.1"
_SECONDS = 120.0
"""The time that a page may take."""
_PARQUET = b"PAR1"
"""The first bytes of a Parquet file."""


@command(
    "view", "look at runs in the browser: side by side, down to each query",
    argument("folder", metavar="FOLDER", nargs="?", type=Path, default=Path(),
             help="a folder with run files, also in folders below it; or one run file (default: this folder)"),
    argument("--port", type=int, help=f"0 takes a free one (default: {_PORT}, or a free one if it is taken)"),
    argument("--no-open", action="store_true", help="do not open a browser; the address is the first line"),
    examples=(
        ("karat view runs", "all runs in the folder runs, and those that are saved there later"),
        ("karat view --no-open --port 0", "print the address, for a browser that you open"),
    ),
    epilog="Only this machine, and only the browser with the printed address, can look.\n",
)  # fmt: skip
def view(options: Namespace) -> None:
    """Start the server, and open the browser."""
    from secrets import token_urlsafe

    from karat.web.server import serve
    from karat.web.settings import Limits, Settings

    folder, path = _folder(options.folder)
    at = listen_at(options.port)
    port, token, once = at.getsockname()[1], token_urlsafe(24), token_urlsafe(24)
    address = f"http://{_HOST}:{port}{path}?token="
    settings = Settings(view=folder, token=token, once=once, port=port, workers=2, limits=Limits(seconds=_SECONDS))

    def started() -> None:
        put(address + token)
        say(f"the runs below {folder}; Ctrl-C ends", error=True)
        if not options.no_open:
            Thread(target=open_browser, args=(address + once,), daemon=True).start()

    serve(at, settings, started)


def _folder(given: Path) -> tuple[Path, str]:
    """The folder, and the path of the first page: a run file is opened at once."""
    from karat.web.view.folder import id_of

    problem = "is no folder and no run file"
    try:
        found = given.resolve()
        if found.is_file():
            problem = _fault(found)
            if not problem:
                return found.parent, f"/run/{id_of(found.name)}"
        elif found.is_dir():
            if os.access(found, os.R_OK | os.X_OK):
                return found, "/"
            problem = "is a folder that karat may not read"
    except (OSError, ValueError) as error:
        raise BadArgument(f"{given} cannot be read: {error}", hint="karat view FOLDER") from error
    raise BadArgument(f"{given} {problem}", hint="karat view FOLDER")


def _fault(file: Path) -> str:
    """The reason why a file cannot be a run; empty for one that may be: if it is damaged, its page says so."""
    from karat.web.view.folder import ENDING

    if not file.name.endswith(ENDING):
        return f"is no run file: its name does not end with {ENDING}"
    if file.name.startswith("."):
        return "is hidden: its name begins with a dot"
    with file.open("rb") as opened:
        start = opened.read(len(_PARQUET))
    return "is no run file: it is not Parquet" if start and start != _PARQUET else ""


def listen_at(port: int | None) -> socket:
    """A socket at the port; without one, at the usual port, or at a free one if that is taken."""
    from karat.web.server import listen
    from karat.web.settings import Settings

    if port is not None:
        return listen(_HOST, port, Settings())
    try:
        return listen(_HOST, _PORT, Settings())
    except BadArgument:
        return listen(_HOST, 0, Settings())


def open_browser(address: str) -> None:
    """Open the browser, if there is a screen to open it on."""
    import webbrowser

    screen = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    if not screen or not webbrowser.open(address):
        say("no browser was found: open the address yourself", error=True)
