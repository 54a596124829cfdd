"""Controls that the screens share: a choice between links, the filters that are set, fields of forms, late sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from karat.report.html.markup import Element, data, h


def choice(name: str, links: Mapping[str, str], current: str | None, ids: str = "") -> Element:
    """A line of links by their words, one of which is the current choice.

    `ids` begins the id of each link, where a page has several choices of this name: then it is no landmark.
    """
    items = [
        h("a", data(words), href=href, id=f"{ids}-{place}" if ids else None,
          aria_current="true" if words == current else None)
        for place, (words, href) in enumerate(links.items())
    ]  # fmt: skip
    return h("div.choice", h("span.name", data(name)), *items, role="group", aria_label=name)


class Chip(NamedTuple):
    """A filter that is set: its words, and the address without it."""

    words: str
    href: str
    control: str = ""
    """The name by which a script finds the same link on the next page."""


def chips(filters: Iterable[Chip], cleared: Chip | None = None) -> Element | None:
    """The filters, each with a link that removes it; `cleared` removes several at once. None if there are none."""
    items = [
        h("li.chip", data(one.words), " ", h("a", h("span", "×", aria_hidden="true"), href=one.href,
          aria_label=f"Remove the filter: {one.words}", data_control=one.control or None))
        for one in filters
    ]  # fmt: skip
    if cleared is not None and len(items) > 1:
        items.append(h("li", h("a", cleared.words, href=cleared.href, data_control=cleared.control or None)))
    return h("ul.chips", *items, aria_label="Filters") if items else None


def select(label: str, name: str, options: Mapping[str, str], chosen: str = "", **attributes: str | None) -> Element:
    """A field of a form: a choice between values, each with its words."""
    items = [
        h("option", words, value=value, selected="" if value == chosen else None) for value, words in options.items()
    ]
    return h("label.field", h("span", label), h("select", *items, name=name, **attributes))


def hidden(parameters: Mapping[str, str]) -> list[Element]:
    """The parameters of the address that a form keeps."""
    return [h("input", type="hidden", name=name, value=value) for name, value in parameters.items()]


def late_section(name: str, heading: str, href: str, part: str, *, bare: bool = False, slow: bool = False) -> Element:
    """The place of a section until the script has fetched it from `part`; without script, a link to the page with it.

    One that is `bare` has no heading; one that is `slow` is fetched after all others.
    """
    link = h("p.note.waiting", h("a", f"Show {heading[0].lower()}{heading[1:]}", href=href))
    tag, head = ("div", None) if bare else ("section", h("h2", heading))
    return h(tag, head, link, id=name, data_part=part, data_later="" if slow else None)
