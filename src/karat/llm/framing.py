"""Frames around texts that are not to be trusted: data for the model, never an instruction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256

from karat.errors import BadArgument

_LENGTH = 16
# What chat templates put between the turns of a conversation; some servers heed it inside of a text as well.
_CONTROL = re.compile(
    r"<(?=\||｜|/?(?:s|bos|eos|start_of_turn|end_of_turn|system|user|assistant|human)>)|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS)\])"
    r"|<(?=</?SYS>>)|<(?=<<)",
    re.IGNORECASE,
)


def marker(texts: Iterable[str]) -> str:
    """A word that none of the texts holds and that their authors cannot foresee; the same for the same texts.

    It is a digest of all of them, so a text that should contain it would have to contain a digest of itself.
    """
    every = list(texts)
    digest = sha256()
    for text in every:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    word = digest.hexdigest()[:_LENGTH]
    while any(word in text for text in every):
        word = sha256(word.encode()).hexdigest()[:_LENGTH]
    return word


def frame(label: str, text: str, mark: str | None = None) -> str:
    """The text between an opening and a closing line that it cannot write itself.

    Give the same `mark`, made by `marker` of all texts, to every frame of a request: then no text of the request
    can close the frame of another.
    """
    word = marker([label, text]) if mark is None else mark
    if word in text:
        raise BadArgument("the text holds the marker of its frame", hint="mark=marker(all texts of the request)")
    name = " ".join(disarm(label).replace(">", " ").split())
    return f"<<<{name} {word}>>>\n{disarm(text)}\n<<<end of {name} {word}>>>"


def frames(parts: Sequence[tuple[str, str]]) -> list[str]:
    """Several labelled texts of one request, framed by one marker."""
    word = marker([piece for part in parts for piece in part])
    return [frame(label, text, word) for label, text in parts]


def disarm(text: str) -> str:
    """The text with a blank put into all that looks like a marker or like the end of a turn; the rest stays."""
    return _CONTROL.sub(lambda found: f"{found[0]} ", text)
