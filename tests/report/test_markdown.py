"""Markdown: text from the data is shown as it is, with plain punctuation, and links or mentions nothing."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import product
from random import Random

import pytest

import karat
from karat._internal.display import sanitize
from karat.report.forms import bullets, code, escape, table
from support import example, hostile

PIECES = [
    "\\", "`", "``", "*", "**", "_", "__", "a_b", "<", "<script>", "</td>", ">", "# ", "#12", "@admin", "x@y.zz",
    "http://a.b", "www.x.y", "://", "|", "\\|", "&", "&amp;", "&#95;", "[a](b)", "[a]: http://c", "[x][y]", "![i](j)",
    "~", "~~x~~", "$x$", ":smile:", "- ", "+ ", "1. ", "12) ", "---", "===", "[ ] ", "word", "日本", " ", "\n",
    "(", ")", '"', "'", ",", "<!--", "[^1]", "[^1]: f", "deadbeef", "GH-1", "a/b#3", "ftp://q", "mailto:a@b.co",
    "{", "!", ".",
]  # fmt: skip
PLAIN = {"p", "code", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize(
    "text",
    [
        "1 query is undefined: no relevant gold, not in the mean.",
        "recall@5 >= 0.80",
        "+0.035 [+0.01, +0.06], p < 0.001".replace("<", "="),
        "bm25 compared with first-words on recall_all@5 (80 % power); C#, R&D, 3.",
        "-0.035",
        "[0.42, 0.64]",
    ],
)
def test_usual_text_is_left_as_it_is(text):
    assert escape(text) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("@admin", "`@admin`"),
        ("see #12, recall@5", "see `#12`, recall@5"),
        ("mail x@y.zz (or http://a.b)", "mail `x@y.zz` (or `http://a.b`)"),
        ("a|b *c* _d_ e_f <g>", r"a\|b \*c\* \_d\_ e_f \<g>"),
        ("[a](b)", r"[a]\(b)"),
        ("[x] done", r"\[x] done"),
        ("- 1. item", r"\- 1. item"),
        ("12. item", r"12\. item"),
    ],
)
def test_what_markdown_acts_on_has_a_backslash_or_is_code(text, written):
    assert escape(text) == written


def test_code():
    assert code("recall@5") == "`recall@5`"
    assert code("a`b") == "``a`b``"
    assert code("`") == "`` ` ``"
    assert table(["x"], [[code("a|b")], [code("a\\|b")]]).splitlines()[2:] == [r"| `a\|b` |", r"| `a\`\|`b` |"]


def harmless_results():
    run, before = example.run(), example.run("first-words")
    yield from (run, run.by("topic"), karat.compare(before, run), karat.compare(before, run, before))
    yield karat.gate(run, "recall@5 >= 0.9", "recall@5 no-drop", baseline=before, by="topic")
    yield from (karat.diagnose(run), karat.lint(example.help_centre()), karat.rosetta(example.help_centre()))


def hostile_results():
    bad = hostile.run()
    yield from (bad, bad.by(hostile.PAYLOADS[0]), karat.compare(bad, bad), karat.diagnose(bad))
    yield karat.overlap(bad, [{**row, "retrieved": row["retrieved"][1:]} for row in hostile.samples()])


def test_no_result_has_an_entity():
    for result in harmless_results():
        assert "&" not in result.to_markdown()


class Rendered(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], [""]
        self.feed(page)

    def handle_starttag(self, tag, _):
        self.tags.append(tag)
        if tag in {"td", "th"}:
            self.text.append("")

    def handle_data(self, text):
        self.text[-1] += text


def rendered(text):
    """The text as the parser of GitHub renders it."""
    cmark = pytest.importorskip("cmarkgfm", reason="GitHub's parser of Markdown: pip install cmarkgfm")
    options = cmark.cmark.Options.CMARK_OPT_UNSAFE | cmark.cmark.Options.CMARK_OPT_FOOTNOTES
    return Rendered(cmark.github_flavored_markdown_to_html(f"{text}\n", options=options))


def texts(count):
    """Random texts of everything that Markdown acts on; always the same ones."""
    chance = Random(7)
    made = ("".join(chance.choices(PIECES, k=chance.randint(1, 7))) for _ in range(count))
    return [text for text in made if sanitize(text)]


def test_text_is_shown_as_it_is():
    for text, form in product(texts(1_000), (escape, code)):
        written = form(text)
        for page in (rendered(written), rendered(bullets([written]))):
            assert set(page.tags) <= PLAIN
            assert page.text[0].strip() == sanitize(text)
        page = rendered(table(["a", "b"], [[written, "end"]]))
        assert set(page.tags) <= PLAIN
        assert [cell.strip() for cell in page.text[1:]] == ["a", "b", sanitize(text), "end"]


def test_hostile_results_have_no_link_or_script():
    for result in (*harmless_results(), *hostile_results()):
        tags = set(rendered(result.to_markdown()).tags)
        assert tags <= PLAIN | {"br", "details", "summary", "h3", "sup"}


def test_the_full_stop_of_a_sentence_is_not_code():
    assert escape("It is recall@10.") == "It is recall@10."
    assert escape("See www.example.org.") == "See `www.example.org`."
