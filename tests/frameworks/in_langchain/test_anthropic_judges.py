"""Clients of the anthropic package as judges of ragas' metrics, against a local server."""

from __future__ import annotations

import asyncio
import json

import anthropic
import pytest

from karat.compat.ragas.llms import llm_factory
from karat.compat.ragas.metrics.collections import ContextRecall
from karat.errors import Unavailable
from support.in_words import spoken
from support.server import Act, Server

KEY = "unusual-secret-0123456789"
ROW = {
    "user_input": "What happened?",
    "retrieved_contexts": ["the tram goes far", "rain fell in Leeds today"],
    "reference": "rain fell in Leeds. It snowed.",
}


def script(call):
    if "refuse me" in str(call.body):
        return Act(status=401, content=f"bad key {KEY}")
    prompt = "\n\n".join([call.body["system"], *(message["content"] for message in call.body["messages"])])
    said = {
        "id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": spoken(prompt)}], "usage": {"input_tokens": 100, "output_tokens": 10},
    }  # fmt: skip
    return Act(body=json.dumps(said).encode())


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("kind", [anthropic.AsyncAnthropic, anthropic.Anthropic])
def test_clients_judge(kind):
    with Server(script) as server:
        client = kind(base_url=f"http://127.0.0.1:{server.port}", api_key=KEY, max_retries=0)
        llm = llm_factory("claude-haiku", provider="anthropic", client=client, system_prompt="Be strict.")
        metric = ContextRecall(llm=llm, cache=None)
        assert [metric.score(**ROW), asyncio.run(metric.ascore(**ROW))] == [0.5, 0.5]
        assert server.calls[0].path == "/v1/messages"
        assert any(KEY in value for value in server.calls[0].headers.values())
        assert server.calls[0].body["model"] == "claude-haiku"
        assert "Be strict." in server.calls[0].body["system"]
        with pytest.raises(Unavailable, match="401") as error:
            metric.score(**{**ROW, "user_input": "refuse me"})
        assert KEY not in f"{error.value} {llm!r}"
