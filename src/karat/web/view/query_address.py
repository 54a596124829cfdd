"""The address of the screen of a query, separate from the screen: other screens link to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode

ORDERS = {"": "worst first", "moved": "most changed first", "file": "as in the file"}
"""The orders in which the queries of the first run are gone through."""
_AMONG = 200
"""Queries of a list that are in an address."""


class QueryAddress(NamedTuple):
    """Everything that the screen shows: the runs by their ids, the query, its repeat, and the way to other queries."""

    runs: tuple[str, ...]
    query: str
    repeat: int | None = None
    order: str = ""
    """A key of `ORDERS`."""
    among: tuple[str, ...] = ()
    """The ids of the queries of a list, which are then gone through in its order."""

    @classmethod
    def read(cls, arguments: dict[str, str]) -> QueryAddress:
        """The address that was asked for; what cannot be read is as if it was not given."""
        repeat, order = arguments.get("repeat", ""), arguments.get("order", "")
        return cls(
            tuple(filter(None, dict.fromkeys(arguments.get("runs", "").split(",")))),
            arguments.get("query", ""),
            int(repeat) if repeat.isascii() and repeat.isdecimal() and len(repeat) < 10 else None,
            order if order in ORDERS else "",
            tuple(unquote(own) for own in arguments.get("among", "").split(",") if own)[:_AMONG],
        )

    @property
    def href(self) -> str:
        """The address, as a link."""
        given = {
            "query": self.query,
            "repeat": "" if self.repeat is None else str(self.repeat),
            "order": self.order,
            "among": ",".join(quote(own, safe="") for own in self.among[:_AMONG]),
        }
        runs = {"runs": ",".join(self.runs)}
        return f"/query?{urlencode(runs | {name: text for name, text in given.items() if text}, safe=',')}"

    @property
    def compare(self) -> str:
        """The address of the comparison of the runs."""
        return f"/compare?runs={','.join(self.runs)}"


def query_href(runs: Sequence[str], query: str, among: Sequence[str] = (), order: str = "") -> str:
    """A link to a query in some runs, from which the queries of a list, or of an order, are gone through."""
    return QueryAddress(tuple(runs), query, order=order, among=tuple(among)).href
