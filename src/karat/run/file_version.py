"""One version of a run file: opened for each read, and compared with the file that was opened first.

A file that another process replaces is another version: what is read of one version never mixes with the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOENT
from os import PathLike, fstat, stat_result, strerror
from pathlib import Path
from typing import BinaryIO

from karat._internal.panics import panics_as_errors
from karat._internal.parquet import MAGIC, Bytes, FileBytes, check_checksum, check_parquet
from karat.errors import KaratError, RunFileError, first_line, nearest_file

PER_BYTE = 1000
"""More values or bytes than this, in a byte of a large file, are refused before memory is allocated for them."""


@contextmanager
def damage_as_errors(source: Path) -> Iterator[None]:
    """Raise whatever a damaged file causes in the block as the RunFileError that names the file."""
    import polars as pl

    try:
        with panics_as_errors():
            yield
    except KaratError as error:
        if isinstance(error, RunFileError):
            raise
        got = "" if error.got is None else f" ({error.got})"
        raise RunFileError(f"{source} is a damaged run file: {error.problem}{got}") from error
    except (
        ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError, pl.exceptions.PolarsError,
    ) as error:  # fmt: skip
        raise RunFileError(f"{source} is a damaged run file: {first_line(error)}") from error


@contextmanager
def faults_as_errors(source: Path) -> Iterator[None]:
    """Raise an error of the disk in the block as the RunFileError that names the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, RunFileError):
            raise
        raise RunFileError(f"{source} cannot be read: {first_line(error)}") from error


def check_content(content: Bytes, source: Path) -> bool:
    """Refuse what is no Parquet file, or claims what it cannot hold; True if a checksum says that all is whole."""
    if content[: len(MAGIC)] != MAGIC:
        raise RunFileError(f"{source} is not a run file", hint=eval_hint(source))
    whole = check_checksum(content)
    check_parquet(content, PER_BYTE)
    return whole


def eval_hint(source: Path) -> str:
    """The command that makes a run file of a file that is none."""
    return f"karat eval {source} -o run.parquet"


class FileVersion:
    """A run file as it was when it was opened; reading it after a change raises an error."""

    def __init__(self, path: str | PathLike[str], shown: Path | None = None) -> None:
        self.path = Path(path)
        self.shown = self.path if shown is None else shown
        """The name in messages."""
        with faults_as_errors(self.shown):
            if not self.path.is_file():
                missing = RunFileError(f"no run file {self.shown}", hint=nearest_file(self.shown))
                raise missing from FileNotFoundError(ENOENT, strerror(ENOENT))
            with self.path.open("rb") as file:
                self._identity = _identity(fstat(file.fileno()))
        self.bytes = self._identity[2]

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The opened file, the same before and after the block."""
        with faults_as_errors(self.shown), self.path.open("rb") as file:
            self._check(file)
            try:
                with damage_as_errors(self.shown):
                    yield file
            finally:  # damage may be a change
                self._check(file)

    def _check(self, file: BinaryIO) -> None:
        if _identity(fstat(file.fileno())) != self._identity:
            raise RunFileError(f"{self.shown} was changed after it was opened")

    def check(self) -> bool:
        """Refuse a file that is damaged, or is no run; True if a checksum says that all is whole."""
        with self.open() as file:
            return check_content(FileBytes(file), self.shown)


def _identity(status: stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
