"""Files that are written: outputs are checked before work starts, files are atomic, signals leave no rest."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import glob, has_magic
from pathlib import Path
from shlex import quote
from threading import current_thread, main_thread
from time import time
from traceback import clear_frames
from typing import Any, BinaryIO, NoReturn, TextIO

from karat.errors import BadArgument, KaratError

Target = str | os.PathLike[str]
_SIGNALS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler}
"""The signals that end a process, and how they are handled usually."""
_SIGNALS |= {getattr(signal, name): signal.SIG_DFL for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)}
_FAR = 2**31 - 2
"""The position of the byte that is locked on Windows."""
_CANNOT_LOCK = {errno.ENOSYS, errno.ENOTSUP, errno.EINVAL, errno.ENOLCK}
"""The errors of file systems that know no locks."""
_NAME = 50
"""Characters of a target's name in the name of its temporary file; file systems take 255 bytes."""


_TEMPORARY = re.compile(r"\..{1,50}\.[0-9a-f]{16}\.tmp", re.DOTALL)
"""The names of temporary files."""


class Terminated(BaseException):
    """SIGTERM or SIGHUP, as an exception, so that temporary files are deleted. Its argument is the signal's number."""


@contextmanager
def clean_exit() -> Iterator[list[int]]:
    """Turn SIGTERM and SIGHUP into `Terminated` within the block; after it, the signal ends the process as usual.

    Yields the list of signals that came, with Ctrl-C. A handler of the caller stays in place. Only the main thread can
    handle signals: in others nothing changes.
    """
    came: list[int] = []

    def end(number: int, _frame: object) -> NoReturn:
        came.append(number)
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

    here = current_thread() is main_thread()
    handled = {one: usual for one, usual in _SIGNALS.items() if here and signal.getsignal(one) is usual}
    try:
        for one in handled:
            signal.signal(one, end)
        yield came
    except Terminated as error:
        if error.args[0] not in handled:
            raise
        clear_frames(error.__traceback__)  # closes generators that have temporary files
        signal.signal(error.args[0], signal.SIG_DFL)
        signal.raise_signal(error.args[0])
    finally:
        for one, usual in handled.items():
            signal.signal(one, usual)


