"""Rows that stand anywhere, sorted into temporary files so that each file has all rows of its queries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import Unavailable, first_line
from karat.samples.frames import ids_of

if TYPE_CHECKING:
    import polars as pl


def by_query(frames: Iterable[pl.DataFrame], query: str, parts: int) -> Iterator[pl.DataFrame]:
    """The same rows in so many parts by their query; within a part they keep their order."""
    import polars as pl

    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        files: list[list[Path]] = [[] for _ in range(parts)]
        for number, frame in enumerate(frames):
            ids = ids_of(frame[query])
            part = (ids.hash() % parts).alias("__part")
            for (own,), rows in (
                frame.with_columns(ids, part)
                .partition_by("__part", maintain_order=True, include_key=False, as_dict=True)
                .items()
            ):
                file = Path(folder) / f"{own}-{number}.arrow"
                _write(rows, file)
                files[own].append(file)
        for own_files in files:
            if own_files:
                yield pl.concat([pl.read_ipc(file) for file in own_files], how="vertical_relaxed")
                for file in own_files:
                    file.unlink()


def _write(rows: pl.DataFrame, file: Path) -> None:
    import polars as pl

    try:
        rows.write_ipc(file, compression="lz4")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise Unavailable(
            f"the rows of a query do not stand together, and to sort them {file.parent} was too small: "
            f"{first_line(error)}",
            hint="TMPDIR=/a/larger/folder; or sort the file by query",
        ) from error
