"""Text that is not UTF-8: which encoding it probably has, and the command that converts it."""

from __future__ import annotations

import shlex
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Iterator
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from karat.errors import InputError
from karat.samples.sources import open_unpacked, packing

_CHUNK = 1 << 20
_MARKS = {BOM_UTF32_LE: "UTF-32", BOM_UTF32_BE: "UTF-32", BOM_UTF16_LE: "UTF-16", BOM_UTF16_BE: "UTF-16"}
"""The bytes at the beginning of a file that name its encoding, the longest first."""
_CONTROLS = bytes(range(0x80, 0xA0))
"""Control characters in latin-1, which no text has; letters and quotes in Windows-1252."""


class Encoding(NamedTuple):
    """The encoding that a text probably has."""

    name: str
    iconv: str
    """Its name on the command line."""


_LATIN = Encoding("latin-1 (ISO-8859-1)", "ISO-8859-1")
_WINDOWS = Encoding("Windows-1252", "WINDOWS-1252")


def marked_encoding(content: str | bytes) -> str | None:
    """The encoding that the first bytes of a file (its path), or of bytes, name: UTF-16 or UTF-32."""
    if isinstance(content, bytes):
        head = content[:4]
    else:
        try:
            with open_unpacked(content) or nullcontext(BytesIO()) as file:
                head = file.read(4)
        except (OSError, EOFError, zlib.error):  # a damaged file, which is refused when it is read
            return None
    return next((name.lower() for mark, name in _MARKS.items() if head.startswith(mark)), None)


def recoded(content: bytes) -> bytes:
    """The same text in UTF-8, if its first bytes name another encoding."""
    encoding = marked_encoding(content)
    return content if encoding is None else content.decode(encoding).encode()


def encoding_error(name: str, content: str | bytes) -> InputError | None:
    """The error for a file (its path), or for bytes, that are not UTF-8; None if they are, or cannot be read."""
    try:
        line, bad, head = _first_bad_line(content)
    except (OSError, EOFError):
        return None
    guess = _by_first_bytes(head) or (_by_bytes(bad) if line else None)
    if not line and guess is None:
        return None
    if guess is None and b"\0" in bad:
        return InputError(f"{name}: not UTF-8 text, but binary", hint="a text file")
    problem = f"{name}: line {line or 1} is not UTF-8"
    if guess is None and _is_mostly_utf8(bad):
        return InputError(f"{problem}, other lines are", hint=_command(content, "iconv -c -f UTF-8 -t UTF-8"))
    if guess is None:
        return InputError(problem, hint=_command(content, "iconv -f ENCODING -t UTF-8"))
    return InputError(
        f"{problem}; the file looks like {guess.name}", hint=_command(content, f"iconv -f {guess.iconv} -t UTF-8")
    )


def _first_bad_line(content: str | bytes) -> tuple[int, bytes, bytes]:
    """The number of the first line that is not UTF-8, or 0; the text around it, and the first bytes of the file."""
    number, head = 1, b""
    for chunk in _chunks(content):
        head = head or chunk
        try:
            chunk.decode()
        except UnicodeDecodeError as error:
            return number + chunk[: error.start].count(b"\n"), chunk, head
        number += chunk.count(b"\n")
    return 0, b"", head


def _chunks(content: str | bytes) -> Iterator[bytes]:
    """Whole lines, about a megabyte at a time."""
    if isinstance(content, bytes):
        yield content
        return
    with open_unpacked(content) or nullcontext(BytesIO()) as file:
        while chunk := file.read(_CHUNK):
            yield chunk + file.readline()


def _by_first_bytes(head: bytes) -> Encoding | None:
    """UTF-16 and UTF-32, by their mark or by the zero bytes of plain letters."""
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return Encoding(name, name)
    zeros = [head[:1000][odd::2].count(0) for odd in (0, 1)]
    if max(zeros) <= len(head[:1000]) / 8 or min(zeros) > max(zeros) / 4:
        return None
    name = "UTF-16BE" if zeros[0] > zeros[1] else "UTF-16LE"
    text = head[:1000].decode(name, errors="ignore")
    return Encoding("UTF-16", name) if all(ch.isprintable() or ch.isspace() for ch in text) else None


def _by_bytes(text: bytes) -> Encoding | None:
    """A Western encoding with one byte per letter, if the text can be one."""
    if _is_mostly_utf8(text) or b"\0" in text:
        return None
    if not set(_CONTROLS) & set(text):
        return _LATIN
    try:
        text.decode("cp1252")
    except UnicodeDecodeError:
        return None
    return _WINDOWS


def _is_mostly_utf8(text: bytes) -> bool:
    """True if more letters are valid UTF-8 than not, as in a file with a few damaged bytes."""
    decoded = text.decode(errors="replace")
    bad = decoded.count("\ufffd")
    return sum(not ch.isascii() for ch in decoded) - bad > bad


def _command(content: str | bytes, convert: str) -> str:
    """The command line that converts the file."""
    if isinstance(content, bytes):
        return f"{convert} FILE | karat eval -"
    path = Path(content)
    packed = packing(path) == "gzip"
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    source, target = (shlex.quote(str(one)) for one in (path, plain.with_name(f"{plain.stem}.utf8{plain.suffix}")))
    return f"gzip -dc {source} | {convert} > {target}" if packed else f"{convert} {source} > {target}"
