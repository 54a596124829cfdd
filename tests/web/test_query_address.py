"""Addresses of a query: the list that they lead through is never too long for a server."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest

from karat.web.view.query_address import QueryAddress, query_href


def read(href):
    return QueryAddress.read(dict(parse_qsl(urlsplit(href).query, keep_blank_values=True)))


@pytest.mark.parametrize("query", ["q1", "", "a,b", "a%2Cb", "#?&=/", "Wer fährt wohin?", "\n"])
def test_every_id_comes_back(query):
    list_of = ("q0", query, "q2") if query else ("q0", "q2")
    found = read(query_href(["a" * 24], query, list_of))
    assert found == QueryAddress(("a" * 24,), query, among=list_of)


def test_of_a_long_list_the_neighbours_are_in_the_address():
    queries = [f"Как мне отменить подписку номер {i}?" for i in range(100)]
    for place in (0, 1, 50, 98, 99):
        href = query_href(["a" * 24], queries[place], queries)
        among = read(href).among
        assert len(href) < 4_000
        assert len(among) > 3
        assert queries[place] in among
        first = queries.index(among[0])
        assert list(among) == queries[first : first + len(among)]
        assert first < place or place == 0
        assert first + len(among) - 1 > place or place == 99


def test_ids_that_are_too_long_for_any_list():
    queries = ["x" * 2_000, "y" * 2_000]
    assert read(query_href(["a"], queries[0], queries)).among == ()
