"""The style and the script of the workbench, separate from the pages: the files of the report, then its own."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from karat.web.problems import Refused

_STYLES = (
    "report/html/theme.css", "report/html/style.css", "report/html/opened_query.css", "report/html/comparison.css",
    "web/view/view.css",
    "web/view/runs.css", "web/view/run.css", "web/view/compare.css", "web/view/query.css",
    "web/label/label.css",
)  # fmt: skip
_SCRIPTS = (
    "report/html/charts.js", "web/view/view.js", "web/view/runs.js", "web/view/run.js", "web/view/compare.js",
    "web/view/query.js", "web/label/label_shared.js", "web/label/label_marking.js", "web/label/label_lists.js",
    "web/label/label_standing.js", "web/label/label.js", "web/label/disagreements.js",
)  # fmt: skip
_ASSETS = {
    "karat.css": ("text/css", _STYLES),
    "karat.js": ("text/javascript", _SCRIPTS),
    "theme.js": ("text/javascript", ("report/html/theme.js",)),
}


@cache
def asset(name: str) -> tuple[str, bytes]:
    """The type and the content of an asset."""
    if name not in _ASSETS:
        raise Refused(404, "there is nothing at this path")
    content_type, names = _ASSETS[name]
    return content_type, "".join(files("karat").joinpath(own).read_text("utf-8") for own in names).encode()
