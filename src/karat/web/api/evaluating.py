"""Evaluation in a worker: a request in; means, intervals, remarks and a table out, and the run into the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from karat.samples.dialects import is_long, long_column
from karat.samples.json_rows import Rows
from karat.web.api.allowed import convention_of, judge_of, metrics_of, without_addresses
from karat.web.api.answers import EvaluateAnswer, SliceMeans
from karat.web.api.bodies import EvaluateInput, Words
from karat.web.api.operations import ARROW, CSV, JSON, MARKDOWN
from karat.web.api.store import Store, check_name
from karat.web.api.uploads import read_evaluate
from karat.web.messages import Call, Progress, Reply
from karat.web.problems import Refused
from karat.web.tasks import JOB, Answer, Task, check_answer, task

if TYPE_CHECKING:
    import polars as pl

_MOST_SCORES = 20_000_000
"""Scores of a request: queries times columns."""
_FEW = 1000
"""Lines of a long table up to which its queries are not counted."""
_WEIGHT = re.compile(r"[01](\.[0-9]{0,3})?")
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
    if answer is not None and asked.table:
        answer.table = msgspec.Raw(content := frame_of(run).write_json().encode())
    check_answer(len(content or b""), call)
    headers = {}
    if store is not None and name is not None:  # after everything that may fail
        place = store.add(run, name)
        headers = {"Location": f"/v1/runs/{place.id}", "X-Run-Id": place.id}
        if answer is not None:
            answer.id, answer.name = place.id, place.name
    if answer is None:
        return Reply(200, form, headers), content or b""
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
    columns = sum(len(metric.columns) for metric in settings["metrics"])
    sources = (asked.samples, asked.retrieved, asked.gold)
    _Scores.add(call, columns * max(check_queries(one, call.limits.rows, asked.fields) for one in sources))
    Bar.watcher = _watched(progress)
    try:
        run = evaluate(
            asked.samples, retrieved=asked.retrieved, gold=asked.gold, at=asked.at, order=asked.order,
            merge=asked.merge, also=asked.also, skip_bad_rows=asked.skip_bad_rows, fields=asked.fields, **settings,
        )  # fmt: skip
    finally:
        Bar.watcher = None
    return run if judge.model is None else _named_shortly(run, call.models)


def _named_shortly(run: Run, models: Sequence[str]) -> Run:
    """The same run, with the names of the operator's models, but without their addresses."""
    made = run.provenance
    settings = {
        name: without_addresses(value, models) if isinstance(value, str) else value
        for name, value in made.judge_settings.items()
    }
    return run.replace(provenance=replace(made, judge=without_addresses(made.judge, models), judge_settings=settings))


class _Scores:
    """The scores of all runs of a call: a worker answers one call at a time."""

    call: Call | None = None
    count = 0

    @classmethod
    def add(cls, call: Call, count: int) -> None:
        """Count those of one more run, and refuse too many."""
        cls.call, cls.count = call, count + (cls.count if call is cls.call else 0)
        if cls.count > _MOST_SCORES:
            problem = f"at most {_MOST_SCORES:,} scores in one request: queries, each with every metric and cutoff"
            raise Refused(413, problem, got=f"{cls.count:,}", hint="fewer cutoffs")


def check_queries(source: Any, most: int, fields: Mapping[str, str] | None = None) -> int:
    """The queries of a source. Too many are refused, and so is a text, which karat would take for a path."""
    if isinstance(source, str | bytes):
        raise BadArgument("samples are data, not a path")
    rows = source.rows if isinstance(source, Rows) else source
    if rows is None or not (lines := _lines(rows)):
        return 0
    count = lines if lines <= min(most, _FEW) else _queries(rows, fields or {})
    if count > most:
        raise Refused(413, f"at most {most:,} queries in one request", hint="several smaller requests")
    return count


def _lines(rows: Any) -> int:
    """The rows of a table, or the keys of a mapping, whichever are more."""
    sizes = [len(column) for column in rows.values() if isinstance(column, list)] if isinstance(rows, Mapping) else []
    return max([len(rows), *sizes])


def _queries(rows: Any, fields: Mapping[str, str]) -> int:
    """The queries of a table: of one with a row per item, the different ids; else each row is one."""
    ours = {theirs: name for name, theirs in fields.items()}
    is_frame = hasattr(rows, "columns")
    if not is_frame and not (isinstance(rows, list) and isinstance(rows[0], Mapping)):
        return _lines(rows)
    given = rows.columns if is_frame else list(rows[0])
    columns = {ours.get(name, name): name for name in given}
    if not is_long(list(columns)) or (found := long_column(list(columns), "query")) is None:
        return _lines(rows)
    name = columns[found]
    if is_frame:
        return int(rows[name].n_unique())
    return len({str(row.get(name)) if isinstance(row, Mapping) else "" for row in rows})


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
    """The form that the client prefers, by its weights, then by its order; the first of all if it accepts anything."""
    wanted = [_weighed(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]
    refused = {one for one, weight in wanted if weight <= 0}
    for one, weight in sorted(wanted, key=lambda each: -each[1]):
        for form in forms:
            if weight > 0 and form not in refused and one in (form, "*/*", f"{form.partition('/')[0]}/*"):
                return form
    raise Refused(406, "the answer has none of these forms", hint=", ".join(forms))


def _weighed(part: str) -> tuple[str, float]:
    """A media type of a header with its weight, such as `text/csv;q=0.5`; a weight that is none is 1."""
    form, *settings = (one.strip().lower() for one in part.split(";"))
    given = next((one.removeprefix("q=").strip() for one in settings if one.startswith("q=")), "1")
    return form, float(given) if _WEIGHT.fullmatch(given) else 1.0


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
