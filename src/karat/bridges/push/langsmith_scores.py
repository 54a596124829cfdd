"""Scores as feedback in LangSmith: separate, because it loads the LangSmith client."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from langsmith import Client
from langsmith.utils import LangSmithConflictError, LangSmithError, LangSmithNotFoundError

from karat.bridges.push.span_scores import SpanScore
from karat.errors import BadArgument

_KEYS = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
_WORKERS = 8


class LangSmithFeedback:
    """Feedback on runs; its id is the same in every push, so that it is replaced."""

    batch = 64

    def __init__(self, endpoint: str | None, project: str | None, facts: Mapping[str, str]) -> None:
        if endpoint is None and not any(os.environ.get(name) for name in _KEYS):
            raise BadArgument("LangSmith needs a key", hint="export LANGSMITH_API_KEY=…")
        # Without a background thread every request returns its error here; sampling is for traces, not for scores.
        self._client = Client(api_url=endpoint, auto_batch_tracing=False, tracing_sampling_rate=1.0)
        self._facts = dict(facts)
        self._session = None
        if project is not None:
            try:
                self._session = self._client.read_project(project_name=project).id
            except LangSmithNotFoundError as error:
                raise BadArgument("LangSmith has no such project", got=project) from error

    def send(self, scores: Sequence[SpanScore]) -> list[str]:
        """Send feedback, several requests at a time, and return the reasons of what was refused."""
        with ThreadPoolExecutor(_WORKERS) as pool:
            return [reason for reason in pool.map(self._one, scores) if reason]

    def _one(self, score: SpanScore) -> str | None:
        try:
            run_id = UUID(score.span_id or score.trace_id)
        except ValueError:
            return f"not the id of a LangSmith run: {score.span_id or score.trace_id}"
        try:
            self._client.create_feedback(
                run_id, score.name, score=score.score, feedback_id=score.key, session_id=self._session,
                source_info={**self._facts, "query_id": score.query_id}, stop_after_attempt=2,
            )  # fmt: skip
        except LangSmithConflictError:
            self._client.update_feedback(score.key, score=score.score)
        except LangSmithNotFoundError:
            return f"LangSmith has no run {run_id}"
        except LangSmithError as error:
            if type(error) is not LangSmithError:  # the subclasses are errors of the connection, the key or the server
                raise
            return str(error)
        return None