def check_outputs(outputs: Mapping[str, Target | None], inputs: Iterable[Target | None] = ()) -> None:
    """Refuse, before work starts, an output that cannot be written, is an input, or is another output.

    Args:
        outputs: the path of each output by its option ("" in Python); None if it is not given.
        inputs: what is read: files, folders, patterns, "-" for standard input; addresses such as s3://… are ignored.
    """
    read = [os.fspath(one).removeprefix("file://") for one in inputs if one]
    options: dict[object, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        _check_writable(path)
        other = f"{option} {new_name(path)}".strip()
        for one in read:
            if reads := _reads(one, path):
                raise BadArgument(f"cannot write {path}: {reads}", hint=other)
        same = options.setdefault(_identity(path), option)
        if same != option and not is_special(path):
            raise BadArgument(f"{same} and {option} name the same file", got=os.fspath(path), hint=other)


def new_name(path: Target) -> Path:
    """Another name in the same folder, to suggest."""
    return Path(path).with_name(f"new-{Path(path).name}")


def _check_writable(path: Target) -> None:
    """Refuse a path that is no file, or that the system does not let us write; this is found out by trying."""
    name = os.fspath(path)
    if name in {"", "-"}:
        raise BadArgument(f'cannot write "{name}": expected the name of a file', hint="/dev/stdout")
    with _write_errors(path):
        target = _real(path)
        folder = target.parent
        if target.is_dir() or name.endswith(("/", os.sep)):
            raise BadArgument(f"cannot write {path}: it is a folder")
        if folder.exists() and not folder.is_dir():
            raise BadArgument(f"cannot write {path}: {folder} is not a folder")
        if not folder.exists():
            raise BadArgument(
                f"cannot write {path}: there is no folder {folder}", hint=f"mkdir -p {quote(str(folder))}"
            )
        if not is_special(path):
            with _temporary(target):
                pass


@contextmanager
def _write_errors(path: Target, others: Container[Exception] = ()) -> Iterator[None]:
    """Raise what the system refuses as an error that names the path, except `others`.

    A closed pipe at standard output is no problem of a file.
    """
    try:
        yield
    except KaratError:
        raise
    except (OSError, ValueError) as error:
        if error in others or (isinstance(error, BrokenPipeError) and _stream(path)):
            raise
        raise BadArgument(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error


def _reads(given: str, path: Target) -> str:
    """The reason why reading the input would read this path: the file, its folder or a pattern; "" if there is none."""
    if given == "-":
        with suppress(OSError):
            status = os.fstat(0)
            return "it is the input, too" if stat.S_ISREG(status.st_mode) and _of(status) == _identity(path) else ""
    if _identity(given) == _identity(path) and not is_special(path):
        return "it is an input, too"
    if os.path.isdir(given) and _real(path).is_relative_to(_real(given)):  # noqa: PTH112  # raises nothing
        return f"it is in the folder {given}, which is an input"
    if has_magic(given):
        matches = _real(path).match(str(Path(given).absolute()))
        matches = matches or _identity(path) in map(_identity, glob(given, recursive=True))  # noqa: PTH207
        return f"it matches {given}, which is an input" if matches else ""
    return ""


def _real(path: Target) -> Path:
    """The path of the file itself, without links."""
    return Path(os.path.realpath(path))


def _identity(path: Target) -> object:
    """The same value for every path of a file: also through links, and if it does not exist yet."""
    try:
        return _of(Path(path).stat())
    except OSError:
        return _real(path)
    except ValueError:  # a name that no file has
        return path


def _of(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def is_special(path: Target) -> bool:
    """True for a pipe, a device, and standard output or error, whatever they are: nothing is replaced there."""
    return (Path(path).exists() and not Path(path).is_file()) or _stream(path) is not None


def _stream(path: Target) -> TextIO | None:
    """Standard output or error, if the path is one of them, such as /dev/stdout, or the file that it goes to."""
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError, AttributeError):
            if stream is not None and _of(os.fstat(stream.fileno())) == _identity(path):
                return stream
    return None


@contextmanager
def atomic_path(path: Target) -> Iterator[Path]:
    """A temporary path next to the target, to be written in the block; it then replaces the target.

    A reader finds the old file or the new one, never half of one. If the block raises, the target stays as it was.
    A symbolic link is followed, so that it stays a link. A file keeps its permissions. A pipe or a device is written
    to directly.
    """
    if is_special(path):
        yield Path(path)
        return
    target = _real(path)
    with _temporary(target) as file:
        yield Path(file.name)
        os.fsync(file.fileno())
        file.close()
        Path(file.name).replace(target)
        sync_folder(target.parent)


@contextmanager
def _temporary(target: Path) -> Iterator[BinaryIO]:
    """A new file in the folder of the target, with the target's owner and permissions; deleted at the end."""
    old = target.stat() if target.exists() or target.is_symlink() else None
    if old is not None and not _may_replace(target, old):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    name = f".{target.name[:_NAME]}.{os.urandom(8).hex()}.tmp"
    with clean_exit(), _deleted(target.with_name(name)) as temporary, temporary.open("xb") as file:  # follows no link
        if old is not None and hasattr(os, "fchown"):
            with suppress(OSError):  # the owner cannot be kept
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
        yield file


def delete_leftovers(folder: Path, older: float = 3600.0) -> None:
    """Delete the temporary files in a folder that killed processes left, if they are older than some seconds."""
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):  # another process deletes it, too
            if _TEMPORARY.fullmatch(path.name) and path.stat().st_mtime < time() - older:
                path.unlink()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder in TMPDIR, deleted at the end."""
    from tempfile import gettempdir

    with _deleted(Path(gettempdir(), f"karat-{os.urandom(8).hex()}")) as folder:
        folder.mkdir(mode=0o700)
        yield folder


@contextmanager
def _deleted(path: Path) -> Iterator[Path]:
    """A path that is deleted after the block, also if a signal arrives while it is created or deleted."""
    from shutil import rmtree

    ended: BaseException | None = None
    try:
        yield path
    finally:
        for _ in (1, 2, 3):  # without a call before `try`, which could raise a signal
            try:
                rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
                break
            except BaseException as error:  # noqa: BLE001  # a signal is raised below; the rest does not matter
                ended = error
        if isinstance(ended, KeyboardInterrupt | Terminated):
            raise ended


def _may_replace(target: Path, old: os.stat_result) -> bool:
    """True unless a file is read-only, or in a folder such as /tmp, where only its owner may replace it."""
    folder = target.parent.stat()
    owners = {0, old.st_uid, folder.st_uid}
    return os.access(target, os.W_OK) and not (folder.st_mode & stat.S_ISVTX and os.geteuid() not in owners)


def sync_folder(folder: Path) -> None:
    """Make the new name in a folder permanent, where folders can be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def lock_file(file: BinaryIO, path: Target) -> None:
    """Refuse a file that another process writes, until this one closes it; where files can be locked."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(_FAR)  # a byte that nobody reads
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _CANNOT_LOCK:
            return
        raise BadArgument(f"another process is writing {path}", hint="another -o, or wait until it ends") from error


@contextmanager
def text_file(path: Target) -> Iterator[Callable[[str], None]]:
    """A function that writes to a text file, atomically; standard output and error are continued.

    Errors of the file name it; other errors of the block are raised as they are.
    """
    others: list[Exception] = []
    with _write_errors(path, others), _open_text(path) as file:

        def write(text: str) -> None:
            with _write_errors(path):
                file.write(text)

        try:
            yield write
        except Exception as error:
            others.append(error)
            raise


@contextmanager
def _open_text(path: Target) -> Iterator[TextIO]:
    stream = _stream(path)
    if stream is None:
        with atomic_path(path) as place, place.open("w", encoding="utf-8") as file:
            yield file
    else:
        stream.flush()
        with os.fdopen(os.dup(stream.fileno()), "w", encoding="utf-8") as file:
            yield file


def write_text(path: Target, text: str) -> None:
    """Write a text file atomically."""
    with text_file(path) as write:
        write(text)
