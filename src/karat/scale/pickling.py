"""Plans as bytes for worker processes, with the files of the custom code that they refer to.

Pickle refers to custom judges, metrics and token counters by name. So a worker first loads the modules of these names.
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


class PickledPlan(NamedTuple):
    """A pickled plan."""

    content: bytes
    modules: dict[str, str | None]
    """The user's modules that it refers to, each with its file."""

    def load(self) -> Plan:
        """The plan, after loading the modules that it refers to."""
        for name, file in self.modules.items():
            _import(name, file)
        plan: Plan = pickle.loads(self.content)  # noqa: S301  # pickled by the parent process
        return plan


def pickle_plan(plan: Plan) -> PickledPlan:
    """Pickle a plan for a worker process."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        pickler.dump(plan)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadArgument(
            f"this judge, metric or token counter cannot be sent to a worker process: {first_line(error)}; "
            "expected a function or class at the top level of a file",
            hint="jobs=1",
        ) from error
    return PickledPlan(buffer.getvalue(), {name: _file(name) for name in sorted(pickler.modules)})


class _Pickler(pickle.Pickler):
    """A pickler that collects the modules of custom code."""

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


def _import(name: str, file: str | None) -> None:
    """Import a module by its name, or from its file if the name is not on the path."""
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
