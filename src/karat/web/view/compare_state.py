"""The state of the Compare screen, in its address: the runs, the metric, the filters of the queries, the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from karat.web.problems import Refused

WAYS = ("moved", "won", "lost", "tied", "all")
"""The results of a query in the second run: moved is won or lost."""
PARTS = ("metrics", "scores", "moved", "causes", "slices")
"""The sections of the screen that are fetched one by one if the runs are large."""
MOST_RUNS = 8
_DIGITS = 9


class CompareState(NamedTuple):
    """Everything that an address of the screen says; empty where it says nothing."""

    runs: tuple[str, ...]
    """Ids of the runs; the first is the baseline."""
    metric: str = ""
    b: str = ""
    """The id of the run whose queries and slices are compared with the baseline, if there are more than two runs."""
    way: str = WAYS[0]
    cause: str = ""
    before: str = ""
    after: str = ""
    """The labels of the scores in both runs: one circle of the scatter."""
    by: str = ""
    slice: str = ""
    page: int = 1
    allow_mismatch: bool = False
    show: str = ""
    """The section that is on the page at once, without a script."""

    def changed(self, **changes: object) -> CompareState:
        """The state with some changes, on the first page unless they name one."""
        return self._replace(**{"page": 1, **changes})  # type: ignore[arg-type]

    def address(self, section: str = "") -> str:
        """The address of this state, at a section of the page."""
        return f"/compare?{self.parameters()}" + (f"#{section}" if section else "")

    def part(self, part: str) -> str:
        """The address of one section."""
        return f"/compare/part/{part}?{self._replace(show='').parameters()}"

    def parameters(self) -> str:
        """The parameters that differ from those of a new screen."""
        usual = CompareState(self.runs)
        given = {"runs": ",".join(self.runs)}
        for name, value in self._asdict().items():
            if name != "runs" and value != getattr(usual, name):
                given[name] = "1" if value is True else str(value)
        return urlencode(given, safe=",@")

    def query(self, query_id: str) -> str:
        """The address of a query in all of the runs."""
        return "/query?" + urlencode({"runs": ",".join(self.runs), "query": query_id}, safe=",")


def read_state(arguments: Mapping[str, str]) -> CompareState:
    """The state of an address; runs that are named twice count once."""
    runs = tuple(dict.fromkeys(one for one in arguments.get("runs", "").split(",") if one))
    if len(runs) > MOST_RUNS:
        raise Refused(400, f"at most {MOST_RUNS} runs are shown side by side", got=f"{len(runs)} runs")
    page = arguments.get("page", "1")
    if not (page.isascii() and page.isdecimal()):
        raise Refused(400, "page is a whole number from 1", hint="page=1")
    texts = {name: arguments.get(name, "") for name in ("metric", "b", "cause", "before", "after", "by", "slice")}
    return CompareState(
        runs,
        **texts,
        way=_one_of(arguments.get("way", WAYS[0]), WAYS, "way"),
        page=max(int(page[:_DIGITS]), 1),
        allow_mismatch=arguments.get("allow_mismatch", "") in ("1", "true"),
        show=arguments.get("show", "") if arguments.get("show", "") in PARTS else "",
    )


def _one_of(given: str, known: Sequence[str], name: str) -> str:
    if given not in known:
        raise Refused(400, f"there is no {name} of this name", got=given[:80], hint=f"{name}={known[0]}")
    return given
