"""Errors as answers: problem details (RFC 9457), with karat's own sentence, what it got and what to try."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from traceback import walk_tb
from typing import Any

import msgspec

from karat._internal.writers import html_text
from karat.errors import BadArgument, InputError, KaratError, NotJudged, RunFileError, Unavailable, UnknownName
from karat.web.messages import Reply

_KARAT = str(Path(__file__).parents[1])
MEDIA_TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[KaratError], int], ...] = (
    (InputError, 422), (BadArgument, 400), (UnknownName, 400), (RunFileError, 422), (NotJudged, 422),
    (Unavailable, 501),
)  # fmt: skip
"""The status of each kind of error; the first that fits."""


_OVER_HTTP = {
    "karat metrics": "GET /v1/metrics",
    "karat judges": "GET /v1/judges",
    "karat show": "GET /v1/runs",
    "karat eval FILE -o main.parquet, then --baseline main.parquet":
        'POST /v1/evaluate with "store": "main", then "baseline": "main"',
    "--other RUN": '"other": "RUN"',
    "allow_mismatch=True, or --allow-mismatch, or --no-gold for the rankings alone": '"allow_mismatch": true',
    "gold=…, or --gold FILE, or karat compare A B without gold": '"gold": […]',
    "gold=…, or --gold FILE": '"gold": […]',
    "karat eval": "POST /v1/evaluate",
    "karat compare": "POST /v1/compare",
}  # fmt: skip
"""Advice for the command line, and the same for a request; longer texts before their parts."""


def over_http(text: str) -> str:
    """Advice, so that a client can follow it."""
    for command, request in _OVER_HTTP.items():
        text = text.replace(command, request)
    return text


class Refused(Exception):
    """A request that is answered by a problem."""

    fault: str | None = None
    """For the log: the fault of the server that is the cause, without any path."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        got: str | None = None,
        hint: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.got, self.hint, self.retry_after = status, detail, got, hint, retry_after


class Problem(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Problem details."""

    type: str = "about:blank"
    title: str
    """The words of the status."""
    status: int
    detail: str
    """One sentence."""
    got: str | None = None
    """The value that was given, shortened."""
    hint: str | None = None
    """A value to write instead."""
    instance: str | None = None
    """The id of the request, which is also in the log."""


def problem_of(error: BaseException) -> Problem:
    """The problem of an error; an unexpected error shows no details."""
    if isinstance(error, Refused):
        return _problem(error.status, error.detail, got=error.got, hint=error.hint)
    if isinstance(error, KaratError):
        status = next((status for kind, status in _STATUS if isinstance(error, kind)), 422)
        return _problem(status, error.problem, got=error.got, hint=error.hint and over_http(error.hint))
    if isinstance(error, MemoryError):
        return _problem(413, "the request needs more memory than the server has")
    return _problem(500, "karat failed on this request; the log of the server names the place")


def problem_reply(error: BaseException, **more: Any) -> tuple[Reply, bytes]:
    """The answer to a request that failed."""
    problem = problem_of(error)
    after = getattr(error, "retry_after", None)
    headers = {} if after is None else {"Retry-After": str(after)}
    fault = place_of(error) if problem.status == 500 else getattr(error, "fault", None)
    body = msgspec.json.encode(msgspec.structs.replace(problem, **more))
    return Reply(problem.status, MEDIA_TYPE, headers, fault=fault), body


def reply_to(
    error: BaseException, path: str, accept: str, instance: str, method: str = "POST", *, page: bool = False
) -> tuple[Reply, bytes]:
    """The answer to a request that failed, so that also Future AGI's clients show its words; as a page for browsers.

    Their TypeScript client shows an error in JSON as "[object Object]"; it accepts text, and says so. Their Python
    client looks for a failure only in `result` when it polls, whatever the status is; without one it goes on polling.
    """
    reply, body = problem_reply(error, instance=instance)
    if page and "text/html" in accept:
        return msgspec.structs.replace(reply, content_type="text/html"), _page(error).encode()
    if not path.startswith("/sdk/"):
        return reply, body
    words = sentence(error)
    if "text/plain" in accept:
        return msgspec.structs.replace(reply, content_type="text/plain"), words.encode()
    if method == "GET":
        result = {"eval_status": "failed", "error_message": words, "status": "failed", "message": words}
        return reply, msgspec.json.encode(msgspec.json.decode(body) | {"result": result})
    return reply, body


def sentence(error: BaseException) -> str:
    """An error on one line: the problem, what was given, and what to try."""
    problem = problem_of(error)
    if problem.detail.endswith("?"):  # it says already what to try
        return problem.detail
    more = [f"{word} {text}" for word, text in (("got", problem.got), ("try", problem.hint)) if text]
    return "; ".join([problem.detail.removesuffix("."), *more]) if more else problem.detail


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/assets/karat.css"><script src="/assets/theme.js"></script>
<title>{title} · karat</title></head>
<body class="screen-problem">
<header class="top"><a class="brand" href="/">karat</a></header><main><h1>{title}</h1><p>{words}</p>{back}</main></body>
</html>
"""
_HEADINGS = {
    403: "This page is not open to you",
    404: "There is nothing at this address",
    405: "This page can only be read",
    409: "The run has changed",
    422: "This cannot be read",
    500: "karat failed",
}
"""The headings of pages, by status."""
_BACK = '<p><a href="/">All runs</a></p>'


def _page(error: BaseException) -> str:
    """A problem as a page, for browsers, with a link to the runs for those who may see them."""
    problem = problem_of(error)
    title = _HEADINGS.get(problem.status, "This page cannot be shown")
    return _PAGE.format(title=title, words=html_text(sentence(error)), back="" if problem.status == 403 else _BACK)


def place_of(error: BaseException) -> str:
    """The kind of an error and the line it comes from, without its message, which may quote the data."""
    frames = [(trace.f_code.co_filename, line) for trace, line in walk_tb(error.__traceback__)]
    own = [one for one in frames if one[0].startswith(_KARAT)]  # a line of the standard library says little
    place = next((f" at {file}:{line}" for file, line in reversed(own or frames)), "")
    return f"{type(error).__name__}{place}"


def _problem(status: int, detail: str, *, got: str | None = None, hint: str | None = None) -> Problem:
    return Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, got=got, hint=hint)
