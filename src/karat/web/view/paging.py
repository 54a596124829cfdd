"""Pages of a long list, separate from the screens that have one: the rows of a page, and the links to the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from karat._internal.display import plural
from karat.report.html.markup import Child, Element, h

SIZE = 50
"""Rows on a page."""
_NEAR = 2


class Pages(NamedTuple):
    """The pages of some rows, and the one that is asked for."""

    rows: int
    page: int
    size: int = SIZE

    @property
    def last(self) -> int:
        """The number of pages, at least one."""
        return max(-(-self.rows // self.size), 1)

    @property
    def shown(self) -> int:
        """The page that is shown: the last one, if the one that is asked for is after it."""
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


def page_links(pages: Pages, href: Callable[[int], str], sizes: Mapping[int, str] | None = None) -> Element | None:
    """Links to the first page, those around the one that is shown, and the last; None if there is nothing to choose.

    `sizes` has the addresses of pages with more or fewer rows.
    """
    at, last = pages.shown, pages.last
    wanted = sorted({1, *range(max(at - _NEAR, 1), min(at + _NEAR, last) + 1), last})
    links: list[Child | None] = []
    for before, page in zip([0, *wanted], wanted, strict=False):
        if page > before + 1:
            links.append(h("span", "…"))
        current = "page" if page == at else None
        links.append(h("a", f"{page:,}", href=href(page), aria_label=f"page {page:,}", aria_current=current))
    if last == 1:
        links = []
    if at > 1:
        links.insert(0, h("a", "← previous", href=href(at - 1), rel="prev", id="page-before"))
    if at < last:
        links.append(h("a", "next →", href=href(at + 1), rel="next", id="page-after"))
    links += [h("a.size", f"{size} per page", href=address) for size, address in (sizes or {}).items()]
    return h("nav.pages", *links, aria_label="Pages") if links else None
