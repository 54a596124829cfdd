"""Bodies of requests, read in a worker: JSON, samples in another form, or files. Nothing but their bytes is read."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from karat.errors import InputError, first_line
from karat.samples.loading import load_bytes
from karat.samples.sources import is_packed, unpacked
from karat.web.api.bodies import EvaluateRequest
from karat.web.api.operations import ARROW, ARROW_FILE, CSV, FORM, JSON, NDJSON, PARQUET
from karat.web.messages import Call
from karat.web.problems import Refused
from karat.web.settings import MEGABYTE, Limits

T = TypeVar("T")
_LINES = (NDJSON, "application/ndjson", "application/jsonl", "application/x-jsonlines")
_TABLES = {
    **dict.fromkeys(_LINES, ".jsonl"), PARQUET: ".parquet", "application/x-parquet": ".parquet",
    ARROW_FILE: ".arrow", ARROW: ".arrow", CSV: ".csv",
}  # fmt: skip
"""Types of bodies that are samples alone; their settings are in the address."""
_PLAIN = (JSON, "", "text/json", "text/plain", "application/x-www-form-urlencoded")
"""Types of bodies that are read as JSON; the last is what curl sends if nobody says what it is."""
_BEGINS = {b"{": NDJSON, b"PAR1": PARQUET, b"ARROW1": ARROW_FILE}
"""Beginnings of bodies whose type was most likely forgotten."""
_ENDINGS = {
    ".parquet": ".parquet", ".arrow": ".arrow", ".feather": ".arrow", ".csv": ".csv", ".tsv": ".tsv", ".json": ".json",
    ".jsonl": ".jsonl", ".ndjson": ".jsonl",
}  # fmt: skip
"""Endings of files in a form; of others the first line decides, as of TREC files."""
_DATA = ("samples", "retrieved", "gold")
_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,200})"|([^;\s"]{1,200}))', re.IGNORECASE)
_ATTRIBUTE = r'(?i:[;\s]){}="([^"\r\n]*)"'
_MOST_PARTS = 100
_EXPANSION = 10
"""The size of a compressed file when it is unpacked, in the largest size of a body."""


def read_evaluate(call: Call, body: bytes) -> EvaluateRequest:
    """The request of an evaluation."""
    kind = call.content_type.partition(";")[0].strip().lower()
    if kind == FORM:
        return _of_form(call, body)
    if kind in _TABLES:
        asked = _of_texts(call.arguments)
        asked.samples = _loaded("body", body, _TABLES[kind], "samples", asked, call.limits)
        return asked
    if kind not in _PLAIN:
        raise Refused(415, f'a body of type "{kind[:80]}" is not read', hint=", ".join((JSON, *_TABLES, FORM)))
    try:
        return read_request(call, body, EvaluateRequest)
    except Refused as error:
        likely = next((form for begin, form in _BEGINS.items() if body.startswith(begin)), None)
        if likely is not None and kind != JSON and (call.arguments or likely != NDJSON or b"\n{" in body):
            error.hint = f"Content-Type: {likely}"
        raise


def read_request(call: Call, body: bytes, kind: type[T]) -> T:
    """The record of a JSON body, which has all settings."""
    if call.arguments:
        raise Refused(400, "with a body of JSON, the settings are in the body", got=next(iter(call.arguments)))
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Refused(400, f"the body is not as expected: {error}", hint="GET /openapi.json") from error
    except msgspec.DecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise Refused(400, "the body is not UTF-8") from error


def _of_texts(arguments: Mapping[str, str]) -> EvaluateRequest:
    """The settings of an address or a form: those of the JSON body, fields as `retrieved=docs,gold=relevant`."""
    given: dict[str, Any] = dict(arguments)
    if "fields" in given:
        pairs = [pair.partition("=") for pair in given["fields"].split(",")]
        given["fields"] = {name.strip(): theirs.strip() for name, _, theirs in pairs}
    for name in ("skip_bad_rows", "table", "job", "store"):
        if given.get(name, "").lower() in ("true", "false"):
            given[name] = given[name].lower() == "true"
    if data := next((name for name in _DATA if name in given), None):
        raise Refused(400, f"{data} is in the body, not among the settings", hint=f"curl -F {data}=@{data}.jsonl")
    try:
        return msgspec.convert(given, EvaluateRequest)
    except msgspec.ValidationError as error:
        raise Refused(400, f"a setting is not as expected: {error}", hint="metrics=recall@5") from error


def _loaded(name: str, content: bytes, ending: str, side: str, asked: EvaluateRequest, limits: Limits) -> Any:
    if not content:
        raise InputError(f"{name} is empty")
    content = _unpacked(name, content, _EXPANSION * limits.body)
    return load_bytes(name, content, ending, side, skip_bad_rows=asked.skip_bad_rows)


def _unpacked(name: str, content: bytes, most: int) -> bytes:
    """The content, unpacked if it is compressed: Polars would do the same, whatever its size is then."""
    if not is_packed(content):
        return content
    try:
        found = unpacked(content, most)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name} cannot be unpacked: {first_line(error)}") from error
    if len(found) > most:
        raise Refused(
            413, f"{name} has more than {most / MEGABYTE:g} MB when it is unpacked", hint="several smaller requests"
        )
    if is_packed(found):
        raise InputError(f"{name} is compressed twice")
    return found


def _of_form(call: Call, body: bytes) -> EvaluateRequest:
    """The request of a form: each file is samples, results or gold; everything else is a setting."""
    settings: dict[str, str] = dict(call.arguments)
    files: dict[str, tuple[str, bytes]] = {}
    for name, file, content in _parts(call.content_type, body):
        if name in settings or name in files:
            raise Refused(400, f'the form has "{name[:80]}" twice')
        if file is None:
            settings[name] = content.decode("utf-8", "replace")
        elif name in _DATA:
            files[name] = (file, content)
        else:
            raise Refused(400, f'"{name[:80]}" is no file of an evaluation', hint=", ".join(_DATA))
    asked = _of_texts(settings)
    for name, (file, content) in files.items():
        ending = _ENDINGS.get(f".{file.rpartition('.')[2].lower()}", "")
        setattr(asked, name, _loaded(name, content, ending, name, asked, call.limits))
    return asked


def _parts(content_type: str, body: bytes) -> list[tuple[str, str | None, bytes]]:
    """The parts of a form: the name, the name of the file if it is one, and the content."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise Refused(400, "the type of a form names its boundary")
    line = b"\r\n--" + (found[1] or found[2]).encode("latin-1", "replace")
    parts = (b"\r\n" + body).split(line, _MOST_PARTS + 1)[1:]
    if len(parts) < 2 or len(parts) > _MOST_PARTS or not parts[-1].startswith(b"--"):
        raise Refused(400, f"the form does not end with its boundary, or has more than {_MOST_PARTS} parts")
    read = []
    for part in parts[:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        header = head.decode("utf-8", "replace")
        name, file = (re.search(_ATTRIBUTE.format(word), header) for word in ("name", "filename"))
        if name is None:
            raise Refused(400, "a part of the form has no name")
        read.append((name[1], None if file is None else file[1], content))
    return read
