"""Stored runs in a worker: listed, shown with their tables and items, and deleted."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from karat._internal.writers import plain
from karat.run.frame import frame_of
from karat.web.api.answers import EvaluateAnswer, QueryItems, RunPage, TablePage
from karat.web.api.evaluating import accepted, summary_of, table_bytes
from karat.web.api.operations import ARROW, CSV, JSON, MARKDOWN, PARQUET
from karat.web.api.store import Store
from karat.web.messages import Call, Progress, Reply
from karat.web.problems import Refused
from karat.web.tasks import Answer, json_answer, task

if TYPE_CHECKING:
    from karat.run import Run

_PAGE, _LARGEST_PAGE = 50, 1000
_ROWS, _MOST_ROWS = 1000, 100_000


def number_of(call: Call, name: str, default: int, most: int) -> int:
    """A whole number in the address."""
    given = call.arguments.get(name, str(default))
    if not (given.isascii() and given.isdecimal()) or len(given) > 12 or int(given) > most:
        raise Refused(400, f"{name} is a whole number, at most {most:,}", hint=f"?{name}={default}")
    return int(given)


@task("runs")
def list_runs(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `GET /v1/runs`: a page of the files of the store, the newest first."""
    store, limit = Store(call.store), number_of(call, "limit", _PAGE, _LARGEST_PAGE) or 1
    places, first = store.places(), 0
    if (name := call.arguments.get("name")) is not None:
        places = [place for place in places if place.name == name]
    if (after := call.arguments.get("after")) is not None:
        first = next((row + 1 for row, place in enumerate(places) if place.id == after), -1)
        if first < 0:
            raise Refused(400, "there is no run with the id of after", hint="GET /v1/runs")
    shown = places[first : first + limit]
    more = shown[-1].id if first + limit < len(places) else None
    return json_answer(RunPage(runs=[store.summary(place) for place in shown], total=len(places), next=more))


@task("run")
def show_run(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `GET /v1/runs/{id}`: its summary, or its file."""
    store, wanted = Store(call.store), call.arguments["run_id"]
    form = accepted(call.accept, (JSON, MARKDOWN, PARQUET))
    if form == PARQUET:
        place, content = store.content(wanted)
        headers = {"Content-Disposition": f'attachment; filename="{place.id}.parquet"'}
        return Reply(200, PARQUET, headers), content
    place, run = store.load(wanted)
    if form == MARKDOWN:
        return Reply(200, MARKDOWN), run.to_markdown().encode()
    by = [one for one in call.arguments.get("by", "").split(";") if one]
    answer: EvaluateAnswer = summary_of(run, by=by, summary=call.arguments.get("summary", ""))
    answer.id, answer.name = place.id, place.name
    return json_answer(answer)


@task("delete_run")
def delete_run(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `DELETE /v1/runs/{id}`."""
    Store(call.store).delete(call.arguments["run_id"])
    return Reply(204, ""), b""


@task("table")
def show_table(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `GET /v1/runs/{id}/table`: all of it as CSV or Arrow, a page of it as JSON."""
    form = accepted(call.accept, (JSON, CSV, ARROW))
    limit, offset = number_of(call, "limit", _ROWS, _MOST_ROWS) or 1, number_of(call, "offset", 0, 10**11)
    _, run = Store(call.store).load(call.arguments["run_id"])
    frame = frame_of(run, fields=call.arguments.get("fields", "").lower() == "true")
    if form != JSON:
        return Reply(200, form), table_bytes(frame, form)
    rows = msgspec.Raw(frame.slice(offset, limit).write_json().encode())
    more = offset + limit if offset + limit < len(frame) else None
    return json_answer(TablePage(rows=rows, total=len(frame), next=more))


@task("items")
def show_items(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `GET /v1/runs/{id}/items`: one query with its scores, gold, matches and items."""
    query = call.arguments.get("query")
    if query is None:
        raise Refused(400, "name the query", hint="?query=q1")
    _, run = Store(call.store).load(call.arguments["run_id"])
    return json_answer(items_of(run, query))


def items_of(run: Run, query: str) -> QueryItems:
    """One query of a run."""
    try:
        row = run.row(query)
    except LookupError as error:
        raise Refused(404, "there is no such query in the run", hint=getattr(error, "hint", None)) from None
    items = run.items(query)
    values: dict[str, Any] = {
        "query_id": run.ids[row],
        "query": None if run.query is None else run.query[row],
        "scores": {name: _defined(float(column[row])) for name, column in run.all_columns.items()},
        "failure": run.failures.get(run.ids[row]),
        "gold": plain(run.gold(query)),
        "hits": plain(run.hits(query)),
        "retrieved": None if items is None else plain(items.retrieved),
    }
    return msgspec.convert(values, QueryItems)


def _defined(value: float) -> float | None:
    return value if isfinite(value) else None
