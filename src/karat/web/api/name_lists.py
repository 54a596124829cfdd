"""Lists of names in a worker, separate from the stored runs: metrics, judges and conventions."""

from __future__ import annotations

from karat.conventions import CONVENTIONS
from karat.judges import all_judges
from karat.metrics import MEASURES, METRICS
from karat.report.catalog import first_line
from karat.web.api.allowed import JUDGES, short_name
from karat.web.api.answers import NamedThing, NameList
from karat.web.messages import Call, Progress
from karat.web.tasks import Answer, json_answer, task


@task("metrics")
def list_metrics(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `GET /v1/metrics`."""
    found = [
        NamedThing(name=one.name, about=one.help, settings=list(one.settings), aliases=list(one.aliases))
        for one in (*METRICS.values(), *MEASURES.values())
        if one.built_in
    ]
    return json_answer(NameList(names=found))


@task("judges")
def list_judges(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `GET /v1/judges`: those that a request may name, with the models that are allowed."""
    known = all_judges()
    found = []
    for name, settings in JUDGES.items():
        models = f" Models: {', '.join(map(short_name, call.models))}." if "model" in settings and call.models else ""
        found.append(NamedThing(name=name, about=first_line(known[name]) + models, settings=list(settings)))
    return json_answer(NameList(names=found))


@task("conventions")
def list_conventions(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `GET /v1/conventions`."""
    return json_answer(NameList(names=[NamedThing(name=one.name, about=one.about) for one in CONVENTIONS.values()]))
