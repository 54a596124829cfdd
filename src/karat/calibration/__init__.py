"""Calibration: what a judge says beside what people say, and a mean that is corrected by the difference."""

from __future__ import annotations

from karat.calibration.calibrating import Calibration, calibrate
from karat.calibration.confusion import Agreement
from karat.calibration.correction import Corrected
from karat.calibration.figures import Figure

__all__ = ["Agreement", "Calibration", "Corrected", "Figure", "calibrate"]
