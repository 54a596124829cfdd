"""A canary key passes through every kind of failure and must appear nowhere."""

from __future__ import annotations

import json
import logging
import traceback
from base64 import b64encode, urlsafe_b64encode
from html import escape
from time import monotonic
from urllib.parse import quote

import pytest

import karat
from karat.cli import main
from karat.errors import KaratError, NotJudged
from karat.llm import Cache, Endpoint, Engine, Reply, find_model
from karat.llm.secrets import Secrets
from llm.test_engine import TROUBLES
from support import scripted
from support.questions import questions, request, values
from support.scripted import kind_of
from support.server import Act, Server, echo

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


KEY = 'k"ey/4f+1d\\é0c8e77-äz'
SPELLED = {
    "plain": KEY,
    "in a URL": quote(KEY, safe=""),
    "in a URL, in lower case": quote(KEY, safe="").lower(),
    "in a URL, twice": quote(quote(KEY, safe="")),
    "every byte in a URL": "".join(f"%{byte:02X}" for byte in KEY.encode()),
    "as JSON": json.dumps(KEY)[1:-1],
    "as JSON, twice": json.dumps(json.dumps(KEY)[1:-1])[1:-1],
    "every character as JSON": "".join(f"\\u{ord(char):04X}" for char in KEY),
    "as HTML": escape(KEY),
    "as HTML, twice": escape(escape(KEY)),
    "every character as HTML": "".join(f"&#{ord(char)};" for char in KEY),
    "every character as HTML, in hex": "".join(f"&#x{ord(char):04X};" for char in KEY),
    "hex": KEY.encode().hex(),
    **{f"base64 after {n} characters": b64encode(b"x" * n + KEY.encode()).decode() for n in range(4)},
    "base64 for URLs": urlsafe_b64encode(KEY.encode()).decode(),
    "base64 of a header": b64encode(f"Authorization: Bearer {KEY} and more".encode()).decode(),
    "upper case": KEY.upper(),
}


@pytest.mark.parametrize("spelled", SPELLED.values(), ids=SPELLED)
def test_a_secret_is_found_in_any_usual_spelling(spelled):
    secrets = Secrets([KEY])
    for text in (spelled, f"before {spelled} after"):
        shown = secrets.message(text), secrets.clean({text: [text]})
        assert all("[secret]" in str(one) and "4f" not in str(one) for one in shown)


def test_words_that_happen_to_be_keys_stay_in_answers(monkeypatch):
    monkeypatch.setenv("KEYBOARD_LAYOUT", "germany")
    said = {"said": "ollama in Germany, sk-learn, Bearer of news, http://me@host"}
    assert Secrets(["ollama", "none", ""]).clean(said) == said


