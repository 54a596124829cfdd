"""From whatever a call raised to what should be done about it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from karat._internal.display import sanitize
from karat.llm.model import Fault

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
# What a key looks like, for those that came from elsewhere than the environment; services show parts of them, too.
_LOOKS = re.compile(r"\bsk-[\w*.…-]{4,}|\bBearer\s+\S+|(?<=://)[^/\s@]+@|(?<=api[-_]key[=:])\s*\S+", re.IGNORECASE)
_SHORTEST = 6
_WIDTH = 240


def told(text: str, secrets: Iterable[str] = ()) -> str:
    """The text on one short line, with every value of the environment that may be a secret taken out."""
    hidden = {value for name, value in os.environ.items() if _NAMES.search(name)} | set(secrets)
    for value in sorted((value for value in hidden if len(value) >= _SHORTEST), key=len, reverse=True):
        text = text.replace(value, "[secret]")
    return sanitize(_LOOKS.sub("[secret]", text), _WIDTH)


MOST_WAIT = 60.0
"""No endpoint is waited for longer than this, in seconds, whatever it asks for."""

_AGAIN = {408, 409, 429}
_OVERLOAD = {408, 429, 503, 504, 529}
_HALT = {
    401: "the endpoint refuses the key (401)",
    402: "the endpoint wants to be paid first (402)",
    403: "the endpoint forbids it (403)",
    404: "the endpoint has no such model or address (404)",
}
_OUT_OF_MONEY = "insufficient_quota"  # sent as 429, although no waiting helps


def fault_of(error: Exception, secrets: Iterable[str] = ()) -> Fault:
    """What this error of a client library, or of a function of the user's, means; it is known by its shape.

    openai, httpx, aiohttp and requests all give their errors a status or name them after a timeout or a connection.
    """
    if isinstance(error, Fault):
        return error
    sources = (error, getattr(error, "response", None))
    statuses = [getattr(source, name, None) for source in sources for name in ("status_code", "status")]
    status = next((status for status in statuses if isinstance(status, int)), None)
    if status is not None:
        return _by_status(error, status, secrets)
    return _by_kind(error, secrets)


def retry_after(headers: Any) -> float | None:
    """How long the endpoint asks to be left alone, in seconds or until a date; never longer than a minute."""
    given = _seconds(headers.get("retry-after-ms"), 1e-3)
    given = _seconds(headers.get("retry-after"), 1.0) if given is None else given
    return None if given is None else min(max(given, 0.0), MOST_WAIT)


def message_of(error: Exception) -> str:
    """What the endpoint itself said about a refused call."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error")
        body = (inner if isinstance(inner, dict) else body).get("message", inner)
    return body if isinstance(body, str) else str(error)


def _by_status(error: Exception, status: int, secrets: Iterable[str]) -> Fault:
    if status in _HALT:  # what the endpoint says here may quote the key
        return Fault(_HALT[status], halt=_HALT[status])
    if getattr(error, "code", None) == _OUT_OF_MONEY:
        return Fault("the account has no money left (429)", halt="the account has no money left (429)")
    again = status in _AGAIN or status >= 500
    headers = getattr(getattr(error, "response", None), "headers", None)
    return Fault(
        told(f"the endpoint answered {status}: {message_of(error)}", secrets),
        again=again,
        overload=status in _OVERLOAD,
        # "Retry at once" is no plan against overload; the backoff is.
        wait=(retry_after(headers) or None) if again and headers is not None else None,
    )


def _by_kind(error: Exception, secrets: Iterable[str]) -> Fault:
    names = {kind.__name__ for kind in type(error).__mro__}
    if any("Timeout" in name for name in names):
        return Fault("the call timed out", again=True, overload=True, billed=True)
    if any(
        "ConnectError" in type(cause).__name__ or isinstance(cause, ConnectionRefusedError) for cause in _causes(error)
    ):
        return Fault("cannot connect to the endpoint", again=True, unreached=True)
    if isinstance(error, OSError) or any("Connection" in name or "Protocol" in name for name in names):
        return Fault("the connection was cut", again=True, billed=True)
    if any("DecodeError" in name or "ValidationError" in name for name in names):
        return Fault("the answer is not JSON of the form asked for", again=True)
    return Fault(told(f"{type(error).__name__}: {error}", secrets))


def _seconds(text: str | None, unit: float) -> float | None:
    if not text:
        return None
    try:
        seconds = float(text) * unit
    except ValueError:
        try:
            until = parsedate_to_datetime(text)
        except ValueError:
            return None
        # A date without a zone is Greenwich's.
        seconds = (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return seconds if seconds == seconds else None


def _causes(error: BaseException | None) -> list[BaseException]:
    """The error and those behind it."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
