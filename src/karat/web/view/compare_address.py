"""The address of the Compare screen: the runs, the metric, the filters of the queries that moved, and their page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from karat.web.problems import Refused
from karat.web.view.address import count_of, link, run_ids
from karat.web.view.query_address import query_href

WAYS = ("moved", "won", "lost", "tied", "all")
"""The results of a query in the second run: moved is won or lost."""
PARTS = ("metrics", "scores", "moved", "causes", "slices")
"""The sections of the screen that are fetched one by one if the runs are large."""
MOST_RUNS = 8


class CompareAddress(NamedTuple):
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

    @classmethod
    def read(cls, arguments: Mapping[str, str]) -> CompareAddress:
        """The address that was asked for; refuse what the screen does not have."""
        runs = run_ids(arguments)
        if len(runs) > MOST_RUNS:
            raise Refused(400, f"at most {MOST_RUNS} runs are compared at once", got=f"{len(runs)} runs")
        texts = {name: arguments.get(name, "") for name in ("metric", "b", "cause", "before", "after", "by", "slice")}
        return cls(
            runs,
            **texts,
            way=_one_of(arguments.get("way", WAYS[0]), WAYS, "way"),
            page=count_of(arguments, "page"),
            allow_mismatch=arguments.get("allow_mismatch", "") in ("1", "true"),
            show=arguments.get("show", "") if arguments.get("show", "") in PARTS else "",
        )

    def changed(self, **changes: object) -> CompareAddress:
        """The state with some changes, on the first page unless they name one."""
        return self._replace(**{"page": 1, **changes})  # type: ignore[arg-type]

    def href(self, section: str = "") -> str:
        """The address, at a section of the page."""
        return link("/compare", self.parameters, section)

    def part(self, part: str) -> str:
        """The address of one section."""
        return link(f"/compare/part/{part}", self._replace(show="").parameters)

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the address; what is as usual has none."""
        usual = CompareAddress(self.runs)
        given = {"runs": ",".join(self.runs)}
        for name, value in self._asdict().items():
            if name != "runs" and value != getattr(usual, name):
                given[name] = "1" if value is True else str(value)
        return given

    def to_query(self, query_id: str, among: Sequence[str]) -> str:
        """The address of a query in all of the runs, which leads on through the queries of a list."""
        return query_href(self.runs, query_id, among)


def _one_of(given: str, known: Sequence[str], name: str) -> str:
    if given not in known:
        raise Refused(400, f"there is no {name} of this name", got=given[:80], hint=f"{name}={known[0]}")
    return given