def test_a_long_key_and_a_long_answer_take_no_time():
    key = "".join(chr(33 + number * 7 % 90) for number in range(4000))
    secrets = Secrets([key])
    texts = [key[:3999] * 20, "\\" * 500_000, key[0] * 500_000, "%" * 500_000]
    began = monotonic()
    assert [secrets.clean(text) for text in texts] == texts
    assert monotonic() - began < 20  # it takes less than a second; a quadratic search would take hours


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "MINE"])
def test_an_endpoint_that_echoes_the_key_gets_it_into_no_file(variable, monkeypatch, tmp_path, capsys, caplog):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv(variable, CANARY)
    caplog.set_level(logging.DEBUG, "karat")

    def script(call):
        told = json.loads(scripted.script(call).content)
        token = call.headers["authorization"].removeprefix("Bearer ")
        if kind_of(call.body["response_format"]["json_schema"]["schema"]) == "extract":
            told["claims"].append(f"the key is {token}")
        for one in told["claims"]:
            if isinstance(one, dict):
                one["reason"] = f"{token}, {quote(token)}, {b64encode(token.encode()).decode()} " + "x" * 1000
        return Act(status=500, content=token) if "second" in call.text else Act(content=json.dumps(told))

    samples = [
        {"query": name, "answer": f"{name} thing.", "retrieved": [{"text": f"{name} thing"}]}
        for name in ("first", "second", "third")
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    with Server(script) as server:
        judge = karat.Claims(server.model(key_env=variable), backoff=0, retries=1)
        run = karat.evaluate(tmp_path / "s.jsonl", "recall@1", judge=judge)
    run.save(tmp_path / "run.parquet")
    for command in (["show"], ["diagnose"], ["report", "-o", str(tmp_path / "r.html")]):
        assert main([command[0], str(tmp_path / "run.parquet"), *command[1:]]) == 0
    assert main(["cache", "export"]) == 0
    output = capsys.readouterr()
    seen = [str(run), run.table.write_json(), judge.usage(), output.out, output.err, caplog.text]
    seen += [file.read_bytes().decode("latin-1") for file in tmp_path.rglob("*") if file.is_file()]
    assert any("[secret]" in text for text in seen[-5:])
    forms = (CANARY, quote(CANARY), b64encode(CANARY.encode()).decode(), "x" * 301)
    assert all(form not in text for text in seen for form in forms)
    assert max(len(why) for why in run.all_hits.why) <= 300


def test_an_old_cache_with_a_key_is_exported_and_read_without_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with Server() as server:
        cache, name = Cache(tmp_path / "c"), find_model(server.model()).name
        cache.put(request("x").key(name), name, "v1", Reply({"said": CANARY}, 1, 1))
        assert Engine(server.model(), cache=tmp_path / "c").ask([request("x")])[0].value == "[secret]"
    assert main(["cache", "export", "--cache", str(tmp_path / "c")]) == 0
    assert CANARY not in capsys.readouterr().out


def test_header_values_of_a_client_are_secrets():
    openai = pytest.importorskip("openai")
    with Server(
        lambda call: Act(content=json.dumps({"said": call.headers["x-api-key"] + call.headers["x-team"]}))
    ) as server:
        headers = {"X-Api-Key": CANARY, "X-Team": "searching"}
        client = openai.AsyncOpenAI(base_url=server.url, api_key="none", default_headers=headers)
        [found] = values(Engine(Endpoint("m", client=client), cache=None).ask([request("x")]))
    assert found == "[secret]searching"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("where", ["port", "host", "scheme", "relative", "invalid", "user"])
def test_redirects_to_elsewhere_are_refused(status, where, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with Server() as other, Server() as server:
        target = {
            "port": f"{other.url}/chat/completions?key={CANARY}",
            "host": f"http://localhost:{server.port}/v1/chat/completions",
            "scheme": f"https://127.0.0.1:{server.port}/v1/chat/completions",
            "invalid": "http://[",
            "user": f"http://{CANARY}:{CANARY}@localhost:{server.port}/v1",
            "relative": f"//127.0.0.1:{other.port}/v1/chat/completions",
        }[where]
        server.script = lambda call: Act(status=status, headers={"location": target})
        with pytest.raises(NotJudged, match=rf"redirects \({status}\), which is refused: to ") as error:
            Engine(server.model(), cache=None).ask([request("x")])
        assert (other.count, server.count) == (0, 1)
        assert CANARY not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("status", [307, 308])
def test_redirects_within_an_address_are_followed(status):
    def script(call):
        return echo(call) if call.path.endswith("/") else Act(status=status, headers={"location": f"{call.path}/"})

    with Server(script) as server:
        assert values(Engine(server.model(), cache=None).ask([request("x")])) == ["x"]
        server.script = lambda call: Act(status=status, headers={"location": call.path})
        [found] = values(Engine(server.model(), cache=None, retries=0).ask([request("x")]))
    assert found == "the connection was lost (1 call)"
    assert server.count <= 7


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
        f"openai(m, base_url=http://user:{CANARY}@127.0.0.1/v1",
        f"openai(m, base_ur=http://user:{CANARY}@127.0.0.1/v1)",
        f"http://user:{CANARY}@127.0.0.1/v1",
    ],
)
def test_a_key_in_a_name_is_refused_and_not_quoted(text):
    with pytest.raises(KaratError, match=r"keys|key_env") as caught:
        find_model(text)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "judge",
    [
        "relevance(openai(m, base_url=http://user:{}@h/v1)",
        "relevance(m, base_url=http://user:{}@h/v1, base_url=x)",
        "http://user:{}@h/v1",
        "relevance(m, base_url=ftp://user:{}@h)",
        "relevance(m, base_url=user:{}@h/v1)",
        "relevance(m, base_url=http://user:{}@h/v1)",
    ],
)
def test_a_password_in_a_judge_is_not_quoted(judge):
    with pytest.raises(KaratError) as caught:
        karat.evaluate([], judge=judge.format(CANARY))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(KaratError, match="OPENAI_API_KEY is not set"):
        Engine("gpt-4o-mini", cache=None).ask([request("x")])


def test_keys_are_redacted():
    assert Secrets().message("key sk-abcd1234*** and Bearer abc at http://me:pw@host/ api_key=xyz\nend") == (
        "key [secret] and [secret] at http://[secret]host/ api_key=[secret] end"
    )
    assert len(Secrets().message("x" * 1000)) <= 240


def test_white_space_around_a_key_is_not_part_of_it():
    assert "mykey-abcdefghij" not in Secrets(["mykey-abcdefghij "]).clean("it is mykey-abcdefghij.")
