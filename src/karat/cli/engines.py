"""Who evaluates: this process, several, or a cluster."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from karat.errors import BadArgument

if TYPE_CHECKING:
    from karat.run import Run


def add_engine(command: ArgumentParser) -> None:
    """Let a command take the number of processes, or a cluster."""
    command.add_argument(
        "--jobs", metavar="N", type=int, default=1, help="judge texts in so many processes; the result is the same"
    )
    command.add_argument("--engine", choices=("here", "spark"), default="here", help="spark: on a cluster")
    command.add_argument("--master", default="local[*]", help="the cluster, such as spark://host:7077 (%(default)s)")


def evaluator(options: Namespace) -> Callable[..., Run]:
    """The function that evaluates, wherever it does."""
    if options.engine == "spark":
        return partial(_on_spark, options)
    from karat.evaluation import evaluate

    return partial(evaluate, jobs=options.jobs)


def _on_spark(options: Namespace, file: str, metrics: Any, *, skip_bad_rows: bool, **settings: Any) -> Run:
    if skip_bad_rows or options.jobs != 1:
        raise BadArgument("--skip-bad-rows and --jobs are not for a cluster", hint="a query that fails is told as such")
    from karat.scale.spark_files import evaluate_files

    settings.pop("memory", None)  # which is Spark's to keep within bounds
    return evaluate_files(file, metrics, master=options.master, **settings).run
