"""Scores out: the scores of each query, written back to the spans of a trace store from which the query came."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from typing import NamedTuple, Protocol

from karat._internal.progress import Progress
from karat.analysis.compare import chosen_metrics
from karat.bridges.push.span_scores import Outgoing, SpanScore, span_scores
from karat.errors import BadArgument, KaratError, Unavailable, first_line, unknown
from karat.llm.secrets import Secrets
from karat.metrics.flat_names import flat_name
from karat.run import Run
from karat.run.file import load

_DELAYS = (1.0, 3.0)
"""Seconds before a request is repeated that failed after others succeeded."""


class Destination(Protocol):
    """A trace store that takes scores."""

    batch: int
    """The number of scores of one request."""

    def __init__(self, endpoint: str | None, project: str | None, facts: Mapping[str, str]) -> None:
        """Connect; `facts` describe the run, and are stored with each score where that is possible."""

    def send(self, scores: Sequence[SpanScore]) -> list[str]:
        """Send scores and return the reasons of those that were refused; raise if the store cannot be reached."""


class _Known(NamedTuple):
    """A trace store that karat can push to: the class that does, and its package."""

    place: str
    package: str
    module: str
    projects: bool = False
    documents: bool = False
    flat: bool = False
    variable: str = ""
    """The environment variable that has the address of the server."""
    address: str = ""
    """The address that the package takes if none is given."""
    start: str = ""
    """The command that starts a server."""

    def unreachable(self, to: str, endpoint: str | None, error: Exception) -> Unavailable:
        """The error for a server that does not answer, with its address."""
        address = endpoint or os.environ.get(self.variable) or self.address
        hint = f"{self.start}, or --endpoint URL" if self.start else "--endpoint URL"
        return Unavailable(f"{to} at {_cleaned(address)}: {_reason(error)}", hint=hint)


DESTINATIONS = {
    "phoenix": _Known(
        "phoenix_scores:PhoenixAnnotations", "arize-phoenix-client", "phoenix", documents=True,
        variable="PHOENIX_COLLECTOR_ENDPOINT", address="http://localhost:6006", start="phoenix serve",
    ),
    "langsmith": _Known(
        "langsmith_scores:LangSmithFeedback", "langsmith", "langsmith", projects=True,
        variable="LANGSMITH_ENDPOINT", address="https://api.smith.langchain.com",
    ),
    "langfuse": _Known(
        "langfuse_scores:LangfuseScores", "langfuse", "langfuse",
        variable="LANGFUSE_BASE_URL", address="https://cloud.langfuse.com",
    ),
    "mlflow": _Known(
        "mlflow_scores:MLflowAssessments", "mlflow", "mlflow", flat=True,
        variable="MLFLOW_TRACKING_URI", start="mlflow server",
    ),
}  # fmt: skip


class Pushed(NamedTuple):
    """The outcome of a push."""

    sent: int
    failed: int
    """The number of scores that were refused, or that could not be sent."""
    skipped: dict[str, int]
    """The number of queries or scores that there was nothing to send for, by reason."""
    errors: dict[str, int]
    """The reasons of the failures, without secrets, each with the number of scores."""


def push(
    run: Run | str | PathLike[str], to: str, *, metrics: str | Sequence[str] | None = None, endpoint: str | None = None,
    project: str | None = None, name_prefix: str = "", documents: bool = False,
) -> Pushed:  # fmt: skip
    """Write the scores of each query back to the span it came from. Pushing again replaces what was pushed before.

    Args:
        run: a run, or the path of a run file, whose samples have the fields `span_id` and `trace_id`, as those read
            from traces have. A query without a span id of its own is scored as a whole trace.
        to: "phoenix", "langsmith", "langfuse" or "mlflow".
        metrics: the metrics and measures to send; default: all metrics of the run.
        endpoint: the address of the server; default: that of the environment variables of the package.
        project: the project of the spans, which LangSmith needs in some deployments.
        name_prefix: a text that each name begins with.
        documents: also send the grade of each retrieved document, to Phoenix.

    Returns:
        A `Pushed`: `sent`, `failed`, `skipped` (failed queries and undefined scores are not sent as 0) and `errors`.
        Raises `Unavailable` if the package is not installed, or if nothing could be sent.

    Example:
        >>> karat.push("run.parquet", "phoenix", metrics="recall@5", endpoint="http://localhost:6006")  # doctest: +SKIP
    """
    known = _known(to)
    if project is not None and not known.projects:
        raise BadArgument(f"{to} finds spans without a project; only langsmith takes one", got=project)
    outgoing = scores_to_push(run, to, metrics=metrics, name_prefix=name_prefix, documents=documents)
    where, _, name = known.place.partition(":")
    run = run if isinstance(run, Run) else load(run)
    facts = {"karat": run.provenance.karat, "judge": run.provenance.judge, "convention": run.provenance.convention}
    with _quiet(known.module):
        try:
            made: type[Destination] = getattr(import_module(f"karat.bridges.push.{where}"), name)
        except ImportError as error:
            if known.module not in str(error):
                raise
            problem = f"pushing to {to} needs the package {known.package}"
            raise Unavailable(problem, hint=f'pip install "{known.package}"') from error
        try:
            destination = made(endpoint, project, facts)
        except KaratError:
            raise
        except Exception as error:
            raise known.unreachable(to, endpoint, error) from error
        return _send(outgoing, destination, to, endpoint)


def scores_to_push(
    run: Run | str | PathLike[str], to: str, *, metrics: str | Sequence[str] | None = None, name_prefix: str = "",
    documents: bool = False,
) -> Outgoing:  # fmt: skip
    """The scores that `push` would send, with their spans; this needs no package and no server."""
    known = _known(to)
    if documents and not known.documents:
        raise BadArgument(f"{to} takes no scores of documents; only phoenix does")
    run = run if isinstance(run, Run) else load(run)
    wanted = metrics if metrics is None or isinstance(metrics, str) else " ".join(metrics)
    names = list(run.scores) if not wanted else chosen_metrics(wanted, list(run.columns), "metric in this run")
    written = flat_name if known.flat else str
    return span_scores(run, names, written=written, prefix=name_prefix, documents=documents)


def _known(to: str) -> _Known:
    if to not in DESTINATIONS:
        raise unknown("trace store", to, DESTINATIONS, f"one of: {', '.join(DESTINATIONS)}")
    return DESTINATIONS[to]


def _send(outgoing: Outgoing, destination: Destination, to: str, endpoint: str | None) -> Pushed:
    """Send all scores; a request that fails ends the push, since another push sends the rest."""
    total = len(outgoing.scores)
    errors: dict[str, int] = {}
    sent = 0
    with Progress(total, f"sending scores to {to}") as bar:
        for start in range(0, total, destination.batch):
            part = outgoing.scores[start : start + destination.batch]
            try:
                refused = _sent(part, destination, patient=sent > 0)
            except KaratError:
                raise
            except Exception as error:
                if not sent:
                    raise DESTINATIONS[to].unreachable(to, endpoint, error) from error
                errors[_reason(error)] = errors.get(_reason(error), 0) + total - start
                break
            for reason in map(_cleaned, refused):
                errors[reason] = errors.get(reason, 0) + 1
            sent += len(part) - len(refused)
            bar.step(len(part))
    return Pushed(sent, total - sent, outgoing.skipped, errors)


def _sent(part: Sequence[SpanScore], destination: Destination, *, patient: bool) -> list[str]:
    """Send one batch, if necessary three times; return the reasons of the scores that were refused."""
    for delay in _DELAYS if patient else ():
        try:
            return destination.send(part)
        except KaratError:
            raise
        except Exception:  # noqa: BLE001  # whatever the package raises if its server does not answer
            time.sleep(delay)
    return destination.send(part)


def _reason(error: BaseException) -> str:
    return _cleaned(f"{type(error).__name__}: {first_line(error)}")


def _cleaned(text: str) -> str:
    return Secrets().message(text)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence the warnings and the log of a package while karat reports its errors."""
    log = logging.getLogger(name)
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)
