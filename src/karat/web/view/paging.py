"""Pages of a long table: the links to the others, shared by the screens and therefore separate."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from karat._internal.display import plural
from karat.report.html.markup import Child, Element, h

SIZE = 50
"""Rows on a page."""
_NEAR = 2


class Pages(NamedTuple):
    """The pages of some rows, and the one that is shown."""

    rows: int
    page: int
    size: int = SIZE

    @property
    def last(self) -> int:
        """The number of pages, at least one."""
        return max(-(-self.rows // self.size), 1)

    @property
    def shown(self) -> int:
        """The page that is shown: the last one, if the wanted one is after it."""
        return min(max(self.page, 1), self.last)

    @property
    def part(self) -> slice:
        """The rows of the page."""
        first = (self.shown - 1) * self.size
        return slice(first, min(first + self.size, self.rows))

    def in_words(self) -> str:
        """The rows of the page, for people."""
        if self.last == 1:
            return plural(self.rows, "query", "queries")
        return f"{self.part.start + 1:,} to {self.part.stop:,} of {self.rows:,} queries"


def page_links(pages: Pages, address: Callable[[int], str]) -> Element | None:
    """Links to the first page, those around the one that is shown, and the last; None if there is only one."""
    if pages.last == 1:
        return None
    at, last = pages.shown, pages.last
    wanted = sorted({1, *range(max(at - _NEAR, 1), min(at + _NEAR, last) + 1), last})
    links: list[Child] = []
    for before, page in zip([0, *wanted], wanted, strict=False):
        if page > before + 1:
            links.append(h("span", "…"))
        if page == at:
            links.append(h("a", f"{page:,}", href=address(page), aria_current="page"))
        else:
            links.append(h("a", f"{page:,}", href=address(page), aria_label=f"page {page:,}"))
    previous = h("a", "← previous", href=address(at - 1), rel="prev") if at > 1 else None
    following = h("a", "next →", href=address(at + 1), rel="next") if at < last else None
    return h("nav.paging", previous, *links, following, aria_label="Pages")
