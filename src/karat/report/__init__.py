"""Results → text: one module per class of result, each with `terminal`, `markdown`, `html` and `data`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from karat._internal.result import Result


def render(result: Result, form: str, **options: Any) -> Any:
    """Render a result: `form` is the name of a function in the module of its class, such as "markdown"."""
    kind = next(base for base in type(result).__mro__ if Result in base.__bases__)
    return getattr(import_module(f"karat.report.{kind.__name__.lower()}"), form)(result, **options)
