"""How ragas' metrics without an LLM are measured by karat: as ragas does, but for what cannot be measured."""

from __future__ import annotations

from dataclasses import replace

from karat.conventions import CONVENTIONS

_RAGAS = CONVENTIONS["ragas"]

WITHOUT_LLM = replace(_RAGAS, name="ragas-compat", exceptions={"precision": _RAGAS.exceptions["precision"]})
"""Without references and without anything retrieved ragas' context precision is 0, all its other metrics undefined."""
