"""The log, one line of JSON per request without payload and key, and the counters for `/metrics`."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

import msgspec

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: the upper ends of the histogram."""
_LONGEST = 200
"""Characters of a path in the log."""


class Entry(msgspec.Struct, omit_defaults=True):
    """One request in the log."""

    time: str
    request: str
    """Its id, which the answer has in `X-Request-Id`."""
    method: str
    path: str
    status: int
    ms: float
    bytes_in: int
    bytes_out: int
    client: str
    """The name of the key, or the address."""
    fault: str | None = None


class Remark(msgspec.Struct):
    """A line of the log that is about the server, not about one request."""

    time: str
    message: str


class Log:
    """Writes the lines and counts them."""

    def __init__(self, file: TextIO | None = None, *, faults_only: bool = False) -> None:
        self._file = file or sys.stderr
        self._faults_only = faults_only
        self.requests: Counter[tuple[str, int]] = Counter()
        """By group of paths and status."""
        self._times: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()

    def add(self, entry: Entry, seconds: float) -> None:
        """Write and count a request."""
        entry.time = _now()
        entry.path, entry.ms = entry.path[:_LONGEST], round(seconds * 1000, 2)
        if entry.fault is not None or not self._faults_only:
            self._write(entry)
        group = group_of(entry.path)
        self.requests[group, entry.status] += 1
        self._seconds[group] += seconds  # type: ignore[assignment]
        for bucket in _BUCKETS:
            if seconds <= bucket:
                self._times[group, bucket] += 1

    def say(self, message: str) -> None:
        """Write a remark."""
        self._write(Remark(_now(), message))

    def _write(self, line: Entry | Remark) -> None:
        with suppress(OSError):  # nobody reads it any more
            self._file.write(msgspec.json.encode(line).decode() + "\n")
            self._file.flush()

    def counters(self) -> str:
        """The counters as Prometheus reads them."""
        lines = [
            "# HELP karat_requests_total Requests, by group of paths and status.",
            "# TYPE karat_requests_total counter",
        ]
        for (group, status), count in sorted(self.requests.items()):
            lines.append(f'karat_requests_total{{path="{group}",status="{status}"}} {count}')
        lines += [
            "# HELP karat_request_seconds Time from the first byte to the answer.",
            "# TYPE karat_request_seconds histogram",
        ]
        for group in sorted({group for group, _ in self.requests}):
            total = sum(count for (one, _), count in self.requests.items() if one == group)
            lines += [
                f'karat_request_seconds_bucket{{path="{group}",le="{b}"}} {self._times[group, b]}' for b in _BUCKETS
            ]
            lines += [
                f'karat_request_seconds_bucket{{path="{group}",le="+Inf"}} {total}',
                f'karat_request_seconds_sum{{path="{group}"}} {self._seconds[group]:.6f}',
                f'karat_request_seconds_count{{path="{group}"}} {total}',
            ]
        return "\n".join(lines) + "\n"


class Handler(logging.Handler):
    """Writes what libraries log in the form of all other lines: the first line of the message, and no traceback."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; of an error its kind, without its message, which may quote the data."""
        error = record.exc_info[1] if record.exc_info else None
        words = record.getMessage().strip().partition("\n")[0]
        self._log.say(words if error is None else f"{words}: {type(error).__name__}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


_GROUPS = (
    "/v1/evaluate", "/v1/compare", "/v1/gate", "/v1/diagnose", "/v1/runs", "/v1/jobs", "/v1/", "/sdk/", "/healthz",
    "/readyz", "/metrics",
)  # fmt: skip


def group_of(path: str) -> str:
    """The group of a path: there are few, whatever is requested."""
    return next((group for group in _GROUPS if path.startswith(group)), "other")
