"""The pages of labelling, rendered by a worker, and the numbers below them: agreement, and how far the comparison is.

The pages are frames; `label.js` fills them with what the server answers for the person. Nothing of a run is in them.
"""

from __future__ import annotations

from math import isnan
from typing import Any

from karat.gold.label_estimate import FEWEST
from karat.report.html.markup import Child, Element, h
from karat.web.label.label_design import agreement, estimated, in_words, opened_design
from karat.web.label.label_work import Labelled
from karat.web.messages import Call, Progress
from karat.web.tasks import Answer, json_answer, read_json, task
from karat.web.view.shell import Step, page

KEYS = (
    ("0 – 9", "grade the item, and go to the next"),
    ("s, Space", "skip the item"),
    ("d", "can’t tell"),
    ("u", "undo your last answer"),
    ("n", "write a note on the item"),
    ("m", "mark a passage by words: arrows move, m begins, arrows extend, m or Enter ends, Escape cancels"),
    ("Backspace", "remove the last quote of the item"),
    ("j, ↓ and k, ↑", "next and previous item"),
    ("→ and ←", "next and previous query"),
    ("Enter", "show the whole text, or its begin"),
    ("i", "show the id of the item"),
    ("l", "list of queries"),
    ("/", "search in the pool"),
    ("g", "guideline"),
    ("?", "these keys"),
)
_BIAS = (
    "It is closed because it can sway you: who sees which run leads tends to grade in its favour. Open it when you "
    "pause, or want to know if you may stop."
)


@task("view_label")
def label_screen(call: Call, body: bytes, progress: Progress) -> Answer:
    """The labelling page."""
    work = h(
        "div.work",
        h("section.asked", h("p.place", id="place"), h("h1", "Labels", id="query"), aria_label="Query"),
        h(
            "div.progress",
            h("progress", id="bar", value=0, max=1, aria_label="Items labelled"),
            h("p", id="progress"),
            h("p", id="stop", role="status"),
        ),
        h("p.problem", id="problem", role="alert", hidden=""),
        h("div.items", id="items"),
        h(
            "nav.steps",
            _button("previous", "← Previous"),
            _button("undo", "Undo"),
            _button("list", "Queries"),
            _button("search", "Search"),
            _button("help", "Keys"),
            _button("next", "Next →"),
            aria_label="Queries",
        ),
        id="work",
        hidden="",
    )
    parts: list[Child] = [_name(), work, _beside(), _list(), _search(), _help()]
    note = h("noscript", h("p", "Labelling needs JavaScript, of this server only."))
    return page("Label", note, *parts, screen="label")


@task("view_disagreements")
def disagreements_screen(call: Call, body: bytes, progress: Progress) -> Answer:
    """The items to which people gave different grades, to settle them."""
    about = (
        "Items to which people gave different grades. Without a decision, the lower median counts. "
        "A settled grade counts instead of all others."
    )
    parts = [
        h("h1", "Disagreements"),
        h("p", about),
        h("p.problem", id="problem", role="alert", hidden=""),
        h("div.items", id="differing"),
    ]
    return page("Disagreements", *parts, screen="disagreements", trail=[Step("Label", "/label")])


@task("view_label_standing")
def label_standing(call: Call, body: bytes, progress: Progress) -> Answer:
    """Agreement and the work that is left; the estimate only if it is asked for."""
    given: Labelled = read_json(body, Labelled)
    found: dict[str, Any] = {"agreement": agreement(given), "choice": None}
    metric = call.arguments.get("metric")
    if metric:
        places = call.arguments["pool"], call.arguments["opinions"]
        made, runs = opened_design(*places, metric, float(call.arguments["highest"]))
        each = estimated(made, given)
        found["choice"] = in_words(each) | {"metric": metric}
        found["estimates"] = [
            {
                "run": run, "baseline": runs[0], "low": one.low, "high": one.high,
                "difference": one.difference,
                "always_low": one.always_low, "always_high": one.always_high, "total_low": _end(one.total.low),
                "total_high": _end(one.total.high), "labels": one.labels, "known": one.known, "more": one.more,
                "left": one.left, "queries_wanted": one.queries_wanted, "stop": one.stop, "drawn": one.drawn,
                "fewest": FEWEST, "unit": "item" if made.effects.sums else "query",
                "queries": made.queries, "without_relevant": one.without_relevant,
            }
            for run, one in zip(runs[1:], each, strict=True)
        ]  # fmt: skip
    return json_answer(found)


def _end(value: float) -> float | None:
    return None if isnan(value) else value


def _button(name: str, words: str) -> Element:
    return h("button", words, type="button", id=name)


def _name() -> Element:
    """The first page: the name of the person."""
    field = h("input", id="by", name="by", maxlength=60, required="", autocomplete="nickname", spellcheck="false")
    return h(
        "form.who",
        h("h1", "Who labels?"),
        h("p", "Each person’s answers are kept under a name, so that you can see how far people agree."),
        h("p", h("label", "Your name ", field), h("button", "Begin", type="submit")),
        id="who",
        hidden="",
    )


def _beside() -> Element:
    """The column beside the items: guideline, agreement, estimate."""
    return h(
        "aside.beside",
        h(
            "details",
            h("summary", "Guideline"),
            h("div.guideline", id="guideline", tabindex=0, role="region", aria_label="Guideline"),
            id="guideline-pane",
            hidden="",
        ),
        h("details", h("summary", "People and agreement"), h("div", id="agreement"), id="agreement-pane", open=""),
        h(
            "section",
            h(
                "details",
                h("summary", "Estimate so far"),
                h("p.note", _BIAS),
                h("div", id="estimate"),
                id="estimate-pane",
            ),
            id="choice-pane",
            hidden="",
            aria_label="Comparison",
        ),
        h("p", "You label as ", h("b", id="me"), " ", _button("rename", "Change name")),
        id="beside",
        hidden="",
        aria_label="About the work",
    )


def _dialog(name: str, title: str, *inside: Child) -> Element:
    heading = h("div.heading", h("h2", title, id=f"{name}-title"), h("button.close", "Close", type="button"))
    return h("dialog", heading, *inside, id=f"{name}-dialog", aria_labelledby=f"{name}-title")


def _list() -> Element:
    around = h("p", _button("earlier", "Earlier"), " ", _button("later", "Later"))
    return _dialog("list", "Queries", h("ol", id="sheets"), around)


def _search() -> Element:
    field = h("input", type="search", id="wanted", aria_label="Words in a query, a text or an id")
    form = h("form", field, h("button", "Search", type="submit"), id="search-form", role="search")
    return _dialog("search", "Search in the pool", form, h("p", id="found-note", role="status"), h("ol", id="found"))


def _help() -> Element:
    rows = [h("tr", h("th", keys, scope="row"), h("td", does)) for keys, does in KEYS]
    head = h("thead", h("tr", h("th", "key", scope="col"), h("th", "does", scope="col")))
    return _dialog("help", "Keys", h("table", head, h("tbody", *rows)))
