"""ragas' language models: `llm_factory` for clients, wrappers for the models of frameworks."""

from __future__ import annotations

from karat.compat.ragas import absent
from karat.compat.ragas.llms.factory import InstructorBaseRagasLLM as InstructorBaseRagasLLM
from karat.compat.ragas.llms.factory import InstructorLLM as InstructorLLM
from karat.compat.ragas.llms.factory import LiteLLMStructuredLLM as LiteLLMStructuredLLM
from karat.compat.ragas.llms.factory import llm_factory as llm_factory
from karat.compat.ragas.llms.models import BaseRagasLLM as BaseRagasLLM
from karat.compat.ragas.llms.models import HaystackLLMWrapper as HaystackLLMWrapper
from karat.compat.ragas.llms.models import LangchainLLMWrapper as LangchainLLMWrapper
from karat.compat.ragas.llms.models import LlamaIndexLLMWrapper as LlamaIndexLLMWrapper

__getattr__ = absent.refuse(__name__)

__all__ = [
    "BaseRagasLLM", "HaystackLLMWrapper", "InstructorBaseRagasLLM", "InstructorLLM", "LangchainLLMWrapper",
    "LiteLLMStructuredLLM", "LlamaIndexLLMWrapper", "llm_factory",
]  # fmt: skip
