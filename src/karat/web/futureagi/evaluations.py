"""Future AGI's protocol in a worker: their requests are read and scored, and answered as their clients expect.

A row that cannot be scored has no output, and its reason says why. So does each row of a request with
a wrong value, such as k = 0: an error status would cost their clients three requests and three seconds, and some of
them would not show its words. A value of a wrong type, which no client sends, is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from time import perf_counter
from typing import Annotated, Any
from uuid import uuid4

import msgspec

from karat.compat.futureagi.inputs import read_contexts, read_cutoffs, read_rankings
from karat.compat.futureagi.scoring import Scored, Scorer
from karat.compat.futureagi.templates import CONTEXT_TEMPLATES, TEMPLATES, Template, find_template, listing
from karat.errors import BadArgument, KaratError
from karat.judges.model_judge import LEXICAL
from karat.web.api.allowed import allowed_model, short_name
from karat.web.messages import Call, Progress, Reply
from karat.web.problems import Refused, sentence
from karat.web.tasks import LATER, TOO_EARLY, Answer, json_answer, read_json, task

_THEIR_MODELS = ("turing", "protect")
"""Prefixes of models that only their service has; the heuristics of karat stand in for them."""
_PASSED = "Passed"
_LONGEST = 200
"""Characters in the name of a project, of a version, of an evaluation or of a model."""
_WORDS = 500
"""Characters of a reason that each row repeats."""
_PROCESSED = "Evaluation run accepted and is being processed."


class Row(msgspec.Struct):
    """The result of one row; the two last names are those that clients before 1.1 read."""

    name: str
    output: float | str | None
    reason: str
    runtime: int
    output_type: str
    eval_id: str
    model: str | None
    output_type_before: str = msgspec.field(name="outputType")
    eval_id_before: str = msgspec.field(name="evalId")


class Ticket(msgspec.Struct):
    """A row that was submitted and is not scored yet."""

    name: str
    output_type: str
    eval_id: str
    output_type_before: str = msgspec.field(name="outputType")
    eval_id_before: str = msgspec.field(name="evalId")


class Finished(msgspec.Struct):
    """The result of one row that was submitted. The inputs of the row are not kept."""

    eval_id: str
    name: str
    reason: str
    runtime: int
    model: str | None
    output_type: str
    value: float | str | None
    input_data: None = None
    error_localizer_enabled: bool = False


class Evaluation(msgspec.Struct):
    """A request for one evaluation. Fields that are not read are left out."""

    eval_name: str
    inputs: dict[str, str | list[Any] | dict[str, Any] | None]
    config: dict[str, Any] | None = None
    model: str | None = None
    is_async: bool | None = None


class PipelineEvaluation(msgspec.Struct):
    """One of the evaluations of a pipeline."""

    eval_template: str
    inputs: dict[str, str | list[Any] | dict[str, Any] | None]
    config: dict[str, Any] | None = None
    model_name: str | None = None


class Pipeline(msgspec.Struct):
    """A request for several evaluations."""

    project_name: Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST)]
    version: Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST)]
    eval_data: Annotated[list[PipelineEvaluation], msgspec.Meta(min_length=1)]


class _Asked:
    """An evaluation that a request asks for."""

    def __init__(self, call: Call, name: str, inputs: dict[str, Any], config: Any, model: str | None) -> None:
        self.name = name[:_LONGEST]
        self.model = short_name(model) if model in call.models else None if model is None else model[:_LONGEST]
        self._given, self._inputs, self._config, self._model, self._call = name, inputs, config, model, call
        # Only what may have too many rows is counted. Several k multiply the results, and a string may be a batch.
        values = inputs.values()
        sizes = [one.count("[") if isinstance(one, str) else len(one) for one in values if isinstance(one, str | list)]
        self._counted = _several(config) or max(sizes, default=0) > call.limits.rows

    @property
    def asks_a_model(self) -> bool:
        """True if a language model is called, which takes long."""
        return self._allowed(find_template(self._given)) not in (None, LEXICAL)

    def scored(self) -> list[Scored]:
        """One result per row, and per k if there are several."""
        if self._counted:
            self.count()
        return Scorer().scored(self._given, self._inputs, self._config, self._allowed(find_template(self._given)))

    def count(self) -> int:
        """The number of results, without scoring; anything wrong about the request is raised here, too."""
        template = find_template(self._given)
        self._allowed(template)
        count = len(self._rows(template)) * len(read_cutoffs(self._config, template) or [None])
        if count > self._call.limits.rows:
            raise Refused(
                413, f"at most {self._call.limits.rows:,} queries in one request", hint="several smaller requests"
            )
        return count

    def refused(self, error: KaratError) -> list[Scored]:
        """A result without output for each row, as far as the rows can be counted, if the request is wrong."""
        try:
            template = find_template(self._given)
        except KaratError:
            template = TEMPLATES["recall_at_k"]
        try:
            rows = len(self._rows(template))
        except KaratError:
            rows = 1
        return [Scored(None, sentence(error)[:_WORDS], template.output_type)] * max(
            1, min(rows, self._call.limits.rows)
        )

    def _rows(self, template: Template) -> Sequence[Any]:
        if template.name in CONTEXT_TEMPLATES:
            return read_contexts(self._inputs, template.needs)
        return read_rankings(self._inputs, template)

    def _allowed(self, template: Template) -> str | None:
        """The model to ask; only contexts need one, and only models that the operator allows are asked."""
        model = self._model
        if template.name not in CONTEXT_TEMPLATES or model is None or str(model).startswith(_THEIR_MODELS):
            return None
        try:
            return allowed_model(model, self._call.models)
        except Refused as error:
            hint = error.hint or "karat serve --allow-model NAME"
            raise BadArgument("this server may not ask this model", got=model, hint=hint) from error


@task("/sdk/get-evals")
def get_evals(call: Call, body: bytes, progress: Progress) -> Answer:
    """All evaluations."""
    return json_answer({"status": True, "result": listing()})


@task("/sdk/new-eval")
def new_eval(call: Call, body: bytes, progress: Progress) -> Answer:
    """The results of a request; status 202 and a ticket per row if they are to be computed later."""
    begin, given = perf_counter(), read_json(body, Evaluation)
    asked, good = _asked(call, given), True
    ids = call.arguments.get("ids") or uuid4().hex[:24]
    try:
        if given.is_async:
            kind, each = find_template(asked.name).output_type, _ids(ids, asked.count())
            tickets = [Ticket(asked.name, kind, one, kind, one) for one in each]
            return json_answer({"status": True, "result": [{"evaluations": tickets}]}, 202)
        if not call.arguments.get(LATER) and asked.asks_a_model:
            return json_answer(None, TOO_EARLY)
        scored = asked.scored()
    except KaratError as error:
        scored, good = asked.refused(error), False
    took = _milliseconds(begin)
    rows = [
        Row(asked.name, output, reason, took, kind, one, asked.model, kind, one)
        for (output, reason, kind), one in zip(scored, _ids(ids, len(scored)), strict=True)
    ]
    return json_answer({"status": good, "result": [{"evaluations": rows}]})


@task("/sdk/execution")
def execution(call: Call, body: bytes, progress: Progress) -> Answer:
    """The results of a request that was submitted, one JSON object per line."""
    begin, asked = perf_counter(), _asked(call, read_json(body, Evaluation))
    scored = asked.scored()
    took, ids = _milliseconds(begin), _ids(call.arguments["ids"], len(scored))
    rows = [
        Finished(one, asked.name, reason, took, asked.model, kind, output)
        for (output, reason, kind), one in zip(scored, ids, strict=True)
    ]
    return Reply(content_type="application/x-ndjson"), b"\n".join(map(msgspec.json.Encoder().encode, rows))


@task("/sdk/evaluate-pipeline")
def evaluate_pipeline(call: Call, body: bytes, progress: Progress) -> Answer:
    """Status 202 if a run of several evaluations can be computed; else the reason, without an error status."""
    given = read_json(body, Pipeline)
    try:
        for asked in _all_asked(call, given):
            asked.count()
    except KaratError as error:
        return json_answer({"status": False, "result": sentence(error)})
    run = {
        "message": _PROCESSED,
        "project_name": given.project_name,
        "version": given.version,
        "evaluation_run_id": call.arguments["id"],
    }
    return json_answer({"status": True, "result": run}, 202)


@task("/sdk/pipeline-run")
def pipeline_run(call: Call, body: bytes, progress: Progress) -> Answer:
    """The summary of a run: per evaluation the mean in per cent, and how many rows have no output."""
    given = read_json(body, Pipeline)
    outputs: dict[str, list[float | None]] = {}
    for asked in _all_asked(call, given):
        outputs.setdefault(asked.name, []).extend(map(_number, asked.scored()))
    means, missing = {}, {}
    for name, each in outputs.items():
        if known := [one for one in each if one is not None]:
            means[name] = 100 * fmean(known)
        if len(known) < len(each):
            missing[name] = len(each) - len(known)
    run = {"id": call.arguments["id"], "project": given.project_name, "version": given.version}
    return json_answer({**run, "results_summary": means, "rows_without_output": missing})


def _several(config: Any) -> bool:
    """True if k is a list."""
    given = config.get("params", config) if isinstance(config, dict) else None
    return isinstance(given, dict) and isinstance(given.get("k"), list)


def _number(scored: Scored) -> float | None:
    output = scored.output
    return float(output == _PASSED) if isinstance(output, str) else output


def _asked(call: Call, given: Evaluation) -> _Asked:
    return _Asked(call, given.eval_name, given.inputs, given.config, given.model)


def _all_asked(call: Call, given: Pipeline) -> list[_Asked]:
    return [_Asked(call, one.eval_template, one.inputs, one.config, one.model_name) for one in given.eval_data]


def _ids(prefix: str, count: int) -> list[str]:
    """UUIDs of the rows of a request: 24 hexadecimal digits in common, and 8 for the row."""
    front = f"{prefix[:8]}-{prefix[8:12]}-{prefix[12:16]}-{prefix[16:20]}-{prefix[20:24]}"
    return [f"{front}{row:08x}" for row in range(count)]


def _milliseconds(begin: float) -> int:
    return int((perf_counter() - begin) * 1000)
