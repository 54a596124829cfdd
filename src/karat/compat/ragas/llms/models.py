"""Language models for ragas' metrics: separate from the metrics, which only call them."""

from __future__ import annotations

from typing import Any

from karat.errors import BadArgument
from karat.llm import Model


def model_of(llm: Any) -> Any:
    """The model that karat's judges call, of anything that ragas accepts as `llm=`."""
    return llm


def llm_factory(model: str, provider: str = "openai", client: Any = None, **settings: Any) -> Model:
    """A language model for the metrics; nothing is called before a metric is computed.

    Address and key are those of the openai client; without one, both come from the environment.
    """
    from karat.llm.endpoint import SAMPLING, Endpoint

    sampling = {name: value for name, value in settings.items() if name in SAMPLING}
    if client is None and provider != "openai":
        hint = 'llm_factory(model, base_url="http://…")'
        raise BadArgument("without a client, only OpenAI-compatible endpoints are supported", got=provider, hint=hint)
    return Endpoint(model, base_url=settings.get("base_url"), client=client, **sampling)
