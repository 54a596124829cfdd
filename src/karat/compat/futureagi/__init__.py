"""Future AGI's evaluator, offline: import `karat.compat.futureagi` instead of `fi.evals`; the calls stay the same."""

from karat.compat.futureagi.evaluator import Evaluator, evaluate
from karat.compat.futureagi.results import BatchRunResult, EvalResult, Execution
from karat.compat.futureagi.templates import CONTEXT_TEMPLATES, TEMPLATES, Template

__all__ = [
    "CONTEXT_TEMPLATES", "TEMPLATES", "BatchRunResult", "EvalResult", "Evaluator", "Execution", "Template", "evaluate"
]  # fmt: skip
