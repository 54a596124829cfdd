"""Scores as feedback on MLflow's traces: separate, because it loads MLflow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

import mlflow
from mlflow.entities import AssessmentSource, Feedback, Trace
from mlflow.exceptions import MlflowException

from karat.bridges.push.span_scores import SpanScore
from karat.errors import BadArgument

_SOURCE = AssessmentSource(source_type="CODE", source_id="karat")
_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
_REFUSED = {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "NOT_FOUND"}


class MLflowAssessments:
    """Feedback on spans; that of the same name from karat is updated."""

    batch = 20

    def __init__(self, endpoint: str | None, project: str | None, facts: Mapping[str, str]) -> None:
        if endpoint is None and not os.environ.get("MLFLOW_TRACKING_URI"):
            raise BadArgument("MLflow needs the address of its server or file", hint="--endpoint http://localhost:5000")
        self._uri = endpoint or os.environ["MLFLOW_TRACKING_URI"]
        self._trace = lru_cache(mlflow.MlflowClient(tracking_uri=self._uri).get_trace)
        self._facts = dict(facts)

    def send(self, scores: Sequence[SpanScore]) -> list[str]:
        """Log or update feedback and return the reasons of what was refused."""
        with _connected(self._uri):
            return [reason for reason in map(self._one, scores) if reason]

    def _one(self, score: SpanScore) -> str | None:
        if score.trace_id is None:
            return f"no trace id of the span {score.span_id}"
        trace_id = f"tr-{score.trace_id}" if re.fullmatch("[0-9a-f]{32}", score.trace_id) else score.trace_id
        try:
            trace = self._trace(trace_id)
            if score.span_id and score.span_id not in {span.span_id for span in trace.data.spans}:
                return f"the trace {trace_id} has no span {score.span_id}"
            metadata = {**self._facts, "query_id": score.query_id}
            new = Feedback(name=score.name, value=score.score, source=_SOURCE, span_id=score.span_id, metadata=metadata)
            if (old := _old(trace, score)) is not None:
                mlflow.update_assessment(trace_id=trace_id, assessment_id=old, assessment=new)
            else:
                mlflow.log_assessment(trace_id, new)
        except MlflowException as error:
            if error.error_code not in _REFUSED:
                raise
            return str(error)
        return None


def _old(trace: Trace, score: SpanScore) -> str | None:
    """The id of the feedback of the same name that karat gave this span before."""
    for one in trace.info.assessments:
        if one.name == score.name and one.span_id == score.span_id and one.source.source_id == _SOURCE.source_id:
            return str(one.assessment_id)
    return None


@contextmanager
def _connected(uri: str) -> Iterator[None]:
    """Use this address, and report soon that nothing answers there; what was set before is restored."""
    before, retries = mlflow.get_tracking_uri(), os.environ.get(_RETRIES)
    mlflow.set_tracking_uri(uri)
    os.environ.setdefault(_RETRIES, "2")
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)
        if retries is None:
            del os.environ[_RETRIES]
