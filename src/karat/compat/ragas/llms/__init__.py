"""ragas' language models: `llm_factory` for clients, wrappers for the models of frameworks."""

from __future__ import annotations

from karat.compat.ragas.llms.models import llm_factory as llm_factory
