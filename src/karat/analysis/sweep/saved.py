"""The folder of a sweep: a run file and the samples of each setting, and `sweep.json`, which says what they are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from inspect import isfunction
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from karat._internal.output import write_text
from karat._internal.source_code import source_of
from karat.analysis.sweep.grid import Setting, file_stems, key
from karat.errors import BadArgument, RunFileError, first_line
from karat.judges import JudgeLike, find_judge
from karat.run import Run
from karat.run.file import load

INDEX = "sweep.json"
_FORMAT = 1
_WHOLE = 64 * 2**20
"""Files up to this size are compared by their content, larger ones by size and time."""


class FailedSetting(NamedTuple):
    """A setting without a run, and the reason."""

    settings: Setting
    error: str


class SweepFolder:
    """A folder with the runs of one sweep."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.path = Path(folder)
        self._index = self._read()

    @property
    def exists(self) -> bool:
        """True if the folder has a sweep."""
        return bool(self._index)

    @property
    def metric(self) -> str | None:
        """The metric by which the settings were ranked last."""
        given = self._index.get("metric")
        return given if isinstance(given, str) else None

    @property
    def also(self) -> tuple[str, ...]:
        """The fields that are shown as medians."""
        return tuple(map(str, self._index.get("also", ())))

    def begin(self, collected: Mapping[str, str], evaluated: Mapping[str, str], *, restart: bool) -> None:
        """Continue the sweep of the folder, or begin one.

        Another retriever or gold set is refused. With other metrics or another judge, the saved samples are evaluated
        again: the runs of before are removed.
        """
        before = self._index.get("collected", {})
        restart = restart or not self._has_results()
        changed = [name for name in collected if before.get(name) != collected[name]] if self.exists else []
        if changed and not restart:
            what = " and ".join(changed)
            problem = f"{self.path} has a sweep with another {what}: its runs cannot be mixed with new ones"
            raise BadArgument(problem, hint=f'restart=True (--restart), or folder="{self.path}-2" (-o {self.path}-2)')
        if restart:
            self._remove(samples=True)
        elif self._index.get("evaluated") != dict(evaluated):
            self._remove(samples=False)
        if not self.exists or restart:
            self._check_free()
        self._index = {
            "karat_sweep": _FORMAT,
            "collected": dict(collected),
            "evaluated": dict(evaluated),
            "runs": [] if restart else self._index.get("runs", []),
        }

    def _check_free(self) -> None:
        """Refuse a folder in which other files have the names that a sweep writes."""
        if self.path.exists() and not self.path.is_dir():
            raise BadArgument(f"{self.path} is a file, not a folder", hint='folder="karat-sweep"')
        if self.path.is_dir() and any(self.path.glob("*.parquet")):
            problem = f"{self.path} has Parquet files that are not of a sweep"
            raise BadArgument(problem, hint=f'folder="{self.path}-2" (-o {self.path}-2)')

    def _has_results(self) -> bool:
        """True if a setting has a run or samples."""
        places = [self.path / entry["file"] for entry in self._entries()]
        return any(path.exists() for place in places for path in (place, *samples_of(place)))

    def _entries(self) -> Iterator[dict[str, Any]]:
        for entry in self._index.get("runs", []):
            name = entry.get("file") if isinstance(entry, dict) else None
            # Only files directly in the folder are touched, whatever the index says.
            if isinstance(name, str) and name == Path(name).name and isinstance(entry.get("settings"), dict):
                yield entry

    def places(self, settings: Sequence[Setting]) -> list[Path]:
        """The run file of each setting: that of before, or a new one."""
        known = {key(entry["settings"]): entry["file"] for entry in self._entries()}
        new = [one for one in settings if key(one) not in known]
        stems = file_stems(new, [Path(name).stem for name in known.values()])
        for one, stem in zip(new, stems, strict=True):
            known[key(one)] = f"{stem}.parquet"
            self._index["runs"].append({"settings": one, "file": known[key(one)]})
        self._index["last"] = [known[key(one)] for one in settings]
        for entry in self._entries():
            if entry["file"] in self._index["last"]:
                entry.pop("error", None)  # it is tried again
        return [self.path / file for file in self._index["last"]]

    def note_failure(self, setting: Setting, error: str) -> None:
        """Keep the reason why a setting has no run."""
        for entry in self._entries():
            if key(entry["settings"]) == key(setting):
                entry["error"] = error
        self._save()

    def failures(self, settings: Sequence[Setting] | None = None) -> list[FailedSetting]:
        """The settings that failed, of some or of all, in the order in which they were tried."""
        wanted = None if settings is None else set(map(key, settings))
        failed = [
            FailedSetting(entry["settings"], str(entry["error"])) for entry in self._entries() if "error" in entry
        ]
        return [one for one in failed if wanted is None or key(one.settings) in wanted]

    @property
    def missing(self) -> int:
        """The number of settings of the last sweep that were not tried."""
        last = [entry for entry in self._entries() if entry["file"] in self._index.get("last", ())]
        return sum(
            "error" not in entry and self.finished(self.path / entry["file"], entry["settings"]) is None
            for entry in last
        )

    def finished(self, place: Path, setting: Setting) -> Run | None:
        """The saved run of a setting, or None."""
        if not place.is_file():
            return None
        with suppress(RunFileError):
            run = load(place)
            if key(dict(run.provenance.settings)) == key(setting):
                return run
        return None

    def write(self, metric: str, also: Sequence[str]) -> None:
        """Write the index."""
        self._index |= {"metric": metric, "also": list(also)}
        self._save()

    def _save(self) -> None:
        import msgspec

        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadArgument(f"cannot write to {self.path}: {first_line(error)}", hint="another folder") from error
        write_text(self.path / INDEX, msgspec.json.format(msgspec.json.encode(self._index)).decode() + "\n")

    def runs(self) -> list[Run]:
        """Every finished run of the sweep, in the order of the settings."""
        found = [self.finished(self.path / entry["file"], entry["settings"]) for entry in self._entries()]
        return [run for run in found if run is not None]

    def _read(self) -> dict[str, Any]:
        import msgspec

        index = self.path / INDEX
        if not index.is_file():
            return {}
        try:
            found = msgspec.json.decode(index.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            raise BadArgument(f"{index} cannot be read: {first_line(error)}", hint="another folder") from error
        if (
            not isinstance(found, dict)
            or found.get("karat_sweep") != _FORMAT
            or not isinstance(found.get("runs"), list)
        ):
            raise BadArgument(f"{index} is not the index of a sweep", hint="another folder")
        return found

    def _remove(self, *, samples: bool) -> None:
        """Remove the run files of the index, and the samples on request."""
        for entry in self._entries():
            place = self.path / entry["file"]
            for path in (place, *(samples_of(place) if samples else ())):
                with suppress(OSError):
                    path.unlink(missing_ok=True)


def samples_of(place: Path) -> tuple[Path, Path]:
    """The samples of a run file, and the journal of their collection."""
    samples = place.with_name(f"{place.stem}.jsonl")
    return samples, samples.with_name(f"{samples.name}.collect")


def judge_digest(judge: JudgeLike) -> str:
    """A digest of a judge: its name, its settings and its model; of a function, its source."""
    found = find_judge(judge)
    source = digest(judge) if isfunction(judge) else ""
    return digest(f"{found.name} {sorted(found.settings.items())!r} {found.model} {source}")


def digest(given: Any) -> str:
    """A digest of an argument: the content of a file, the source of a function, the values of data."""
    hasher = blake2b(digest_size=16)
    for part in _parts(given):
        hasher.update(b"%d:" % len(part) + part)
    return hasher.hexdigest()


def _parts(given: Any) -> Iterator[bytes]:
    if isinstance(given, str | PathLike):
        path = Path(given)
        with suppress(OSError, ValueError):
            if path.is_file() or path.is_dir():
                yield from _files(path)
                return
        yield str(given).encode("utf-8", "backslashreplace")
    elif callable(given):
        yield source_of(given)
    else:
        yield _values(given)


def _files(path: Path) -> Iterator[bytes]:
    for file in [path] if path.is_file() else sorted(own for own in path.rglob("*") if own.is_file()):
        yield file.name.encode("utf-8", "backslashreplace") if path.is_dir() else b""
        about = file.stat()
        small = about.st_size <= _WHOLE
        yield file.read_bytes() if small else f"{about.st_size} {about.st_mtime_ns}".encode()


def _values(given: Any) -> bytes:
    """Data as JSON; frames by their rows."""
    import msgspec

    for method in ("to_dicts", "to_pylist"):
        if hasattr(given, method):
            given = getattr(given, method)()
    if hasattr(given, "to_dict") and hasattr(given, "columns"):
        given = given.to_dict("records")
    try:
        return msgspec.json.encode(given, enc_hook=repr)
    except (TypeError, ValueError, RecursionError):
        return repr(given).encode("utf-8", "backslashreplace")
