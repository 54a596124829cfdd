"""Models by name, custom objects and functions, Azure, and a missing openai package."""

from __future__ import annotations

import subprocess
import sys

import pytest

from karat.errors import BadArgument, KaratError, Unavailable
from karat.llm import Engine, Reply, find_model
from karat.llm.endpoint import Endpoint
from support.questions import questions, request, values
from support.server import Server


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpt-4o-mini", "openai(gpt-4o-mini, base_url=https://api.openai.com/v1, temperature=0)"),
        ("gpt-4o-mini(temperature=0.5)", "openai(gpt-4o-mini, base_url=https://api.openai.com/v1, temperature=0.5)"),
        ("o3(temperature=none)", "openai(o3, base_url=https://api.openai.com/v1, temperature=none)"),
        (
            "openai(org/Model-7B:free, base_url=http://localhost:8000/v1/, top_p=0.9, seed=1, price=(1, 2))",
            "openai(org/Model-7B:free, base_url=http://localhost:8000/v1, seed=1, temperature=0, top_p=0.9)",
        ),
        ("org/model", "openai(org/model, base_url=https://api.openai.com/v1, temperature=0)"),
        (
            "azure(mine, base_url=https://x.openai.azure.com)",
            "azure(mine, base_url=https://x.openai.azure.com, api_version=2024-10-21, temperature=0)",
        ),
    ],
)
def test_names(text, name):
    found = find_model(text)
    assert found.name == repr(found) == name
    assert find_model(name).name == name


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("", "which model"),
        ("openai", "which model"),
        ("openai()", "which model"),
        ("openai(4)", "which model"),
        ("opnai(gpt-4o)", "openai"),
        ("gpt-4o(temprature=0)", "Did you mean temperature"),
        ("gpt-4o(base_url=localhost)", "not an address"),
        ("azure(mine)", "needs an endpoint"),
        ("gpt-4o(price=cheap)", "two numbers"),
        ("gpt-4o(extra=more)", "a dict"),
        (Endpoint, "not a class"),
        (3, "not a model"),
        (lambda messages, schema: {}, "async function"),
    ],
)
def test_values_that_are_no_model(wanted, words):
    with pytest.raises(KaratError, match=words):
        find_model(wanted)


def test_the_environment_may_name_the_endpoint(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert "base_url=http://localhost:1/v1" in find_model("m").name


def test_azure_speaks_its_own_dialect(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k" * 8)
    with Server() as server:
        model = f"azure(mine, base_url=http://127.0.0.1:{server.port}, api_version=2025-01-01)"
        assert values(Engine(model, cache=None).ask(questions(2))) == ["q0", "q1"]
    [call, _] = server.calls
    assert call.path == "/openai/deployments/mine/chat/completions?api-version=2025-01-01"
    assert call.headers["api-key"] == "k" * 8


@pytest.mark.parametrize("kind", ["openai", "azure"])
def test_later_calls_are_like_the_first_which_the_package_makes(monkeypatch, kind):
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, "k" * 8)
    with Server() as server:
        base = server.url if kind == "openai" else f"http://127.0.0.1:{server.port}"
        model = f"{kind}(mine, base_url={base}, seed=7)"
        Engine(model, cache=None, concurrency=1).ask([request("ä" * size) for size in (1, 2, 30)])
    first, *rest = ({**call.headers, "content-length": ""} for call in server.calls)
    assert len(rest) == 2
    assert all(headers == first for headers in rest)
    assert "x-stainless-retry-count" in first  # which only the package sends
    assert {call.path for call in server.calls} == {server.calls[0].path}
    assert [call.text for call in server.calls] == ["ä" * size for size in (1, 2, 30)]
    assert len({tuple(call.body) for call in server.calls}) == 1


def test_a_client_with_its_own_headers_sends_them_in_every_call():
    import openai

    with Server() as server:
        own = {"authorization": "Bearer mine", "x-team": "search"}
        client = openai.AsyncOpenAI(api_key="other", base_url=server.url, default_headers=own)
        Engine(Endpoint("m", client=client), cache=None, concurrency=1).ask(questions(3))
    assert [{name: call.headers.get(name) for name in own} for call in server.calls] == [own] * 3


def test_the_client_does_not_retry():
    from support.server import Act

    with Server(lambda call: Act(status=500)) as server:
        Engine(server.model(), cache=None, retries=0).ask([request("x")])
        assert server.count == 1


def test_an_object_with_the_protocol():
    class Mine:
        name = "mine"
        opened = closed = 0

        async def __aenter__(self):
            self.opened += 1

        async def __aexit__(self, *_):
            self.closed += 1

        async def complete(self, messages, schema):
            assert self.opened > self.closed
            return Reply({"said": "good"}, 1, 1)

    model = Mine()
    assert find_model(model).name == "mine"
    assert values(Engine(model, cache=None).ask(questions(3))) == ["good"] * 3
    assert (model.opened, model.closed) == (1, 1)


def test_the_answers_of_any_model_must_follow_the_schema():
    class Odd:
        name = "odd"

        async def complete(self, messages, schema):
            return Reply({"other": 1}, 1, 1)

    found = values(Engine(Odd(), cache=None, retries=0).ask([request("x")]))
    assert found == ["answer has no said (1 call)"]


def test_the_name_of_a_function_depends_on_its_code():
    def made(model, other=None):
        async def ask(messages, schema):
            return {"said": model}

        async def tell(messages, schema):
            return {"said": model + "!"}

        return tell if other else ask

    names = [find_model(made(*given)).name for given in [("a",), ("a",), ("b",), ("a", 1)]]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert names[0].startswith("function(")

    async def named(messages, schema):
        return {}

    named.name = "my-model-1"  # type: ignore[attr-defined]
    assert find_model(named).name == "function(my-model-1)"

    class Callable:
        async def __call__(self, messages, schema):
            return {"said": "good"}

    with pytest.raises(BadArgument, match="needs a name"):
        find_model(Callable())
    called = Callable()
    called.name = "x"  # type: ignore[attr-defined]
    assert values(Engine(called, cache=None).ask([request("a")])) == ["good"]


def test_a_function_cannot_change_the_request():
    async def ask(messages, schema):
        messages[0]["content"] = "changed"
        messages.clear()
        return {"said": "good"}

    asked = request("x")
    Engine(ask, cache=None).ask([asked])
    assert asked.messages == [{"role": "user", "content": "x"}]


def test_without_the_client(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(Unavailable, match="openai") as caught:
        Engine("openai(m, base_url=http://127.0.0.1:9)", cache=None).ask([request("x")])
    assert caught.value.hint == "pip install openai"


def test_the_client_is_loaded_when_it_is_needed():
    code = "import sys; from karat.llm import Engine; Engine('m', cache=None); print('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
