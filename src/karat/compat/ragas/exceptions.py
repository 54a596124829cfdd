"""ragas' exceptions: the errors that karat raises in their place; separate, as `ragas.exceptions` is imported."""

from __future__ import annotations

from karat.errors import InputError as ValidationError
from karat.errors import KaratError as RagasError
from karat.errors import KaratError as RagasException
from karat.errors import Unavailable as ExceptionInRunner
from karat.errors import Unavailable as LLMDidNotFinishException
from karat.errors import Unavailable as RagasOutputParserException

__all__ = [
    "ExceptionInRunner", "LLMDidNotFinishException", "RagasError", "RagasException", "RagasOutputParserException",
    "ValidationError",
]  # fmt: skip
