"""Requests for the tests; run as a program, it sends them to a server and prints the results."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from karat.llm import Answer, BadAnswer, Engine, Request

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"said": {"type": "string"}},
    "required": ["said"],
    "additionalProperties": False,
}


def said(answer: dict[str, Any]) -> object:
    if answer["said"] == "forbidden":
        raise BadAnswer("a word that is forbidden")
    return answer["said"]


def request(text: str, version: str = "v1", check=said) -> Request:
    return Request([{"role": "user", "content": text}], SCHEMA, check, version)


def questions(count: int) -> list[Request]:
    return [request(f"q{place}") for place in range(count)]


def values(results) -> list[Any]:
    return [result.value if isinstance(result, Answer) else result.cause for result in results]


if __name__ == "__main__":  # the port, the cache, the number of questions, how many at once
    signal.signal(signal.SIGINT, signal.default_int_handler)  # some who start the tests have it ignored
    port, cache, count, concurrency = sys.argv[1:]
    engine = Engine(f"openai(m, base_url=http://127.0.0.1:{port}/v1)", cache=cache, concurrency=int(concurrency))
    found = engine.ask(questions(int(count)))
    reported = {"values": values(found), "spent": engine.spent._asdict(), "interrupted": engine.interrupted}
    sys.stdout.write(json.dumps(reported) + "\n")
