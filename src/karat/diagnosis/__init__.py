"""Diagnosis: why gold items were missed, measured, and what follows from the numbers."""

from karat.diagnosis.diagnosing import Diagnosis, diagnose
from karat.diagnosis.finding import CAUSES, Miss

__all__ = ["CAUSES", "Diagnosis", "Miss", "diagnose"]
