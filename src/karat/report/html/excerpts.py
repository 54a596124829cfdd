"""Long texts, separate because every section cuts them: at a word, with a button that shows the whole, no script.

`excerpt` is for a text that may be too long, `folded` for elements such as a text with marks, `opening` for the
summary of a row, which shows the rest while the row is open, and `short_id` for ids, which are cut in the middle.
"""

from __future__ import annotations

import unicodedata

from karat._internal.display import cut_name
from karat.report.html.markup import Child, Element, data, h

LONGEST_ID = 120
"""Characters of an id that are shown."""
_LONGEST_TITLE = 700
_LONGEST_WORD = 40
"""A cut is moved to the left by at most this many characters, to the end of a word."""
_PAUSES = ".,;:–-("
"""Signs that do not stay before "…"."""


def cut_at(text: str, longest: int) -> int:
    """The place where a text is cut: its length if it is short enough, else the end of the last word that fits."""
    if len(text) <= longest:
        return len(text)
    end = longest
    while end > 1 and unicodedata.combining(text[end]):
        end -= 1
    if not text[end].isspace():
        begins = [place for place in range(max(end - _LONGEST_WORD, 1), end) if text[place].isspace()]
        end = begins[-1] if begins else end
    return len(text[:end].rstrip()) or end


def cut(text: str, longest: int) -> str:
    """The text, or its first words and "…"."""
    end = cut_at(text, longest)
    return text if end == len(text) else text[:end].rstrip(_PAUSES) + "…"


def excerpt(text: str, longest: int, tag: str = "bdi") -> Element:
    """A text of the data: whole if it is short, else its first words with a button that shows the whole."""
    short = cut(text, longest)
    return data(text, tag) if short == text else folded(data(short, tag), data(text, tag))


def short_id(name: str) -> Element:
    """An id; a long one is cut in the middle, as similar ones differ at their ends, and its title has more of it."""
    if len(name) <= LONGEST_ID:
        return data(name, "bdi.id")
    return data(cut_name(name, LONGEST_ID), "bdi.id", whole=cut_name(name, _LONGEST_TITLE))


def folded(start: Child, whole: Child) -> Element:
    """The start of something long, which is replaced by the whole when it is opened."""
    shown = h("span.start", start, " ")
    return h("details.long", h("summary", shown, h("span.more", "more"), h("span.less", "less")), whole)


def opening(text: str, longest: int, tag: str = "bdi") -> Element:
    """A text inside the summary of a row: its first words, and the rest, which is shown while the row is open."""
    end = cut_at(text, longest)
    if end == len(text):
        return data(text, tag)
    start = text[:end].rstrip(_PAUSES)
    return h(tag, start, h("span.dots", "…"), h("span.rest", text[len(start) :]))
