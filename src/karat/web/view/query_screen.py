"""The screen of query, separate from its parts."""

from __future__ import annotations

from karat.report.html.markup import h
from karat.web.messages import Call, Progress
from karat.web.tasks import Answer, task
from karat.web.view.shell import page


@task("view_query")
def query_screen(call: Call, body: bytes, progress: Progress) -> Answer:
    """The page."""
    return page("karat", h("h1", "query"), screen="query")
