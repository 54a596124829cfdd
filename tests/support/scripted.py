"""A scripted model for the judges: it answers by comparing words, and records its requests."""

from __future__ import annotations

import json
import re

from support.server import Act

_FRAME = re.compile(
    r"<<<(?P<label>[^>]*?) (?P<word>[0-9a-f]{16})>>>\n(?P<text>.*?)\n<<<end of (?P=label) (?P=word)>>>", re.DOTALL
)


def framed(content):
    """The texts of a request by their labels."""
    return {found["label"]: found["text"] for found in _FRAME.finditer(content)}


def kind_of(schema):
    properties = schema["properties"]
    for name, kind in (("passages", "grade"), ("entities", "entities"), ("rating", "rate")):
        if name in properties:
            return kind
    items = properties["claims"]["items"]
    if items["type"] == "string":
        return "extract"
    return "joint" if items["properties"]["claim"]["type"] == "string" else "attribute"


def words(text):
    return set(re.findall(r"\w+", text.lower()))


def sentences(text):
    return [s.strip() for s in text.split(".") if s.strip()]


def entities(text):
    """The words in capitals."""
    return list(dict.fromkeys(re.findall(r"\b[A-Z][A-Z]+\b", text)))


def rating(question, context):
    """2 if the context has all words of the question, 1 if it has some."""
    wanted = words(question)
    return 2 if wanted <= words(context) else int(bool(wanted & words(context)))


def answer(messages, schema):
    """Sentences are claims; a passage supports a claim if it has all of its words, and a part of it if it has half."""
    parts = framed(messages[-1]["content"])
    if kind_of(schema) == "entities":
        return {"entities": entities(parts["text"])}
    if kind_of(schema) == "rate":
        return {"rating": rating(parts["question"], parts["context"]), "reason": "by words"}
    passages = [text for label, text in parts.items() if label.startswith("passage ")]
    kind = kind_of(schema)
    if kind == "extract":
        return {"claims": sentences(parts["answer"])}
    if kind == "joint":
        parts |= {f"claim {n}": claim for n, claim in enumerate(sentences(parts["answer"]), 1)}
    if kind == "grade":
        wanted = words(next(text for label, text in parts.items() if label.startswith("what is wanted")))
        shares = [len(wanted & words(text)) / len(wanted) for text in passages]
        grades = [3 if share == 1 else 2 if share >= 0.5 else 1 if share else 0 for share in shares]
        return {"passages": [{"passage": n, "grade": g, "reason": f"grade {g}"} for n, g in enumerate(grades, 1)]}
    partial = kind == "attribute" and "parts" in schema["properties"]["claims"]["items"]["properties"]
    reported = []
    for number, claim in enumerate((text for label, text in parts.items() if label.startswith("claim ")), 1):
        found = [n for n, text in enumerate(passages, 1) if words(claim) <= words(text)]
        reported.append(
            {
                "claim": claim if kind == "joint" else number,
                "verdict": int(bool(found)),
                "passages": found,
                "together": 0,
                "reason": f"because {found}",
            }
        )
        if partial:
            parts_of = [
                n for n, text in enumerate(passages, 1) if 2 * len(words(claim) & words(text)) >= len(words(claim))
            ]
            parts_of = [n for n in parts_of if n not in found]
            reported[-1] |= {"verdict": 2 if found else int(bool(parts_of)), "parts": parts_of}
    return {"claims": reported}


def script(call):
    """The same over HTTP."""
    schema = call.body["response_format"]["json_schema"]["schema"]
    return Act(content=json.dumps(answer(call.body["messages"], schema)), usage=(100, 10))


class Scripted:
    """The same as a function; `change` may alter an answer."""

    name = "scripted"

    def __init__(self, change=lambda kind, reported: reported):
        self.sent = []
        self._change = change

    async def __call__(self, messages, schema):
        self.sent.append((messages, schema))
        return self._change(kind_of(schema), answer(messages, schema))

    def kinds(self):
        return [kind_of(schema) for _, schema in self.sent]
