"""Texts that look like secrets are hidden, and ordinary texts stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import karat
from karat.collection.http_endpoint import HttpEndpoint
from karat.llm.secrets import Secrets, hide

URL = "http://localhost:9/find?api_key=QWERTYSECRET99&q={query}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Basic Ym9iOmh1bnRlcjI=", "Authorization: [secret]"),
        ("{'Authorization': 'Basic Ym9iOmh1'}", "{'Authorization': '[secret]'}"),
        ('"authorization": "ApiKey abcDEF1=="', '"authorization": "[secret]"'),
        ("password=hunter2 token=abcdef123", "password=[secret] token=[secret]"),
        ("passwd: x, PGPASSWORD=abc", "passwd: [secret], PGPASSWORD=[secret]"),
        ("client_secret=QWERTYUIOP", "client_secret=[secret]"),
        ("invalid token: abc123def456", "invalid token: [secret]"),
        ("x-api-key: foo1234; apikey=bar", "x-api-key: [secret]; apikey=[secret]"),
        ("https://elastic:hunter2pw@host:9200/a", "https://[secret]host:9200/a"),
        ('{"api_key": "abc", "q": "{query}"}', '{"api_key": "[secret]", "q": "{query}"}'),
        ("http://h/x?key=a1&sig=b2&accessToken=c3&q=shoes", "http://h/x?key=[secret]&sig=[secret]&accessToken=[secret]&q=shoes"),
    ],
)  # fmt: skip
def test_hidden(text, shown):
    assert hide(text) == Secrets().message(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "token=3, max_tokens: 4096, token=128000",
        "Unexpected token: end of the text",
        "KeyError: 'token'",
        "the secret is missing; wrong password",
        "http://h/x?keyword=shoes&monkey=banana&q={query}",
        "http://h/x?api_key=$SEARCH_KEY&key={query}",
        "http://h/x?token=${TOKEN}&q={query}",
        "key=5, primary key=name",
    ],
)
def test_not_hidden(text):
    assert hide(text) == text


def test_a_key_in_the_url_of_an_endpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(HttpEndpoint, "ask", lambda self, query: ["a"])
    gold = [{"query": "one", "gold": ["a"]}]
    found = karat.collect(URL, gold, output="out.jsonl")
    assert found.target == "http://localhost:9/find?api_key=[secret]&q={query}"
    assert karat.collect(URL, gold, output="out.jsonl").calls == 0
    with pytest.raises(karat.BadArgument, match="with another target") as refused:
        karat.collect(URL.replace("99", "98"), gold, output="out.jsonl")
    request = json.dumps({"token": "QWERTYSECRET99", "query": "{query}"})
    endpoint = HttpEndpoint("http://localhost:9/find", k=20, request=request)
    karat.collect(endpoint, gold, output="other.jsonl")
    written = "".join(path.read_text() for path in Path().iterdir())
    assert "QWERTYSECRET" not in written + str(refused.value) + repr(found) + str(vars(found))


def test_errors_of_the_code_that_makes_a_retriever(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret = "cannot reach https://elastic:hunter2pw@host api_key=abc123 sk-abcdefgh12"

    def make(size=1):
        raise OSError(secret)

    (tmp_path / "mine.py").write_text(f"def make():\n    raise OSError({secret!r})\n")
    gold = [{"query": "one", "gold": ["a"]}]
    with pytest.raises(karat.KaratError) as of_sweep:
        karat.sweep(make, {"size": [1, 2]}, gold)
    with pytest.raises(karat.KaratError) as of_collect:
        karat.collect("mine.py:make", gold)
    for error in (of_sweep, of_collect):
        assert "cannot reach https://[secret]host" in str(error.value)
        assert not any(part in str(error.value) for part in ("hunter2", "abc123", "sk-abc"))
