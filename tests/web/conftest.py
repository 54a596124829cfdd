"""Servers for the tests: one without keys and with a store, shared by all tests of a process."""

from __future__ import annotations

import pytest

from support.served import served


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """The folder of the shared server."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="session")
def server(store):
    with served("--store", store) as running:
        yield running


@pytest.fixture(scope="session")
def locked(tmp_path_factory):
    """A server with a key, and the key."""
    from karat.web.access_keys import new_key

    path = tmp_path_factory.mktemp("keys") / "keys.json"
    key = new_key(path, "team")
    with served("--keys", path) as running:
        yield running, key
