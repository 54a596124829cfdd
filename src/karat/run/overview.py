"""Overviews of run files, separate from runs: means from the scores alone, if a checksum says that all is whole."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from karat._internal.arrays import mean_defined
from karat._internal.panics import panics_as_errors
from karat._internal.parquet import check_checksum, check_parquet
from karat.errors import KaratError
from karat.run.check import META
from karat.run.file import load_content
from karat.run.file_version import PER_BYTE
from karat.run.means import rounded
from karat.run.metadata import KEY, read_metadata
from karat.samples.repeat_rows import REPEAT


class Overview(NamedTuple):
    """The little of a run that a list of runs shows."""

    queries: int
    mean: dict[str, float]
    judge: str
    convention: str


def read_overview(content: bytes, source: Path) -> Overview:
    """The overview of a run from the bytes of its file; `source` is for messages."""
    found = _of_scores(content, source)
    if found is not None:
        return found
    run = load_content(content, source)
    return Overview(len(run.queries), dict(run.mean), run.provenance.judge, run.convention.name)


def _of_scores(content: bytes, source: Path) -> Overview | None:
    """The overview without all other columns; None if they are needed, or the file cannot be read."""
    import polars as pl

    try:
        if not check_checksum(content):
            return None
        check_parquet(content, PER_BYTE)
        with panics_as_errors():
            written = pl.read_parquet_metadata(BytesIO(content)).get(KEY)
            if written is None or f"{META}{REPEAT}" in pl.read_parquet_schema(BytesIO(content)):
                return None
            metadata = read_metadata(written, str(source))
            metrics = [metric for metric in metadata.metrics if not metric.unit]
            names = [name for metric in metrics for name in metric.names]
            frame = pl.read_parquet(content, columns=[*names, "depth"])
    except (KaratError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return None
    except pl.exceptions.PolarsError:
        return None
    means = rounded({name: mean_defined(frame[name].to_numpy()) for name in names}, metrics, metadata.convention)
    return Overview(len(frame), means, metadata.provenance.judge, metadata.convention.name)
