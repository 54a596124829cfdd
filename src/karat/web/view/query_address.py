"""The address of the Query screen: the runs, the query, and the way to other queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote

from karat.web.view.address import compare_link, link, run_ids, whole_number, without_empty

ORDERS = {"": "worst first", "moved": "most changed first", "file": "as in the file"}
"""The orders in which the queries of the first run are gone through."""
_LONGEST = 1_500
"""Characters of the queries of a list in an address: those next to the query, of a long list."""


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
        order = arguments.get("order", "")
        return cls(
            run_ids(arguments),
            arguments.get("query", ""),
            whole_number(arguments.get("repeat", "")),
            order if order in ORDERS else "",
            tuple(unquote(own) for own in arguments.get("among", "").split(",") if own),
        )

    @property
    def href(self) -> str:
        """The address, as a link."""
        given = {
            "repeat": "" if self.repeat is None else str(self.repeat),
            "order": self.order,
            "among": self._neighbourhood(),
        }
        return link("/query", {"runs": ",".join(self.runs), "query": self.query, **without_empty(given)})

    def _neighbourhood(self) -> str:
        """The queries of the list around this one, as many as an address can hold."""
        own = [quote(one, safe="") for one in self.among]
        if len(words := ",".join(own)) <= _LONGEST or self.query not in self.among:
            return words if len(words) <= _LONGEST else ""
        first = last = self.among.index(self.query)
        size = len(own[first])
        while True:
            sides = [place for place in (first - 1, last + 1) if 0 <= place < len(own)]
            size += sum(len(own[place]) + 1 for place in sides)
            if size > _LONGEST:
                return ",".join(own[first : last + 1]) if last > first else ""
            first, last = max(first - 1, 0), min(last + 1, len(own) - 1)

    @property
    def compare(self) -> str:
        """The address of the comparison of the runs."""
        return compare_link(self.runs)


def query_href(runs: Sequence[str], query: str, among: Sequence[str] = (), order: str = "") -> str:
    """A link to a query in some runs, from which the queries of a list, or of an order, are gone through."""
    return QueryAddress(tuple(runs), query, order=order, among=tuple(among)).href
