"""Rankings with scores → fused scores: reciprocal rank fusion, the comb family, Borda and others."""

from __future__ import annotations

from karat.fusion.candidates import Candidates
from karat.fusion.methods import FUSIONS, Fuser, check_weights, parse_fuser

__all__ = ["FUSIONS", "Candidates", "Fuser", "check_weights", "parse_fuser"]
