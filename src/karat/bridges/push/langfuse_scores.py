"""Scores in Langfuse: separate, because it loads the Langfuse client."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from langfuse.api import LangfuseAPI
from langfuse.api.core import ApiError
from langfuse.api.scores.types.create_score_request import CreateScoreRequest

from karat.bridges.push.span_scores import SpanScore
from karat.errors import BadArgument

_CLOUD = "https://cloud.langfuse.com"
_REFUSED = {400, 404, 422}


class LangfuseScores:
    """Scores of observations; one with the same id and time is replaced."""

    batch = 100

    def __init__(self, endpoint: str | None, project: str | None, facts: Mapping[str, str]) -> None:
        given = os.environ.get
        public, secret = given("LANGFUSE_PUBLIC_KEY"), given("LANGFUSE_SECRET_KEY")
        if not (public and secret):
            raise BadArgument("Langfuse needs two keys", hint="export LANGFUSE_PUBLIC_KEY=… LANGFUSE_SECRET_KEY=…")
        address = endpoint or given("LANGFUSE_BASE_URL") or given("LANGFUSE_HOST") or _CLOUD
        self._scores = LangfuseAPI(
            base_url=address, username=public, password=secret, x_langfuse_public_key=public,
            x_langfuse_sdk_name="karat",
        ).scores  # fmt: skip
        self._facts = dict(facts)

    def send(self, scores: Sequence[SpanScore]) -> list[str]:
        """Send scores in one request and return the reasons of those that were refused."""
        known = [score for score in scores if score.trace_id]
        refused = [f"no trace id of the span {score.span_id}" for score in scores if not score.trace_id]
        try:
            answer = self._scores.create(request=[self._request(score) for score in known]) if known else None
        except ApiError as error:
            if error.status_code not in _REFUSED:
                raise ConnectionError(f"Langfuse answered with status {error.status_code}") from error
            return [*refused, *[f"status {error.status_code}: {error.body}"] * len(known)]
        count = getattr(answer, "rejected", 0)
        reasons = [error.message for error in getattr(answer, "errors", ())]
        return [*refused, *(reasons + ["rejected by Langfuse"] * count)[:count]]

    def _request(self, score: SpanScore) -> CreateScoreRequest:
        of_span = {"observation_id": score.span_id} if score.span_id else {}
        return CreateScoreRequest(
            id=str(score.key), trace_id=score.trace_id, name=score.name, value=score.score, data_type="NUMERIC",
            timestamp=_moment(score.time), metadata={**self._facts, "query_id": score.query_id}, **of_span,
        )  # fmt: skip


def _moment(time: str | None) -> datetime:
    """The time of the span, or else the beginning of this day: a score is replaced only by one of the same time."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if time is None:
        return today
    if time.replace(".", "", 1).isdecimal():
        seconds = float(time)
        while seconds > 1e11:  # milliseconds, microseconds or nanoseconds
            seconds /= 1000
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    try:
        read = datetime.fromisoformat(time)
    except ValueError:
        return today
    return read if read.tzinfo else read.replace(tzinfo=UTC)
