"""The frame of every screen, separate from what is in it: the head, and the first line with the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from karat._internal.display import cut_name
from karat.report.html.markup import Child, Element, data, h, write
from karat.web.messages import Reply
from karat.web.tasks import Answer

_HTML = "text/html"


class Step(NamedTuple):
    """A step of the way from the list of runs to a screen."""

    words: str
    href: str


def page(title: str, *sections: Child | None, screen: str, trail: Sequence[Step] = (), status: int = 200) -> Answer:
    """A whole page; `screen` is in the class of its body, `trail` are the screens above it."""
    body = h(
        f"body.screen-{screen}",
        h("a.skip", "Skip to the content", href="#main"),
        h(
            "header.top",
            h("a.brand", "karat", href="/"),
            _trail(trail),
            h("button", "◐", type="button", id="theme", hidden="", aria_label="Dark or light theme"),
        ),
        h("main", *sections, id="main", tabindex=-1),
        h("p", id="said", role="status", aria_live="polite"),
    )
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("link", rel="icon", href="data:,"),
        h("link", rel="stylesheet", href="/assets/karat.css"),
        h("script", src="/assets/theme.js"),  # not deferred: no other theme is seen first
        h("script", src="/assets/karat.js", defer=""),
        h("title", f"{cut_name(title, 80)} · karat"),
    )
    return Reply(status, _HTML), f'<!DOCTYPE html>\n<html lang="en">{write(head)}{write(body)}</html>\n'.encode()


def fragment(*elements: Child | None) -> Answer:
    """A part of a page, for its script."""
    return Reply(200, _HTML), "".join(write(element) for element in elements if element is not None).encode()


def _trail(trail: Sequence[Step]) -> Element | None:
    if not trail:
        return None
    steps = [h("li", h("a", data(step.words), href=step.href)) for step in trail]
    return h("nav.trail", h("ol", *steps), aria_label="The way to this page")
