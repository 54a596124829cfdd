"""Overviews of run files, separate from runs: the little that a list of runs shows of each."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import NamedTuple

from karat.run.lazy_run import LazyRun
from karat.stats import Interval


class Overview(NamedTuple):
    """The little of a run that a list of runs shows."""

    name: str
    queries: int
    mean: dict[str, float]
    """The mean of each metric."""
    interval: dict[str, Interval]
    """The 95 % interval of each mean."""
    headline: list[str]
    """The metrics that are shown if there is no room for all."""
    judge: str
    convention: str
    gold_hash: str | None
    """A digest of the queries and their gold; None if the file does not have it."""
    commit: str
    """The git commit of the working directory in which the run was saved; empty if it is not known."""
    source: str
    """The file that the samples were read from."""


def read_overview(path: str | PathLike[str], shown: Path | None = None) -> Overview:
    """The overview of a run file; `shown` is its name in messages."""
    return overview_of(LazyRun.open(path, shown))


def overview_of(run: LazyRun) -> Overview:
    """The overview of a run file that is open."""
    return Overview(
        name=run.name,
        queries=run.queries,
        mean=dict(run.mean),
        interval=run.interval(),
        headline=run.headline,
        judge=run.provenance.judge,
        convention=run.convention.name,
        gold_hash=run.known_gold_hash,
        commit=run.commit,
        source=run.provenance.source,
    )
