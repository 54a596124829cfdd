"""Future AGI's evaluator, offline: import `karat.compat.futureagi` instead of `fi.evals`; the calls stay the same."""

import sys
from typing import Never

from karat.compat.futureagi.core import BatchResult, EvalResult, Turing, evaluate
from karat.compat.futureagi.evaluator import Evaluator, list_evaluations
from karat.compat.futureagi.execution import Execution, ExecutionError
from karat.compat.futureagi.left_out import refuse
from karat.compat.futureagi.templates import (
    CONTEXT_TEMPLATES,
    TEMPLATES,
    ChunkAttribution,
    ChunkUtilization,
    ContextRelevance,
    EvalTemplate,
    Template,
)
from karat.compat.futureagi.types import BatchRunResult

for _path in ("core.evaluate", "core.result"):
    sys.modules[f"{__name__}.{_path}"] = sys.modules[f"{__name__}.core"]

__all__ = [
    "CONTEXT_TEMPLATES", "TEMPLATES", "BatchResult", "BatchRunResult", "ChunkAttribution", "ChunkUtilization",
    "ContextRelevance", "EvalResult", "EvalTemplate", "Evaluator", "Execution", "ExecutionError", "Template", "Turing",
    "evaluate", "list_evaluations",
]  # fmt: skip


def __getattr__(name: str) -> Never:
    refuse(__name__, name)
