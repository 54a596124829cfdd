"""Users' Python code: a file or module with metrics, judges or a retriever, imported by its name."""

from __future__ import annotations

import sys
from inspect import isfunction
from types import ModuleType
from typing import Any

from karat.errors import BadArgument, KaratError, UnknownName, nearest


def user_function(place: str) -> Any:
    """A user's function: `file.py:name` or `module:name`."""
    home, colon, name = place.rpartition(":")
    function = getattr(load_user_code(home), name, None) if colon else None
    if not callable(function):
        raise BadArgument(f"no function {place}", hint="file.py:name, or module:name")
    return function


def user_object(place: str) -> Any:
    """A user's object: `file.py:name` or `module:name`; the name may have dots."""
    home, _, name = place.rpartition(":")
    found: Any = load_user_code(home)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            own = {one: value for one, value in getattr(found, "__dict__", {}).items() if not one.startswith("_")}
            functions = [one for one, value in own.items() if isfunction(value)]
            meant = f" Did you mean {close}?" if (close := nearest(name, own)) else ""
            hint = f"{home}:{close or functions[-1]}" if close or functions else None
            raise UnknownName(f'no "{name}" in {home}.{meant}', hint=hint) from None
    return found


def load_user_code(name: str) -> ModuleType:
    """Import a user's Python file or module, so that the metrics it defines are known."""
    try:
        return _load_file(name) if name.endswith(".py") else _load_module(name)
    except KaratError:
        raise
    except (Exception, SystemExit) as error:
        raise BadArgument(f"cannot import {name}: {type(error).__name__}: {error}") from error


def _load_module(name: str) -> ModuleType:
    """An installed module; one of the current folder has to be named as a file, since others there are not imported."""
    from importlib import import_module
    from pathlib import Path

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        file = Path(*name.split(".")).with_suffix(".py")
        if error.name and f"{name}.".startswith(f"{error.name}.") and file.is_file():
            raise BadArgument(f"no installed module {name}; a file is named by its path", hint=f"./{file}") from None
        raise


def _load_file(name: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    known = f"karat_user_{Path(name).resolve().as_posix().encode().hex()}"
    if known in sys.modules:  # a file that is named twice is one module
        return sys.modules[known]
    spec = spec_from_file_location(known, name)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = sys.modules[known] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[known]
        raise
    return module
