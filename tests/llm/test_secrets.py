"""A canary key passes through every kind of failure and must appear nowhere."""

from __future__ import annotations

import logging
import traceback

import pytest

from karat.cli import main
from karat.errors import KaratError
from karat.llm import Engine, find_model
from karat.llm.faults import redact
from llm.test_engine import TROUBLES
from support.questions import questions, request
from support.server import Act, Server

CANARY = "canary-4f1d0c8e77"

LEAKS = {
    **TROUBLES,
    "good": Act(content='{"said": "good"}'),
    **{
        f"{status} that quotes the key": Act(
            status=status, content=f"Incorrect API key provided: {CANARY}, Bearer {CANARY}"
        )
        for status in (400, 401, 402, 403, 404, 422, 429, 500)
    },
    "a quota that quotes the key": Act(status=429, finish="insufficient_quota", content=CANARY),
    "no response_format, says who": Act(status=400, content=f"response_format refused for {CANARY}"),
    "a parameter": Act(status=400, content=CANARY, refusal="temperature"),
}


@pytest.mark.parametrize("act", LEAKS.values(), ids=LEAKS)
@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "MINE"])
def test_a_key_appears_nowhere(act, variable, monkeypatch, tmp_path, caplog, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv(variable, CANARY)
    caplog.set_level(logging.DEBUG, "karat")
    caplog.set_level(logging.INFO)
    with Server(lambda call: act) as server:
        asked = Engine(server.model(key_env=variable), backoff=0, retries=1, timeout=0.2 if act.delay else 30)
        seen = [repr(asked), repr(asked.model), str(vars(asked.model)), str(vars(asked)), asked.model.name]
        try:
            seen.append(repr(asked.ask(questions(2))))
        except KaratError as error:
            seen += [str(error), repr(error), "".join(traceback.format_exception(error)), repr(error.__context__)]
        assert all(call.headers["authorization"] == f"Bearer {CANARY}" for call in server.calls)
    assert main(["cache", "export"]) == 0
    output = capsys.readouterr()
    seen += [caplog.text, output.out, output.err]
    seen += [file.read_bytes().decode("latin-1") for file in tmp_path.rglob("*") if file.is_file()]
    assert all(CANARY not in text for text in seen)


def test_a_function_that_leaks_its_key(monkeypatch, caplog):
    monkeypatch.setenv("MY_SERVICE_TOKEN", CANARY)

    async def ask(messages, schema):
        raise RuntimeError(f"no answer for {CANARY}")

    [failure] = Engine(ask, cache=None).ask([request("x")])
    assert failure.cause == "RuntimeError: no answer for [secret]"


@pytest.mark.parametrize(
    "text",
    [
        f"openai(m, api_key={CANARY})",
        f"openai(m, key={CANARY}",
        f"openai(m, base_url=http://user:{CANARY}@127.0.0.1/v1)",
        f"openai(m, base_url=http://127.0.0.1/v1?api-key={CANARY})",
    ],
)
def test_a_key_in_a_name_is_refused_and_not_quoted(text):
    with pytest.raises(KaratError, match=r"keys|key_env") as caught:
        find_model(text)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(KaratError, match="OPENAI_API_KEY is not set"):
        Engine("gpt-4o-mini", cache=None).ask([request("x")])


def test_keys_are_redacted():
    assert redact("key sk-abcd1234*** and Bearer abc at http://me:pw@host/ api_key=xyz\nend") == (
        "key [secret] and [secret] at http://[secret]host/ api_key=[secret] end"
    )
    assert len(redact("x" * 1000)) <= 240
