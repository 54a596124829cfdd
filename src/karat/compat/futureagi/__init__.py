"""Future AGI's evaluator, offline: import `karat.compat.futureagi` instead of `fi.evals`; the calls stay the same."""

from karat.compat.futureagi.core import BatchResult, EvalResult, Turing, evaluate
from karat.compat.futureagi.evaluator import Evaluator, list_evaluations
from karat.compat.futureagi.execution import Execution, ExecutionError
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

__all__ = [
    "CONTEXT_TEMPLATES", "TEMPLATES", "BatchResult", "BatchRunResult", "ChunkAttribution", "ChunkUtilization",
    "ContextRelevance", "EvalResult", "EvalTemplate", "Evaluator", "Execution", "ExecutionError", "Template", "Turing",
    "evaluate", "list_evaluations",
]  # fmt: skip
