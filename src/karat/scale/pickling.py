"""Parcels: an order as bytes, with the files of the user's own code that it needs.

Judges, metrics and counters of the user's own travel by name, as Python's pickle has it; so that the other process
finds the names, it first loads the files that they are from.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import pickle
import sys
from types import FunctionType
from typing import Any, NamedTuple

from karat.errors import BadArgument, first_line
from karat.plan import Plan


class Parcel(NamedTuple):
    """An order, packed."""

    content: bytes
    modules: dict[str, str | None]
    """The user's modules that it names, each with its file."""

    def open(self) -> Plan:
        """The order, once everything that it names is known here."""
        for name, file in self.modules.items():
            _load(name, file)
        plan: Plan = pickle.loads(self.content)  # noqa: S301  # packed by the process that started this one
        return plan


def pack(plan: Plan) -> Parcel:
    """Pack an order; what cannot travel is told."""
    written = io.BytesIO()
    pickler = _Pickler(written, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        pickler.dump(plan)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadArgument(
            f"another process cannot be given this judge, metric or counter: {first_line(error)}",
            hint="define it by its name (def, class) at the top of a file; or jobs=1",
        ) from error
    return Parcel(written.getvalue(), {name: _file(name) for name in sorted(pickler.modules)})


class _Pickler(pickle.Pickler):
    """Notes the user-defined modules that are named."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.modules: set[str] = set()

    def reducer_override(self, thing: Any) -> Any:
        """Note the module of a class or function; it is pickled by name as usual."""
        if isinstance(thing, type | FunctionType):
            home = thing.__module__
            if home.partition(".")[0] not in {"karat", "builtins", "numpy", *sys.stdlib_module_names}:
                self.modules.add(home)
        return NotImplemented


def _file(name: str) -> str | None:
    return getattr(sys.modules.get(name), "__file__", None)


def _load(name: str, file: str | None) -> None:
    if name in sys.modules:
        return
    try:
        if importlib.util.find_spec(name) is not None or file is None:
            importlib.import_module(name)
            return
    except ImportError:
        if file is None:
            raise
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
