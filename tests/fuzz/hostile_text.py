"""Hostile texts as ids, queries, chunks, field names, values and file names, in every form of output."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from contextlib import contextmanager
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from unicodedata import category
from xml.etree import ElementTree as ET

from fuzz.frame import Fault, Result, command, fuzzer

if TYPE_CHECKING:
    from collections.abc import Iterator

INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SHOWN = "\n\t\u061c\u200c\u200d\u200e\u200f"
"""Characters that HTML shows well: joiners and marks of Arabic, Hebrew and Persian text, and inside emoji."""
FORMULA = re.compile(r"\s*[=+\-@＝＋－＠\t\r]")
PIECES = [
    *map(chr, range(0x20)), "\x7f", *"\x80\x85\x8d\x90\x9b\x9c\x9f", *BIDI, "\u2028", "\u2029", "\ufeff", "\ufff9",
    "\ud800", "\udc80", "\udfff", "\U000e0001", "\ufdd0", "\u200b", "\u00ad", "\ue000",
    "\U0010fffd", "\u0378", "\u06dd", "\u200c", "\u200d",
    "::error::x", "::error file=a::b", "\n::warning::", "\r::debug::", "::stop-commands::t", " ::add-mask::s", "::",
    "##[error]", "##[group]g", "##vso[task.setvariable]v", "##teamcity[x]", "###[",
    "=cmd|' /C calc'!A0", "=1+1", "+1", "-1", "-x", "@SUM(A1)", "＝1", "＠x", "\t=1", "\r=1", '"=1', ";=1", ",=1",
    "\x1b[31m", "\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://a.b\x1b\\", "\x9b31m", "\x1b[1m", "\x1bc",
    "[a](http://b.c)", "![i](http://b.c/p.png)", "<img src=x onerror=alert(1)>", "</td><script>alert(1)</script>",
    "<!--", "</script><script>", "]]>", "&lt;", "&#x3c;", "|", "\\|", "\\", "`", "```", "# h", "\n# h", "---", "* x",
    "1. x", "<details>", "@admin", "#12", "http://a.b", "javascript:alert(1)", '"', "'", "${7*7}", "{{x}}",
    "%0A::error::",
    "%s", "word", "a b", "日本", "é", "👩‍👩‍👧", "می\u200cخواهم", "x" * 300, "0", "1e9", "-0.5", " ", "\n", "",
]  # fmt: skip
MARKDOWN = {
    "p",
    "code",
    "ul",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "br",
    "details",
    "summary",
    "h3",
    "sup",
}


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def refuse_raw(text: str, place: object, kept: str = "\n") -> None:
    """No character is invisible, by its category in Unicode, except those that are kept."""
    if found := sorted(f"U+{ord(char):04X}" for char in set(text) - set(kept) if category(char) in INVISIBLE):
        raise Fault(f"raw {found} in {place}: {text!r:.600}")


def hostile(random: Random) -> str:
    """A text of one to four hostile pieces."""
    return "".join(random.choices(PIECES, k=random.randint(1, 4)))


def file_name(random: Random, ending: str) -> str:
    """A hostile name of a file that the system accepts."""
    name = re.sub("[/\0\ud800-\udc7f\udd00-\udfff]", "_", hostile(random))[:60].strip(".")
    return f"./{name or 'x'}{ending}" if random.random() < 0.5 or name.startswith("-") else f"{name or 'x'}{ending}"


def samples(random: Random, field: str) -> list[dict[str, Any]]:
    """A few samples, hostile in every text."""
    rows: list[dict[str, Any]] = []
    for number in range(random.randint(2, 6)):
        gold = {
            "id": f"{hostile(random)}{number}",
            "text": f"{hostile(random)} gold {number}",
            "doc": hostile(random) + "d",
        }
        other = {"id": f"o{number}{hostile(random)}", "text": hostile(random) + "t", "doc": hostile(random) + "d"}
        retrieved = [other, gold] if random.random() < 0.5 else [other]
        rows.append(
            {
                "id": f"{hostile(random)}{number}" if random.random() < 0.9 else number,
                "query": hostile(random) + "?",
                "retrieved": retrieved,
                "gold": [gold],
                field: hostile(random),
            }
        )
    return rows


@contextmanager
def on_github(random: Random) -> Iterator[None]:
    """A job of GitHub Actions, or none."""
    before = os.environ.pop("GITHUB_ACTIONS", None)
    if random.random() < 0.5:
        os.environ["GITHUB_ACTIONS"] = "true"
    os.environ.pop("GITHUB_STEP_SUMMARY", None)
    os.environ.pop("GITHUB_OUTPUT", None)
    try:
        yield
    finally:
        os.environ.pop("GITHUB_ACTIONS", None)
        if before is not None:
            os.environ["GITHUB_ACTIONS"] = before


def printed(*arguments: object, own_commands: bool = False) -> Result:
    """Run a command; what it prints has no raw character and no command to a CI server."""
    done = command(*arguments)
    for text in (done.out, done.err):
        plain = re.sub(r"\x1b\[(0|1|3[123])m", "", text) if "--color" in arguments else text
        refuse_raw(plain, arguments)
        for line in plain.split("\n"):
            own = own_commands and text is done.err and re.match(r"::(error|warning) (file|title)=", line)
            if not own and (line.lstrip().startswith("::") or re.search(r"##\w*\[", line)):
                raise Fault(f"{arguments}: a command to a CI server: {line!r:.600}")
    return done


def check(form: str, text: str, columns: int | None = None) -> None:
    """JSON is read back; CSV has as many cells in every row, and no formula; Markdown renders as text."""
    if form == "json":
        json.loads(text)
    elif form == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        if len({len(row) for row in rows}) != 1 or len(text.splitlines()) != len(rows):
            raise Fault(f"rows of different lengths: {text!r:.600}")
        for cell in (cell for row in rows for cell in row):
            if FORMULA.match(cell) and not re.fullmatch(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?", cell, re.IGNORECASE):
                raise Fault(f"a formula: {cell!r:.200}")
    elif form == "markdown":
        check_markdown(text)


def check_markdown(text: str) -> None:
    """The tags that GitHub renders are karat's own."""
    refuse_raw(text, "Markdown")
    if re.search(r"(?m)^\s*::|##\w*\[", text):
        raise Fault(f"a command to a CI server in Markdown: {text!r:.600}")
    try:
        cmarkgfm: Any = import_module("cmarkgfm")
    except ImportError:
        return
    options = cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE | cmarkgfm.cmark.Options.CMARK_OPT_FOOTNOTES
    page = Tags(cmarkgfm.github_flavored_markdown_to_html(f"{text}\n", options=options))
    if not page.tags <= MARKDOWN or not page.attributes <= {"align"}:
        raise Fault(f"Markdown with {page.tags - MARKDOWN or page.attributes}: {text!r:.800}")


