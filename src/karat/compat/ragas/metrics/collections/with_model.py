"""Metrics that need their model when they are created; separate, as in `ragas.metrics` it may be set later."""

from __future__ import annotations

from typing import Any

from karat.compat.ragas.llms.models import model_of
from karat.compat.ragas.metrics.llm_metrics import (
    ByLLM,
    ContextPrecision,
    ContextPrecisionWithoutReference,
    ContextPrecisionWithReference,
    ContextRecall,
    ContextUtilization,
)
from karat.compat.ragas.metrics.whole_context import ContextEntityRecall, ContextRelevance, NoiseSensitivity
from karat.errors import BadArgument
from karat.llm import find_model


class WithModel(ByLLM):
    """A metric whose model is given and checked when it is created."""

    def __init__(self, llm: Any, name: str | None = None, **settings: Any) -> None:
        if llm is None:
            hint = 'llm=llm_factory("gpt-4o-mini", client=AsyncOpenAI())'
            raise BadArgument(f"{name or self.name} calls a language model: llm is None", hint=hint)
        find_model(model_of(llm))
        super().__init__(llm, name, **settings)


class RecallWithModel(WithModel, ContextRecall):
    """`ContextRecall`."""


class PrecisionWithModel(WithModel, ContextPrecision):
    """`ContextPrecision`."""


class ReferencePrecisionWithModel(WithModel, ContextPrecisionWithReference):
    """`ContextPrecisionWithReference`."""


class ResponsePrecisionWithModel(WithModel, ContextPrecisionWithoutReference):
    """`ContextPrecisionWithoutReference`."""


class UtilizationWithModel(WithModel, ContextUtilization):
    """`ContextUtilization`."""


class EntityRecallWithModel(WithModel, ContextEntityRecall):
    """`ContextEntityRecall`."""


class RelevanceWithModel(WithModel, ContextRelevance):
    """`ContextRelevance` under its newer name."""

    name = "context_relevance"


class NoiseWithModel(WithModel, NoiseSensitivity):
    """`NoiseSensitivity`."""
