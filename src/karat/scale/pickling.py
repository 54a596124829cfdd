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

from karat.errors import BadArgument, KaratError, first_line
from karat.judges import Judge, find_judge
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
            f"this judge, metric or token counter cannot be sent to a worker process: {first_line(error)}",
            hint="define it by name (def, class) at the top level of a file; or jobs=1",
        ) from error
    return PickledPlan(buffer.getvalue(), {name: _file(name) for name in sorted(pickler.modules)})


class _Pickler(pickle.Pickler):
    """A pickler that collects the user's modules, and sends karat's own judges as their text."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.modules: set[str] = set()

    def reducer_override(self, thing: Any) -> Any:
        """How an object is pickled; most as usual."""
        if isinstance(thing, type | FunctionType):
            home = thing.__module__
            if home.partition(".")[0] not in {"karat", "builtins", "numpy", *sys.stdlib_module_names}:
                self.modules.add(home)
        elif type(thing).__module__.startswith("karat.judges.") and isinstance(thing, Judge) and _is_its_text(thing):
            return find_judge, (thing.name,)
        return NotImplemented


def _is_its_text(judge: Judge) -> bool:
    """True if the text of a judge says all of it; a custom function in it is not in the text."""
    try:
        same = find_judge(judge.name)
    except KaratError:
        return False
    ours, theirs = vars(judge), vars(same)
    return type(same) is type(judge) and all(_is_equal(ours[name], theirs.get(name)) for name in ours)


def _is_equal(a: Any, b: Any) -> bool:
    ours = isinstance(a, FunctionType) and isinstance(b, FunctionType) and a.__module__.startswith("karat.")
    return bool(a == b) or (ours and a.__qualname__ == b.__qualname__)


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
