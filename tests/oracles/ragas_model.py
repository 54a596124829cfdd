"""A model for the prompts of ragas and of karat: both are answered by the words of the texts, by the same rules."""

from __future__ import annotations

import json
import re

from support.scripted import answer, entities, rating, sentences, words
from support.server import Act

_INPUT = re.compile(r"\ninput: (\{.*\})\nOutput: *$", re.DOTALL)
_RATED = re.compile(r"### Question: (.*)\n\n### Context: (.*)\n\nDo not try to explain", re.DOTALL)


def supported(statement, context):
    return int(words(statement) <= words(context))


def useful(wanted, context):
    """Half of the words, as a grade of 2 has in karat."""
    return int(2 * len(words(wanted) & words(context)) >= len(words(wanted)))


def in_ragas(text):
    """The answer to a prompt of ragas, which ends with its input as JSON."""
    if rated := _RATED.search(text):
        return rating(*rated.groups())
    given = json.loads(_INPUT.search(text)[1])
    if "user_input" in given:
        return {"rating": rating(given["user_input"], given["context"])}
    if "text" in given:
        return {"entities": entities(given["text"])}
    if "context" not in given:
        return {"statements": sentences(given["answer"])}
    statements = given.get("statements") or sentences(given["answer"])
    judged = [(one, supported(one, given["context"])) for one in statements]
    if "statements" in given:
        found = {"statements": [{"statement": one, "reason": "r", "verdict": verdict} for one, verdict in judged]}
    elif "classifications" in text:
        found = {"classifications": [{"statement": one, "reason": "r", "attributed": yes} for one, yes in judged]}
    else:
        found = {"reason": "r", "verdict": useful(given["answer"], given["context"])}
    return found


def script(call):
    """The name of the model says how it behaves."""
    kind = call.body["model"]
    if kind == "bad":
        return Act(status=400, content="no such thing")
    form = call.body.get("response_format") or {}
    schema = form.get("json_schema", {}).get("schema")
    text = call.body["messages"][-1]["content"]
    if schema is None and "\n<<<end of" in text:  # karat through a model of LangChain: the schema is in words
        found = re.search(r"JSON schema:\n(\{.*\})", call.body["messages"][0]["content"] + text, re.DOTALL)
        schema = json.JSONDecoder().raw_decode(found[1])[0]
    said = in_ragas(text) if schema is None else answer(call.body["messages"], schema)
    content = json.dumps(said)
    wrapped = {"prose": f"Of course! Here it is: {content} I hope it helps.", "fenced": f"So:\n```json\n{content}\n```"}
    return Act(content=wrapped.get(kind, content), delay=30 if kind == "slow" else 0)
