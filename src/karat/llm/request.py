"""Requests: framed texts go in, an answer that follows a JSON schema comes out.

Texts of other people stand in frames: they are data for the model, never instructions. Schemas use a part of JSON
Schema that every endpoint can enforce; answers are checked against it again here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from karat.errors import BadArgument


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    `version` names the prompt, and whatever else must not share an answer (such as the second of three repeats).
    `check` raises `BadAnswer` for an answer that breaks the rules; what it returns becomes the answer's value.
    `stored` returns the part of an answer that is cached, which must have the same value.
    `implied` returns other requests that an answer answers as well, with their answers, which are cached, too.
    """

    messages: list[dict[str, str]]
    schema: dict[str, Any]
    check: Callable[[dict[str, Any]], object]
    version: str
    stored: Callable[[dict[str, Any]], dict[str, Any]] = dict
    implied: Callable[[dict[str, Any]], Sequence[tuple[Request, dict[str, Any]]]] = lambda answer: ()

    def key(self, model: str) -> str:
        """The cache key: a digest of model, prompt version, schema and messages."""
        whole = json.dumps([model, self.version, self.schema, self.messages], sort_keys=True)
        return sha256(whole.encode()).hexdigest()

    def value(self, answer: dict[str, Any]) -> object:
        """The value of an answer that follows the schema and passes the check."""
        follow(answer, self.schema)
        return self.check(answer)


class Answer(NamedTuple):
    """An answer that passed its check, and the tokens paid for it, now or when it was cached."""

    value: Any
    cached: bool
    prompt_tokens: int
    completion_tokens: int


class Failure(NamedTuple):
    """A request without an answer, and the cause."""

    cause: str


T = TypeVar("T")


class Step(NamedTuple):
    """Requests of a job that can be made at once, and requests like those of its later steps, for estimates."""

    requests: Sequence[Request]
    upcoming: Callable[[], Sequence[Request]] = tuple


Steps: TypeAlias = Generator[Step, list[Answer | Failure], T]
"""A function that yields steps, receives the answers to each, and returns the result."""


class Job(Generic[T]):
    """Requests that are worth their price only together, such as all requests about one query."""

    result: T
    """The value that the steps returned; set at the end."""

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps
        self._step: Step | None = None
        self._started = False
        self._keys: list[str] | None = None
        self.free = True
        """True if no call was needed so far: all answers were cached."""
        self.refused = ""
        """The reason why the job was not started or not finished: the budget is used up, or the run was interrupted."""

    @property
    def step(self) -> Step | None:
        """The current step; None at the end."""
        if not self._started:
            self._started = True
            self.answer(None)
        return self._step

    def keys(self, model: str) -> list[str]:
        """The cache keys of the requests of the current step, whose schemas are checked."""
        if self._keys is None:
            requests = self.step.requests if self.step else ()
            for request in requests:
                check_schema(request.schema)
            self._keys = [request.key(model) for request in requests]
        return self._keys

    def answer(self, answers: list[Answer | Failure] | None) -> None:
        """Go on to the next step with the answers to this one."""
        self._keys = None
        try:
            self._step = self._steps.send(answers)  # type: ignore[arg-type]  # None starts it
        except StopIteration as end:
            self._step, self.result = None, end.value

    def refuse(self, reason: str) -> None:
        """End the job: all further requests fail for this reason."""
        while self.step is not None:
            self.refused = reason
            self.answer([Failure(reason)] * len(self.step.requests))


class Usage(NamedTuple):
    """The tokens of a call as somebody else reports them, which may be anything; None if they are unknown."""

    prompt: object = None
    completion: object = None
    size: int = 0
    """The bytes of the answer, for an estimate."""


_UNKNOWN = Usage()


class BadAnswer(Exception):
    """An answer that breaks the rules; another call may return a better one."""

    def __init__(self, cause: str, *, paid: Usage = _UNKNOWN) -> None:
        super().__init__(cause)
        self.paid = paid
        """The tokens of prompt and answer, which are paid nevertheless."""


_BYTES_PER_TOKEN = 4


def rough_tokens(size: int, margin: float = 1.0) -> int:
    """The number of tokens in this many bytes: one per 4 bytes, as in English, times a safety margin.

    Other scripts have fewer bytes per token: 4/3 covers most of them, 2 covers all common ones.
    """
    return int(size * margin / _BYTES_PER_TOKEN)


