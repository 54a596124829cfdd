"""Errors of client libraries as faults."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from karat.llm.faults import MAX_WAIT, fault_of, retry_after


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry-after": "2.5"}, 2.5, 2.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5, 1.5),
        ({"retry-after": "86400"}, MAX_WAIT, MAX_WAIT),
        ({"retry-after": "inf"}, MAX_WAIT, MAX_WAIT),
        ({"retry-after": str(10**9)}, MAX_WAIT, MAX_WAIT),
        ({"retry-after": "9" * 5000}, MAX_WAIT, MAX_WAIT),
        ({"retry-after": 10**30}, MAX_WAIT, MAX_WAIT),
        ({"retry-after-ms": "1e300"}, MAX_WAIT, MAX_WAIT),
        ({"retry-after": "-1e400"}, 0, 0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}, MAX_WAIT, MAX_WAIT),
        ({"retry-after": "-3"}, 0, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
        ({"retry-after": "Wed, 21 Oct 2999 07:28:00 GMT"}, MAX_WAIT, MAX_WAIT),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}, 0, 0),
    ],
)
def test_retry_after(headers, low, high):
    found = retry_after(headers)
    assert found is not None
    assert low <= found <= high


def test_retry_after_a_date():
    soon = datetime.now(UTC) + timedelta(seconds=40)
    assert 1 <= retry_after({"retry-after": format_datetime(soon, usegmt=True)}) <= 40


@pytest.mark.parametrize(
    "text",
    [
        None,
        [],
        {},
        b"\xff",
        "Wed, 21 Oct 99999999999999999999 07:28:00 GMT",
        "",
        "soon",
        "nan",
        "12 parsecs",
        "Wed, 99 Oct 2015 07:28:00 GMT",
        "\ud800",
    ],
)
def test_invalid_retry_after(text):
    assert retry_after({"retry-after": text}) is None


class ClientResponseError(Exception):  # as aiohttp's
    status = 503


class HTTPError(Exception):  # as that of requests
    response = SimpleNamespace(status_code=429, headers={"retry-after": "3"})


class ReadTimeout(Exception):  # as httpx's
    pass


class ServerDisconnectedConnectionError(Exception):
    pass


def test_errors_of_other_clients():
    assert fault_of(ClientResponseError()).overload
    assert fault_of(HTTPError()).wait == 3
    assert fault_of(ReadTimeout()).paid
    assert fault_of(ServerDisconnectedConnectionError()).retry
    assert fault_of(ConnectionRefusedError()).unreached
    assert not fault_of(ValueError("x")).retry
