"""Faults: what an error of a call means, and whether to retry, slow down or stop. Messages never contain a secret."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from karat.llm.request import Usage
from karat.llm.secrets import Secrets


@dataclass(eq=False)
class Fault(Exception):
    """A call that failed, and how to go on."""

    cause: str
    retry: bool = False
    """True if another call may succeed."""
    invalid: bool = False
    """True if the endpoint answered, and the answer cannot be used."""
    overload: bool = False
    """True if fewer simultaneous calls may avoid it."""
    unreached: bool = False
    """True if nothing listens at the endpoint."""
    at_once: bool = False
    """True if the next call is made in another way, without a pause."""
    wait: float | None = None
    """Seconds that the endpoint asked all clients to wait."""
    halt: str | None = None
    """The reason why every other request would fail, too."""
    paid: Usage | None = None
    """The tokens of prompt and answer, as far as known; None if the call is not charged."""

    def __str__(self) -> str:
        return self.cause


MAX_WAIT = 60.0
"""The longest wait in seconds, whatever Retry-After says."""
_RETRY = {408, 409, 429}
_OVERLOAD = {408, 429, 503, 504, 529}
_HALT = {
    401: "the endpoint rejected the key (401)",
    402: "the endpoint requires payment (402)",
    403: "the endpoint denied access (403)",
    404: "the endpoint has no such model or address (404)",
}
_NO_QUOTA = "the account has no quota left (429)"  # sent as 429, although waiting does not help


def fault_of(error: Exception, secrets: Secrets | None = None) -> Fault:
    """The meaning of an error of a client library or a custom function, recognized by its shape.

    openai, httpx, aiohttp and requests all give their errors a status, or name them after a timeout or a connection.
    """
    if fault := next((one for one in _chain(error) if isinstance(one, Fault)), None):
        return fault
    hidden = (secrets or Secrets()).and_those_of(error)
    sources = (error, getattr(error, "response", None))
    statuses = [getattr(source, name, None) for source in sources for name in ("status_code", "status")]
    status = next((status for status in statuses if isinstance(status, int)), None)
    return _by_kind(error, hidden) if status is None else _by_status(error, status, hidden)


def retry_after(headers: Any) -> float | None:
    """The seconds that the endpoint asks to wait, given in seconds or as a date; at most a minute."""
    seconds = _seconds(headers.get("retry-after-ms"), 1e-3)
    seconds = _seconds(headers.get("retry-after"), 1.0) if seconds is None else seconds
    return None if seconds is None else min(max(seconds, 0.0), MAX_WAIT)


def message_of(error: Exception) -> str:
    """The endpoint's own message about a failed call."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error")
        body = (inner if isinstance(inner, dict) else body).get("message", inner)
    return body if isinstance(body, str) else str(error)


def _by_status(error: Exception, status: int, secrets: Secrets) -> Fault:
    halt = _NO_QUOTA if getattr(error, "code", None) == "insufficient_quota" else _HALT.get(status)
    if halt:  # the endpoint's message may quote the key
        return Fault(halt, halt=halt)
    retry = status in _RETRY or status >= 500
    headers = getattr(getattr(error, "response", None), "headers", None)
    return Fault(
        secrets.message(f"the endpoint answered {status}: {message_of(error)}"),
        retry=retry,
        overload=status in _OVERLOAD,
        # "Retry at once" does not help against overload; the backoff does.
        wait=(retry_after(headers) or None) if retry and headers is not None else None,
    )


def _by_kind(error: Exception, secrets: Secrets) -> Fault:
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    if "Timeout" in names:
        return Fault("the call timed out", retry=True, overload=True, paid=Usage())
    if any("ConnectError" in type(e).__name__ or isinstance(e, ConnectionRefusedError) for e in _chain(error)):
        return Fault("cannot connect to the endpoint", retry=True, unreached=True)
    if isinstance(error, OSError) or "Connection" in names or "Protocol" in names:
        return Fault("the connection was lost", retry=True, paid=Usage())
    if "DecodeError" in names or "ValidationError" in names:
        return Fault("the answer is not JSON of the requested form", retry=True, invalid=True, paid=Usage())
    return Fault(secrets.message(f"{type(error).__name__}: {error}"))


def _seconds(given: object, unit: float) -> float | None:
    """The seconds in a header, which may be anything; None if it is neither a number nor a date."""
    try:
        seconds = float(str(given)) * unit
    except ValueError:
        try:
            until = parsedate_to_datetime(str(given))
            # A date without a time zone is in UTC.
            seconds = (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError, IndexError):
            return None
    return seconds if seconds == seconds else None


def _chain(error: BaseException | None) -> list[BaseException]:
    """The error and its causes."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
