"""Python files of the user's: metrics, token counters."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from types import ModuleType
from typing import Any

from karat.errors import BadArgument, KaratError


def add_import(command: ArgumentParser) -> None:
    """Let a command take files with metrics of the user's own."""
    command.add_argument(
        "--import", dest="imports", metavar="FILE", action="append", default=[],
        help="a Python file or module with metrics of your own",
    )  # fmt: skip


def function(place: str) -> Any:
    """A function of the user's: `file.py:name` or `module:name`."""
    home, colon, name = place.rpartition(":")
    function = getattr(load(home), name, None) if colon else None
    if not callable(function):
        raise BadArgument(f"no function {place}", hint="file.py:name, or module:name")
    return function


def load(name: str) -> ModuleType:
    """Load a file or module of the user's, so that what it defines is known."""
    import importlib
    import importlib.util

    try:
        if not name.endswith(".py"):
            sys.path.insert(0, "")
            return importlib.import_module(name)
        known = f"karat_user_{Path(name).resolve().as_posix().encode().hex()}"
        if known in sys.modules:  # a file that is named twice is one module
            return sys.modules[known]
        spec = importlib.util.spec_from_file_location(known, name)
        if spec is None or spec.loader is None:
            raise ImportError(name)
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[spec.name]
            raise
    except KaratError:
        raise
    except (Exception, SystemExit) as error:
        raise BadArgument(f"cannot import {name}: {type(error).__name__}: {error}") from error
    return module
