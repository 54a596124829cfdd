"""The page `/docs`, separate from the document that it shows: operations to read and try. It loads nothing else."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from karat._internal.writers import content_hash

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>karat: the HTTP API</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<h1>karat: the HTTP API</h1>
<p id="about">Reading openapi.json …</p>
<p class="soft">The same as data: <a href="openapi.json">openapi.json</a>.</p>
<form><label><span>key</span>
<input id="key" type="password" autocomplete="off" placeholder="if the server has keys"></label></form>
<noscript><p>This page needs JavaScript; openapi.json has everything that it shows.</p></noscript>
<main id="operations"></main>
<script>{script}</script>
</body>
</html>
"""


class Page(NamedTuple):
    """A page, and the policy with which it is sent: only its own script runs, and it asks only this server."""

    html: bytes
    policy: str


@cache
def docs_page() -> Page:
    """The page."""
    style, script = _own("report/html/theme.css") + _own("web/api/docs_page.css"), _own("web/api/docs_page.js")
    policy = (
        f"default-src 'none'; script-src {content_hash(script)}; style-src {content_hash(style)}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(_PAGE.format(style=style, script=script).encode(), policy)


def _own(name: str) -> str:
    return files("karat").joinpath(name).read_text("utf-8")
