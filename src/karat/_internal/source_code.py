"""The source of users' functions and objects, as bytes to compare; separate, because it loads `inspect`."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from inspect import getsource, getsourcefile, isclass, isroutine
from os import PathLike, fspath
from pathlib import Path
from types import CodeType
from typing import Any

from karat._internal.user_code import load_user_code


def code_of(place: Any, found: Any) -> bytes:
    """The code of an object that was found at a place: the files of a name; without a name, the source."""
    if not isinstance(place, str | PathLike):
        return source_of(found)
    name = fspath(place)
    files = {getattr(load_user_code(name if name.endswith(".py") else name.rpartition(":")[0]), "__file__", None)}
    with suppress(TypeError):
        files.add(getsourcefile(found))
    known = sorted({Path(file).resolve() for file in files if file is not None and Path(file).is_file()})
    return b"".join(file.read_bytes() for file in known) or source_of(found)


def source_of(given: Any) -> bytes:
    """The source of a function or class, or of the class of an object; its name if the source is unknown."""
    given = given.func if isinstance(given, partial) else given
    owner = str(getattr(getattr(given, "__self__", None), "name", ""))  # a tokenizer of many
    try:
        source = getsource(given if isroutine(given) or isclass(given) else type(given))
        return (owner + source).encode("utf-8", "backslashreplace")
    except (OSError, TypeError):
        code = getattr(given, "__code__", None)
        name = getattr(given, "__qualname__", type(given).__qualname__)
        return f"{owner}{name}".encode() + (b"" if code is None else _compiled(code))


def _compiled(code: CodeType) -> bytes:
    """The instructions of a function with its constants, those of functions inside it among them."""
    constants = [_compiled(one) if isinstance(one, CodeType) else repr(one).encode() for one in code.co_consts]
    return b"\0".join([code.co_code, *(name.encode() for name in code.co_names), *constants])
