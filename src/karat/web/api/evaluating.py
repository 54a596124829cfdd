"""Evaluation in a worker: a request in; means, intervals, remarks and a table out, and the run into the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from karat._internal.progress import Progress as Bar
from karat._internal.writers import plain, to_csv
from karat.errors import BadArgument
from karat.pipeline import evaluate
from karat.report import measures, numbers, summaries
from karat.run import Run
from karat.run.frame import frame_of
from karat.samples.json_rows import Rows
from karat.web.api.allowed import convention_of, judge_of, metrics_of
from karat.web.api.answers import EvaluateAnswer, SliceMeans
from karat.web.api.bodies import EvaluateInput, Words
from karat.web.api.operations import ARROW, CSV, JSON, MARKDOWN
from karat.web.api.store import Store, check_name
from karat.web.api.uploads import read_evaluate
from karat.web.messages import Call, Reply
from karat.web.problems import Refused
from karat.web.tasks import JOB, Answer, Progress, Task, task

if TYPE_CHECKING:
    import polars as pl

_INTERVAL = 0.2
"""Seconds between two reports of progress."""


class Later(Exception):
    """Work that is only done as a job: it is asked for as one, or a language model is called."""


def job_task(name: str) -> Callable[[Task], Task]:
    """Register a function as a task, and as the task of a job: if the first raises `Later`, the other is done."""

    def register(function: Task) -> Task:
        def now_or_later(call: Call, body: bytes, progress: Progress) -> Answer:
            try:
                return function(call, body, progress)
            except Later:
                return Reply(202), b""

        task(f"{name}{JOB}")(function)
        return task(name)(now_or_later)

    return register


@job_task("evaluate")
def evaluate_task(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `POST /v1/evaluate`."""
    asked = read_evaluate(call, body)
    name = None if asked.store is False else check_name(asked.store)
    store = None if name is None else Store(call.store)
    form = accepted(call.accept, (JSON, CSV, ARROW, MARKDOWN))
    check_job(call, wanted=asked.job)
    run = run_of(asked, call, progress)
    content = None if form == JSON else _written(run, form)
    answer = summary_of(run, by=names(asked.by), summary=asked.summary) if form == JSON else None
    headers = {}
    if store is not None and name is not None:  # after everything that may fail
        place = store.add(run, name)
        headers = {"Location": f"/v1/runs/{place.id}", "X-Run-Id": place.id}
        if answer is not None:
            answer.id, answer.name = place.id, place.name
    if answer is None:
        return Reply(200, form, headers), content or b""
    if asked.table:
        answer.table = msgspec.Raw(frame_of(run).write_json().encode())
    return Reply(200, JSON, headers), msgspec.json.encode(answer)


def check_job(call: Call, *, wanted: bool) -> None:
    """Raise `Later` if this is to be a job and is none yet."""
    if wanted and not call.task.endswith(JOB):
        raise Later


def run_of(asked: EvaluateInput, call: Call, progress: Progress) -> Run:
    """Evaluate what a request has: data only, whatever it says."""
    judge = judge_of(asked.judge, call.models)
    settings: dict[str, Any] = {
        "metrics": metrics_of(asked.metrics), "judge": judge, "convention": convention_of(asked.convention)
    }  # fmt: skip
    check_job(call, wanted=judge.model is not None)
    for source in (asked.samples, asked.retrieved, asked.gold):
        check_rows(source, call.limits.rows)
    Bar.watcher = _watched(progress)
    try:
        return evaluate(
            asked.samples, retrieved=asked.retrieved, gold=asked.gold, at=asked.at, order=asked.order,
            merge=asked.merge, also=asked.also, skip_bad_rows=asked.skip_bad_rows, fields=asked.fields, **settings,
        )  # fmt: skip
    finally:
        Bar.watcher = None


def check_rows(source: Any, most: int) -> None:
    """Refuse more rows than a request may have; and a text, which karat would take for the path of a file."""
    if isinstance(source, str | bytes):
        raise BadArgument("samples are data, not a path")
    rows = source.rows if isinstance(source, Rows) else source
    sizes = [len(rows)] if rows is not None else []
    if isinstance(rows, Mapping):
        sizes += [len(column) for column in rows.values() if isinstance(column, list)]
    if max(sizes, default=0) > most:
        raise Refused(413, f"a request has at most {most} rows", hint="karat serve --max-rows")


def _watched(progress: Progress) -> Progress:
    """The same, called only now and then."""
    last = 0.0

    def watch(done: int, of: int) -> None:
        nonlocal last
        if (now := monotonic()) - last >= _INTERVAL:
            last = now
            progress(done, of)

    return watch


def accepted(accept: str, forms: Sequence[str]) -> str:
    """The first form that the client accepts; the first of all if it accepts anything."""
    wanted = [part.partition(";")[0].strip().lower() for part in accept.split(",") if part.strip()]
    for one in wanted or ["*/*"]:
        for form in forms:
            if one in (form, "*/*", f"{form.partition('/')[0]}/*"):
                return form
    raise Refused(406, "the answer has none of these forms", hint=", ".join(forms))


def _written(run: Run, form: str) -> bytes:
    return run.to_markdown().encode() if form == MARKDOWN else table_bytes(frame_of(run), form)


def table_bytes(frame: pl.DataFrame, form: str) -> bytes:
    """A table as CSV or as an Arrow stream."""
    if form == CSV:
        return to_csv(frame).encode()
    written = BytesIO()
    frame.write_ipc_stream(written)
    return written.getvalue()


def names(given: Words) -> list[str]:
    """Fields, one by one; a comma crosses two fields."""
    return ([given] if given else []) if isinstance(given, str) else given


def summary_of(run: Run, by: Sequence[str] = (), summary: Words = "") -> EvaluateAnswer:
    """The means of a run and all that belongs to them."""
    wanted = [one for text in names(summary) for one in text.replace(",", " ").split()]
    provenance = run.provenance
    return EvaluateAnswer(
        queries=len(run.queries),
        judged=run.judged,
        **_means(run),
        failures=run.failures,
        judge=provenance.judge,
        judge_reason=provenance.judge_reason,
        convention=run.convention.name,
        remarks=run.remarks(),
        by={
            fields: {str(value): SliceMeans(queries=len(part.queries), **_means(part)) for value, part in parts.items()}
            for fields, parts in ((fields, run.by(fields)) for fields in by)
        },
        summaries=plain(summaries.data(run, wanted).get("summaries", {})),
        numbers=plain(numbers.data(run).get("numbers", {})),
        measures=plain(measures.data(run) if run.measures else {}),
    )


def _means(run: Run) -> dict[str, Any]:
    intervals = {name: [float(end) for end in ends] for name, ends in run.interval().items()}
    return {"mean": dict(run.mean), "interval": intervals, "undefined": run.undefined}
