"""A client of the openai package as a model: its address and its key, neither of which is shown or kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.errors import BadArgument, Unavailable
from karat.llm.endpoint import Endpoint
from karat.llm.protocol import Fault


def of_client(model: str, client: Any, sampling: Mapping[str, Any]) -> ClientModel:
    """The model behind a client, synchronous or not."""
    address, key = getattr(client, "base_url", None), getattr(client, "api_key", None)
    kind = type(client).__name__
    if "Azure" in kind:
        hint = '"azure(NAME, base_url=https://…)" as the model; the key comes from AZURE_OPENAI_API_KEY'
        raise BadArgument("a client of Azure is not taken over", got=kind, hint=hint)
    if address is None or not isinstance(key, str):
        hint = "openai.AsyncOpenAI(), with base_url= for any endpoint that speaks the same protocol"
        raise BadArgument("the client is not one of the openai package", got=kind, hint=hint)
    return ClientModel(model, client, **sampling)


class ClientModel(Endpoint):
    """An endpoint reached with the key of a client, over connections of its own: a client's belong to its loop."""

    def __init__(self, model: str, client: Any, **sampling: Any) -> None:
        super().__init__(model, base_url=str(client.base_url), **sampling)
        self._client = client

    def _open(self) -> Any:
        try:
            import openai
        except ImportError:
            raise Unavailable("asking a model needs the openai package", hint="pip install 'karat[llm]'") from None
        own = self._client
        headers = dict(getattr(own, "_custom_headers", None) or {})
        return openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=own.api_key,
            organization=getattr(own, "organization", None),
            project=getattr(own, "project", None),
            default_headers=headers,
            max_retries=0,
        )

    def _fault(self, error: Exception, *, in_words: bool) -> Fault:
        fault = super()._fault(error, in_words=in_words)
        if fault.halt is not None:
            fault.halt = fault.halt.replace(f"; it is read from {self.key_env}", "; it is that of the client")
        if self._client.api_key in str(fault):
            fault.args = (str(fault).replace(self._client.api_key, "[secret]"),)
        return fault