def request_size(messages: list[dict[str, str]], schema: dict[str, Any]) -> int:
    """The number of bytes that a request sends."""
    texts = sum(len(text.encode("utf-8", "replace")) for message in messages for text in message.values())
    return texts + len(json.dumps(schema))


# Frames

_MARKER_LENGTH = 16
# What chat templates put between the turns of a conversation: some servers obey it inside a text as well. The rules
# are general, since every model has its own: `<|…|>`, `<a_b>`, `[UPPER]`, `[/…]`; names without such a mark are listed.
_GAP = r"\s{0,3}"
_TAGS = (
    r"\w{0,40}_\w{0,40}|s|[bes]o[a-z]{1,2}|sep|cls|pad|unk|mask|think\w*|thought\w*|reasoning|reflection|scratchpad|tools?"
    r"|functions?|invoke|parameter|system|developer|user|assistant|human|model|observation|(?:unused|reserved|special)\d*"
)
_SHORT = "IMG|CLS|SEP|PAD|UNK|[BE]OS|EO[TM]|MASK|ARGS|SYS|USER"  # other short ones, such as [WHO], are ordinary
_CONTROL = re.compile(
    rf"""
    <(?=<<|\||{_GAP}/?{_GAP}\|[^|<>]{{1,60}}\|{_GAP}>)
    |<(?={_GAP}<{_GAP}/?{_GAP}\w{{1,40}}{_GAP}>{_GAP}>)
    |<(?={_GAP}/?{_GAP}(?:\w{{1,40}}:)?(?i:{_TAGS})(?:{_GAP}=[^<>]{{0,200}}|\s[^<>]{{0,200}})?{_GAP}/?>)
    |\[(?={_GAP}/{_GAP}[^\W\d]\w{{0,40}}{_GAP}\])
    |\[(?={_GAP}(?=[A-Za-z_]{{5,60}}{_GAP}\])[A-Za-z_]{{0,60}}[A-Z][A-Z_]|{_GAP}(?:{_SHORT}){_GAP}\])
    |\[(?={_GAP}(?i:inst|think|[gs]mask|tools?_\w{{1,40}}|\w{{1,40}}_tools?|system_prompt|call_id){_GAP}\])
    """,
    re.VERBOSE,
)
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_WIDE |= dict(zip(map(ord, "﹤﹥◁▷▁\u200b\u2060\ufeff\xad"), "<><>_    ", strict=True))  # type: ignore[arg-type]
"""Look-alikes that some tokenizers read as ASCII, and characters that they skip."""


def marker(texts: Iterable[str]) -> str:
    """A word that occurs in none of the texts and that their authors cannot predict; the same for the same texts.

    It is a digest of all texts: a text that contains it would have to contain a digest of itself.
    """
    every = list(texts)
    digest = sha256()
    for text in every:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    word = digest.hexdigest()[:_MARKER_LENGTH]
    while any(word in text for text in every):
        word = sha256(word.encode()).hexdigest()[:_MARKER_LENGTH]
    return word


def frame(label: str, text: str, mark: str | None = None) -> str:
    """The text between an opening and a closing line that it cannot contain itself.

    Use the same `mark`, the `marker` of all texts, for every frame of a request: then no text of the request can
    close the frame of another.
    """
    word = marker([label, text]) if mark is None else mark
    if word in text:
        raise BadArgument("the text contains the marker of its frame", hint="mark=marker(all texts of the request)")
    name = " ".join(disarm(label).replace(">", " ").split())
    return f"<<<{name} {word}>>>\n{disarm(text)}\n<<<end of {name} {word}>>>"


def frames(parts: Sequence[tuple[str, str]]) -> list[str]:
    """Several labelled texts of one request, framed with one marker."""
    word = marker([piece for part in parts for piece in part])
    return [frame(label, text, word) for label, text in parts]


def disarm(text: str) -> str:
    """The text with a space inserted into everything that looks like a marker or like a token of a chat template."""
    plain = text if text.isascii() else text.translate(_WIDE)
    parts, start = [], 0
    for found in _CONTROL.finditer(plain):
        parts.append(text[start : found.end()])
        start = found.end()
    return " ".join([*parts, text[start:]]) if parts else text


