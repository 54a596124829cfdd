"""Keys: a file of names and hashes. A key is shown once, when it is made; only its hash is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from karat._internal.output import write_text
from karat.errors import BadArgument, InputError, KaratError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_HINT = "karat serve --keys keys.json --new-key NAME"


class Keys:
    """The keys of a file: names, each with the hash of its key.

    A key has 256 random bits, so a plain SHA-256 cannot be reversed or guessed; a slow hash would only slow requests.
    """

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = dict(hashes)

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read a file of keys."""
        try:
            read: Any = json.loads(path.read_text("utf-8"))
        except FileNotFoundError as error:
            raise BadArgument(f"there is no file {path}", hint=f"karat serve --keys {path} --new-key NAME") from error
        except OSError as error:
            raise BadArgument(f"cannot read {path}: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"{path} is not a file of keys", hint=_HINT) from error
        good = isinstance(read, dict) and all(isinstance(one, str) and _HASH.fullmatch(one) for one in read.values())
        if not good:
            raise InputError(f"{path} is not a file of keys", hint=_HINT)
        return cls({name: one.lower() for name, one in read.items()})

    def __len__(self) -> int:
        return len(self._hashes)

    def __contains__(self, name: str) -> bool:
        return name in self._hashes

    def name_of(self, key: str, name: str | None = None) -> str | None:
        """The name of a key, None if there is no such key. If a name is given, the key must be that name's.

        Every hash is compared, each in constant time: the time tells nothing about the keys.
        """
        hashed, found = _hash(key), None
        for known, kept in self._hashes.items():
            if compare_digest(hashed, kept) and name in (None, known):
                found = known
        return found

    def name_in(self, headers: Mapping[str, str]) -> str | None:
        """The name of the key in the headers of a request, whose names are in lower case; None if it is wrong.

        `Authorization: Bearer KEY`, or `X-Api-Key: NAME` with `X-Secret-Key: KEY`; the latter are Future AGI's.
        """
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.name_of(bearer.strip())
        if "x-secret-key" in headers:
            return self.name_of(headers["x-secret-key"], headers.get("x-api-key", ""))
        return None


class KeyFile:
    """A file of keys, read again when it changes. While it is damaged or gone, the keys that it had are kept."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path, self._say = path, say
        self._state = self._found()
        self._keys = Keys.read(path)

    def name_in(self, headers: Mapping[str, str]) -> str | None:
        """The name of the key in the headers of a request, as of `Keys`."""
        state = self._found()
        if state != self._state:
            self._state = state
            try:
                self._keys = Keys.read(self._path)
            except KaratError as error:
                self._say(f"the keys are those from before: {error.problem}")
            else:
                self._say(f"{self._path} was read again: {len(self._keys)} keys")
        return self._keys.name_in(headers)

    def _found(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def new_key(path: Path, name: str) -> str:
    """Make a key, write its hash to the file, and return the key. A name has one key: a new one replaces it."""
    if not _NAME.fullmatch(name):
        raise BadArgument(
            "the name of a key has letters, digits, dots and dashes", got=name, hint="--new-key search-team"
        )
    known = Keys.read(path)._hashes if path.exists() else {}  # noqa: SLF001
    key = f"karat_{token_urlsafe(32)}"
    write_text(path, json.dumps({**known, name: _hash(key)}, indent=2) + "\n")
    path.chmod(0o600)
    return key


def _hash(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
