"""HTML as trees of elements: text can never become markup.

There are two writers. `write` returns HTML; `pack` returns plain lists for the JSON block of a page, from which
its script builds the same elements on demand. Neither lets text through as markup.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

from karat._internal.writers import escape_json, html_text, visible

Child: TypeAlias = "str | Element"

_PLAIN: dict[str, str] = {}
_VOID = frozenset(("meta", "link", "input", "wbr"))
_POOLED = 12
"""Texts of at least this length are stored once, and referred to by their number."""


class Element(NamedTuple):
    """An element: its name with classes after dots, its attributes, its children."""

    tag: str
    attributes: dict[str, str]
    inside: tuple[Child, ...]


def h(tag: str, *inside: Child | None, **attributes: str | float | None) -> Element:
    """Create an element. Children and attributes that are None are omitted; `aria_label` becomes `aria-label`."""
    given = _PLAIN
    if attributes:
        given = {k.rstrip("_").replace("_", "-"): str(value) for k, value in attributes.items() if value is not None}
    return Element(tag, given, tuple([child for child in inside if child is not None]))


def data(text: str, tag: str = "bdi", whole: str | None = None) -> Element:
    """A text from the data, isolated so that its writing direction does not affect the rest.

    If it is short for a longer one, that is its title.
    """
    return h(tag, text, title=None if whole == text else whole)


def plain(child: Child) -> str:
    """The text of a tree, without its elements."""
    return child if isinstance(child, str) else "".join(map(plain, child.inside))


def breakable(name: str) -> list[Child]:
    """The name of a metric, with places where a line may end: after "_", and before "@" and "("."""
    pieces = re.split(r"(?<=_)(?=.)|(?<=.)(?=[@(])", name)
    return [child for piece in pieces for child in (h("wbr"), piece)][1:]


def write(child: Child) -> str:
    """The tree as HTML."""
    if isinstance(child, str):
        return html_text(child, quote=False)
    name, *classes = child.tag.split(".")
    attributes = {"class": " ".join(classes), **child.attributes} if classes else child.attributes
    given = "".join(f' {key}="{html_text(value)}"' for key, value in attributes.items())
    if name in _VOID:
        return f"<{name}{given}>"
    return f"<{name}{given}>{''.join(map(write, child.inside))}</{name}>"


class Pool(dict[str, int]):
    """Texts or tags, each with its number, so that shared ones are written once."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def pack(child: Child, tags: Pool, texts: Pool) -> Any:
    """The tree as lists: the number of its tag, its attributes if it has any, then its children.

    A number as a child stands for a longer text.
    """
    if isinstance(child, str):
        text = visible(child)
        return text if len(text) < _POOLED else texts[text]
    given = [child.attributes] if child.attributes else []
    return [tags[child.tag], *given, *[pack(inner, tags, texts) for inner in child.inside]]


def block(value: Any, name: str) -> str:
    """A block of JSON for a script, which nothing inside can close."""
    import msgspec

    text = escape_json(msgspec.json.encode(value).decode())
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json" id="{name}">{text}</script>'