# Answers

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
_KNOWN = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "minimum", "maximum",
    "minItems", "maxItems", "minLength", "maxLength", "title", "description",
}  # fmt: skip
_MAX_OBJECTS = 100
"""Braces of an answer at which an object may begin."""


def read_answer(text: str) -> dict[str, Any]:
    """The JSON object that a model wrote: JSON and nothing else, or the only object in prose, fenced or not.

    An answer with several objects is refused: one of them may be quoted from a text.
    """
    import msgspec

    def decode(part: str) -> Any:
        return msgspec.json.decode(part.encode("utf-8", "surrogatepass"))

    try:
        answer = decode(text)
    except (ValueError, RecursionError):
        parts = _outermost(text)
        if len(parts) != 1:
            raise BadAnswer("the answer has several JSON objects" if parts else "the answer is not JSON") from None
        try:
            answer = decode(parts[0])
        except (ValueError, RecursionError):
            raise BadAnswer("the answer is not JSON") from None
    if not isinstance(answer, dict):
        raise BadAnswer("the answer is not an object")
    return answer


def _outermost(text: str) -> list[str]:
    """The JSON objects in a text that no other contains."""
    decoder, parts, start = json.JSONDecoder(), list[str](), text.find("{")
    for _ in range(_MAX_OBJECTS):
        if start < 0:
            return parts
        try:
            end = decoder.raw_decode(text, start)[1]
        except (ValueError, RecursionError):
            end = start + 1
        else:
            parts.append(text[start:end])
        start = text.find("{", end)
    raise BadAnswer("the answer has too many braces around its JSON")


def check_schema(schema: dict[str, Any]) -> None:
    """Refuse a schema with keywords or types that `follow` does not check."""
    if unknown := sorted(schema.keys() - _KNOWN):
        raise BadArgument(f"the schema uses {', '.join(unknown)}", hint=f"one of: {', '.join(sorted(_KNOWN))}")
    if others := [name for name in _types(schema) if name not in _TYPES]:
        raise BadArgument("the schema has an unknown type", got=others[0], hint=f"one of: {', '.join(_TYPES)}")
    for inner in (*schema.get("properties", {}).values(), schema.get("items", {})):
        if inner:
            check_schema(inner)


def follow(value: object, schema: dict[str, Any], path: str = "answer") -> None:
    """Refuse a value that breaks the schema, naming the place."""
    types = _types(schema)
    # True is an integer to Python, not to JSON.
    if types and not any(isinstance(value, _TYPES[t]) and (t == "boolean" or type(value) is not bool) for t in types):
        raise BadAnswer(f"{path} is not of type {' or '.join(types)}")
    if "enum" in schema and not any(_equal(value, allowed) for allowed in schema["enum"]):
        raise BadAnswer(f"{path} is none of the allowed values")
    if "const" in schema and not _equal(value, schema["const"]):
        raise BadAnswer(f"{path} is not the expected value")
    if isinstance(value, int | float):
        _check_range(value, schema.get("minimum"), schema.get("maximum"), path)
    elif isinstance(value, str):
        _check_range(len(value), schema.get("minLength"), schema.get("maxLength"), f"the length of {path}")
    elif isinstance(value, list):
        _check_range(len(value), schema.get("minItems"), schema.get("maxItems"), f"the length of {path}")
        for place, item in enumerate(value):
            follow(item, schema.get("items", {}), f"{path}[{place}]")
    elif isinstance(value, dict):
        _follow_object(value, schema, path)


def _types(schema: dict[str, Any]) -> list[str]:
    given = schema.get("type", [])
    return [given] if isinstance(given, str) else given


def _equal(value: object, other: object) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _check_range(number: float, low: float | None, high: float | None, path: str) -> None:
    if (low is not None and number < low) or (high is not None and number > high):
        raise BadAnswer(f"{path} is out of range")


def _follow_object(value: dict[str, Any], schema: dict[str, Any], path: str) -> None:
    properties = schema.get("properties", {})
    if missing := [name for name in schema.get("required", ()) if name not in value]:
        raise BadAnswer(f"{path} has no {missing[0]}")
    if schema.get("additionalProperties", True) is False and value.keys() - properties.keys():
        raise BadAnswer(f"{path} has fields that the schema does not allow")
    for name, inner in properties.items():
        if name in value:
            follow(value[name], inner, f"{path}.{name}")
