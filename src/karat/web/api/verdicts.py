"""Verdicts in a worker: stored runs, or data in the body, compared, gated and diagnosed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from karat._internal.result import Result
from karat.analysis.compare import LETTERS, compare
from karat.analysis.diagnose import diagnose
from karat.analysis.gate import gate
from karat.errors import BadArgument
from karat.run import Run
from karat.web.api.allowed import metrics_of
from karat.web.api.answers import CompareAnswer, DiagnoseAnswer, GateAnswer
from karat.web.api.bodies import CompareRequest, DiagnoseRequest, EvaluateInput, GateRequest
from karat.web.api.evaluating import accepted, check_job, job_task, names, run_of
from karat.web.api.operations import JSON, JUNIT, MARKDOWN
from karat.web.api.store import Store
from karat.web.api.uploads import read_request
from karat.web.messages import Call, Progress, Reply
from karat.web.problems import over_http
from karat.web.tasks import Answer

T = TypeVar("T", bound=msgspec.Struct)
_ADVICE = ("advice", "not_measured", "notes", "remarks")
"""Sentences of a result, some of which name a command."""


class Given(NamedTuple):
    """A run of a request, with its name."""

    run: Run
    name: str


def given_run(given: str | EvaluateInput, call: Call, progress: Progress, name: str) -> Given:
    """A stored run by its id or name, or the run of data in the request."""
    if isinstance(given, str):
        place, run = Store(call.store).load(given)
        return Given(run.replace(file=place.name), place.name)
    if given.samples is None and given.retrieved is None:
        raise BadArgument("a run is the id or name of a stored one, or an object with samples", hint='{"samples": […]}')
    return Given(run_of(given, call, progress).replace(file=name), name)


def _second_run(given: str | EvaluateInput | None, call: Call, progress: Progress, name: str) -> Run | None:
    return None if given is None else given_run(given, call, progress, name).run


@job_task("compare")
def compare_task(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `POST /v1/compare`."""
    asked = read_request(call, body, CompareRequest)
    check_job(call, wanted=asked.job)
    letters = [letter.upper() for letter in LETTERS]
    runs = [given_run(one, call, progress, letter) for one, letter in zip(asked.runs, letters, strict=False)]
    labels = [run.name for run in runs]
    labels = labels if len(set(labels)) == len(labels) else letters[: len(runs)]
    metrics = None if not asked.metrics else metrics_of(asked.metrics)
    first, second, *more = (run.run for run in runs)
    found = compare(
        first, second, *more, metrics=metrics, names=asked.names or labels, by=names(asked.by),
        allow_mismatch=asked.allow_mismatch, test=asked.test, summary=asked.summary, also=asked.also,
    )  # fmt: skip
    return _answer(found, CompareAnswer, call.accept, _with_means)


def _with_means(values: dict[str, Any]) -> dict[str, Any]:
    """The rows of a comparison, the compared summary under the name of the mean."""
    rows = [{"means": row["values"], **row} if "values" in row else row for row in values["rows"]]
    return values | {"rows": rows}


@job_task("gate")
def gate_task(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `POST /v1/gate`."""
    asked = read_request(call, body, GateRequest)
    check_job(call, wanted=asked.job)
    run = given_run(asked.run, call, progress, "run").run
    baseline = _second_run(asked.baseline, call, progress, "baseline")
    more = {} if asked.min_judged is None else {"min_judged": asked.min_judged}
    found = gate(
        run, *asked.rules, baseline=baseline, by=names(asked.by), must_pass=asked.must_pass,
        tolerance=asked.tolerance, slice_tolerance=asked.slice_tolerance, alpha=asked.alpha,
        min_defined=asked.min_defined, fail_undecided=asked.fail_undecided, **more,
    )  # fmt: skip
    if accepted(call.accept, (JSON, MARKDOWN, JUNIT)) == JUNIT:
        return Reply(200, JUNIT), found.to_junit().encode()
    return _answer(found, GateAnswer, call.accept)


@job_task("diagnose")
def diagnose_task(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `POST /v1/diagnose`."""
    asked = read_request(call, body, DiagnoseRequest)
    check_job(call, wanted=asked.job)
    run = given_run(asked.run, call, progress, "run").run
    other = _second_run(asked.other, call, progress, "other")
    return _answer(diagnose(run, asked.query, k=asked.k, other=other), DiagnoseAnswer, call.accept)


def _answer(
    found: Result, kind: type[T], accept: str, change: Callable[[dict[str, Any]], dict[str, Any]] = dict
) -> Answer:
    """A result as an answer; what the record has no field for is in `more`."""
    if accepted(accept, (JSON, MARKDOWN)) == MARKDOWN:
        return Reply(200, MARKDOWN), found.to_markdown().encode()
    values = change(found.to_dict())
    values |= {name: [over_http(line) for line in values[name]] for name in _ADVICE if name in values}
    known = {name: value for name, value in values.items() if name in kind.__struct_fields__}
    more = {name: value for name, value in values.items() if name not in known}
    known |= {"more": more} if more and "more" in kind.__struct_fields__ else {}
    return Reply(200), msgspec.json.encode(msgspec.convert(known, kind))
