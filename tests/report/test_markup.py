"""Trees of elements: whatever is in a text, it stays one."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat._internal.writers import visible
from karat.report.html.markup import Pool, block, data, h, pack, write
from support.hostile import PAYLOADS


class Reader(HTMLParser):
    """What a parser makes of HTML: its tags, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def test_elements_are_written():
    tree = h("p.note.small", "a < b", None, h("b", "!"), id="x", aria_label='say "hi"', hidden=None)
    assert write(tree) == '<p class="note small" id="x" aria-label="say &quot;hi&quot;">a &lt; b<b>!</b></p>'
    assert write(h("input", for_="x", type="search")) == '<input for="x" type="search">'


@pytest.mark.parametrize("text", PAYLOADS)
def test_texts_and_attributes_stay_what_they_are(text):
    read = Reader(write(h("p", data(text), title=text)))
    assert read.tags == ["p", "bdi"]
    assert read.text == visible(text)
    assert read.attributes == [("title", visible(text))]


@given(st.text())
def test_no_text_is_markup(text):
    written = write(data(text))
    assert re.fullmatch(r"<bdi>[^<>]*</bdi>", written, re.DOTALL)
    written.encode()


def test_what_cannot_be_seen_is_shown():
    assert visible("a\x00b\x1b[0m\x7f\x9b") == "a␀b␛[0m␡\ufffd"
    assert visible("tab\tand\nline\r\nend") == "tab\tand\nline\nend"
    assert visible("\u202eabc\u2069") == "\ufffdabc\ufffd"
    assert visible("\ud83d") == "\ufffd"
    assert visible("שלום \u200f! \u2028\ue000\u00ad") == "שלום \u200f! \ufffd\ufffd\ufffd"
    for kept in ("می\u200cخواهم", "👩\u200d👧", "naïve"):
        assert visible(kept) == kept


def unpack(packed, tags, texts):
    """What the script of the page does, here as HTML."""
    if not isinstance(packed, list):
        return texts[packed] if isinstance(packed, int) else packed
    return h(tags[packed[0]], *(unpack(inner, tags, texts) for inner in packed[1:]))


@given(
    st.recursive(st.text(), lambda inner: st.builds(lambda c: h("b.x", *c), st.lists(inner, max_size=4)), max_leaves=20)
)
def test_packed_trees_are_the_same_trees(tree):
    tags, texts = Pool(), Pool()
    packed = json.loads(json.dumps(pack(tree, tags, texts)))
    assert write(unpack(packed, list(tags), list(texts))) == write(tree)


def test_texts_are_kept_once():
    tags, texts = Pool(), Pool()
    long = "a text that many chunks share"
    assert pack(h("ul", h("li", long), h("li", long, "short")), tags, texts) == [0, [1, 0], [1, 0, "short"]]
    assert list(tags) == ["ul", "li"]
    assert list(texts) == [long]


@pytest.mark.parametrize("text", PAYLOADS)
def test_nothing_ends_a_block_of_json(text):
    written = block({"text": visible(text), text.encode("utf-8", "replace").decode(): 1}, "data")
    inside = written.removeprefix('<script type="application/json" id="data">').removesuffix("</script>")
    assert not set("<>&") & set(inside)
    assert json.loads(inside)["text"] == visible(text)
