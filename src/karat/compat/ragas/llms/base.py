"""The language models under their path in ragas: separate, because `ragas.llms.base` is imported."""

from __future__ import annotations

from karat.compat.ragas.llms.factory import InstructorBaseRagasLLM, InstructorLLM, llm_factory
from karat.compat.ragas.llms.models import BaseRagasLLM, LangchainLLMWrapper, LlamaIndexLLMWrapper

__all__ = [
    "BaseRagasLLM", "InstructorBaseRagasLLM", "InstructorLLM", "LangchainLLMWrapper", "LlamaIndexLLMWrapper",
    "llm_factory",
]  # fmt: skip
