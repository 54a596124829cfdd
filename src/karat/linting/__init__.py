"""Linting: whether the test set itself is sound."""

from karat.linting.checking import Lint, lint
from karat.linting.problem import Problem

__all__ = ["Lint", "Problem", "lint"]