def strings(value: Any) -> Iterator[str]:
    """All strings of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from strings(one)


def check_page(text: str) -> None:
    """The report has its own three scripts, no handler, and no address of another site."""
    page = Tags(text)
    refuse_raw(unescape(text), "the report", SHOWN)
    for block in re.findall(r'(?s)<script type="application/json"[^>]*>(.*?)</script>', text):
        refuse_raw("".join(strings(json.loads(block))), "the data of the report", SHOWN)
    if page.tags & {"img", "iframe", "object", "base"} or any(name.startswith("on") for name in page.attributes):
        raise Fault(f"elements of the data in the report: {sorted(page.tags)} {sorted(page.attributes)}")
    if text.count("<script") != 3:
        raise Fault(f"{text.count('<script')} scripts in the report")


@fuzzer("hostile text", "Text from the data does nothing in any form of output.", short=20, long=2_000)
def hostile_text(random: Random, folder: Path) -> str:
    """Evaluate hostile samples twice, and show them with one of the other commands."""
    field = random.choice([hostile(random) + "f", "topic"])
    source, run, base = (file_name(random, ending) for ending in (".jsonl", ".parquet", "2.parquet"))
    rows, judge = samples(random, field), random.choice(["ids", "contains", "exact"])
    for target in (base, run):
        Path(source).write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
        form = random.choice(["table", "csv", "json", "markdown"])
        given = ["eval", source, "recall@1,2 rr", "--judge", judge, "--by", field, "-o", target, "--format", form]
        with on_github(random):
            done = printed(*given, *random.choice([(), ("--color", "always")]))
        if done.code:
            return "refused"
        check(form, done.out)
        for row in rows:
            row["retrieved"] = row["retrieved"][:1]
    with on_github(random):
        return shown(random, source, run, base, field, [str(row["id"]) for row in rows])


def _texts(element: ET.Element) -> list[str]:
    return [*element.attrib.values(), element.text or "", element.tail or ""]


def shown(random: Random, source: str, run: str, base: str, field: str, ids: list[str]) -> str:
    """One of the other commands, on files that were written."""
    form = random.choice(["table", "json", "csv", "markdown"])
    choice = random.choice(["compare", "gate", "diagnose", "lint", "report", "show", "wrong"])
    if choice == "compare":
        done = printed("compare", base, run, "--by", field, "--allow-mismatch", "--format", form)
    elif choice == "gate":
        Path("must.txt").write_text("\n".join(ids[:2]), "utf-8", errors="surrogatepass")
        done = printed(
            "gate", run, "recall@1 >= 0.9", "recall@2 no-drop", "--baseline", base, "--by", field,
            "--must-pass", "must.txt", "--markdown", "out.md", "--junit", "out.xml",
            "--format", form := random.choice(["table", "json"]), own_commands=True,
        )  # fmt: skip
        check_markdown(Path("out.md").read_text("utf-8"))
        refuse_raw("".join(strings([*map(_texts, ET.parse("out.xml").iter())])), "JUnit")
    elif choice == "diagnose":
        one = [ids[0]] if random.random() < 0.5 and "\0" not in ids[0] and not ids[0].startswith("-") else []
        done = printed("diagnose", run, *one, "--all", "--format", form)
    elif choice == "lint":
        done = printed("lint", source, "--format", form)
    elif choice == "report":
        done, form = printed("report", run, "-o", "report.html"), "table"
        check_page(Path("report.html").read_text("utf-8"))
    elif choice == "show":
        done = printed("show", run, "--by", field, "--format", form)
    else:
        odd = hostile(random)
        done = printed(
            *random.choice(
                [("eval", odd), ("eval", source, odd), ("show", run, "--by", odd), (odd,), ("eval", odd, odd)]
            )
        )
    if done.code != 2:
        check(form, done.out)
    return "refused" if done.code == 2 else choice
