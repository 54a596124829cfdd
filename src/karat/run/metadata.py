"""The metadata of a run file: provenance, notes and convention as JSON, with the type of every value checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from math import isnan, nan
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, get_args, get_type_hints

from karat._internal.grammar import parse_call
from karat._internal.parquet import Damaged
from karat.conventions import CONVENTIONS, STANDARD, Convention
from karat.conventions.convention import questions
from karat.errors import KaratError, RunFileError
from karat.metrics import MEASURES, METRICS, Metric, find_metric, parse
from karat.metrics.names import more_is_better, parse_stored
from karat.metrics.registry import STORED
from karat.run.provenance import Provenance
from karat.run.run import Run

KEY = "karat"
"""The key of karat's own in the metadata of a Parquet file."""
_FORMAT = 1
_NAN = "nan"
_STORED_AS = {"renames": "calls"}
"""Fields of a convention that run files store under another name."""
_MOST = 2**53
"""The largest count: larger numbers are not exact in JSON."""


class ItemsAbout(TypedDict):
    """The part of the items that is stored, and the field from which gold has its labels."""

    places: int
    whole: bool
    label: Literal["id", "text"] | None
    lengths: NotRequired[bool]


class _Note(TypedDict):
    kind: str
    count: NotRequired[int]
    of: NotRequired[int]
    examples: NotRequired[list[str]]
    sums: NotRequired[dict[str, float]]


class _Provenance(TypedDict):
    karat: str
    metrics: list[str]
    judge: str
    judge_reason: str
    compares: NotRequired[str]
    judge_settings: NotRequired[dict[str, Any]]
    convention: str
    tokens: NotRequired[str]
    merge: NotRequired[str]
    also: NotRequired[list[str]]
    commit: NotRequired[str]
    settings: NotRequired[dict[str, Any]]
    source: str
    notes: list[dict[str, Any] | str]
    missing: int
    extra: int
    skipped: int


class _Written(TypedDict):
    format: int
    provenance: _Provenance
    convention: dict[str, Any]
    gold_hash: NotRequired[str]
    open: NotRequired[bool]
    items: NotRequired[ItemsAbout | None]
    more_is_better: NotRequired[dict[str, bool]]
    """The direction of each custom metric; left out if there is none."""


class Metadata(NamedTuple):
    """The metadata of a run file."""

    provenance: Provenance
    metrics: tuple[Metric, ...]
    convention: Convention
    incomplete_gold: bool
    items: ItemsAbout | None
    gold_hash: str | None
    """The digest of the queries and their gold; None if the file has none."""


def write_metadata(run: Run) -> str:
    """The metadata of a run as JSON."""
    import msgspec

    items, gold = run.stored_items, run.all_hits.gold_items
    about = {
        "format": _FORMAT,
        "provenance": run.provenance.to_dict(run.commit),
        "convention": write_choices(run.convention),
        "gold_hash": run.gold_hash,
        "open": gold.incomplete,
        "items": None
        if items is None
        else {**items.extent._asdict(), "label": items.label_field(gold), "lengths": True},
    }
    if directions := _directions(run.provenance.metrics):
        about["more_is_better"] = directions
    return msgspec.json.encode(about).decode()


def _directions(metrics: Iterable[str]) -> dict[str, bool]:
    """If more is better, for each custom metric of which it is known."""
    names = {metric.name for metric in map(parse_stored, metrics)}
    custom = sorted(name for name in names if not _is_built_in(name))
    return {name: known for name in custom if (known := more_is_better(name)) is not None}


def read_metadata(text: str, file: str) -> Metadata:
    """The metadata from its JSON; raises Damaged, or an error of karat, if a value is missing or has another type."""
    import msgspec

    try:
        given = msgspec.json.decode(text)
        if isinstance(given, dict) and isinstance(given.get("format"), int) and given["format"] > _FORMAT:
            raise RunFileError(f"{file} was written by a newer karat")
        about = msgspec.convert(given, _Written)
        for note in about["provenance"]["notes"]:
            _check_note(note if isinstance(note, str) else msgspec.convert(note, _Note))
        convention = read_choices(_with_order(about))
    except msgspec.MsgspecError as error:
        raise Damaged(f"its metadata: {error}") from error
    except RecursionError as error:
        raise Damaged("its metadata are nested too deeply") from error
    written: Mapping[str, Any] = about["provenance"]
    for name in ("missing", "extra", "skipped"):
        _check_count(name, written[name])
    provenance = Provenance.from_dict({**_of_judge_name(written["judge"]), **written})
    convention = _sorted_if_noted(convention, provenance, about["convention"])
    STORED.update(about.get("more_is_better", {}))
    items = about.get("items")
    if items is not None and not 0 < items["places"] < _MOST:
        raise Damaged(f"the number of stored ranks is {items['places']}")
    return Metadata(
        replace(provenance, convention=convention.name),
        tuple(map(_metric, provenance.metrics)),
        convention,
        about.get("open", False),
        items,
        about.get("gold_hash"),
    )


def _check_note(note: _Note | str) -> None:
    if not isinstance(note, str):
        for name in ("count", "of"):
            _check_count(f"{name} of a note", note.get(name, 0))


def _check_count(name: str, value: Any) -> None:
    if not 0 <= value < _MOST:
        raise Damaged(f"{name} is {value}; expected a number from 0")


def _metric(text: str) -> Metric:
    """A metric with its settings and cutoffs; only those of karat's own metrics are known."""
    metric = parse_stored(text)
    return parse(text) if _is_built_in(metric.name) else metric


def _is_built_in(name: str) -> bool:
    """True if a metric or measure of this name is karat's own."""
    return name in {*METRICS, *MEASURES} and find_metric(name).built_in


def _of_judge_name(name: str) -> dict[str, Any]:
    """The `compares` and the settings of a judge, for files of karat 0.1, which have only its name."""
    try:
        call = parse_call(name)
    except KaratError:
        return {"compares": "text"}
    compares = {"ids": "id", "contains": "quote", "spans": "span", "claims": "claim", "relevance": "claim"}
    kind = "doc" if call.named.get("at") == "doc" else compares.get(call.name, "text")
    return {"compares": kind, "judge_settings": dict(call.named)}


def _with_order(about: _Written) -> dict[str, Any]:
    """The choices of the convention; those of files without the order of lists have that of the library."""
    known = CONVENTIONS.get(about["provenance"]["convention"], STANDARD)
    return {"order": known.order, **about["convention"]}


def _sorted_if_noted(convention: Convention, provenance: Provenance, written: Mapping[str, Any]) -> Convention:
    """The convention of a run. Files without the order of lists sorted them, which matters only if a note says so."""
    sorted_lists = any(note.kind in ("reordered_by_score", "ties_by_id") for note in provenance.notes)
    return convention.adjusted({"order": "score"}) if sorted_lists and "order" not in written else convention


def write_choices(convention: Convention) -> dict[str, Any]:
    """The choices as JSON values."""
    names = [field.name for field in fields(convention)]
    return {_STORED_AS.get(name, name): _written(getattr(convention, name)) for name in names}


def _written(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _written(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_written(one) for one in value]
    return _NAN if isinstance(value, float) and isnan(value) else value


def read_choices(written: Mapping[str, Any]) -> Convention:
    """The convention that was written; a choice that is not in the file is that of the standard."""
    names = {stored: name for name, stored in _STORED_AS.items()}
    choices = {names.get(name, name): value for name, value in written.items()}
    convention = Convention(**{name: _read(name, value) for name, value in choices.items()})
    for metric, own in convention.exceptions.items():
        if not own.keys() <= questions().keys():
            raise Damaged(f"the convention has an unknown choice for {metric}")
        special = {name: _read(name, _written(value)) for name, value in own.items()}
        replace(convention, **special, exceptions={})  # checks the values
    return convention


def _read(name: str, value: Any) -> Any:
    """The value of a field of a convention, of its type."""
    import msgspec

    hint = _hints().get(name)
    if hint is None:
        raise Damaged(f'the convention has an unknown choice "{name}"')
    return msgspec.convert(_of_json(value, hint), hint)


@cache
def _hints() -> dict[str, Any]:
    """The types of the fields of a convention."""
    return get_type_hints(Convention)


def _of_json(value: Any, hint: Any = float) -> Any:
    """JSON has neither tuples nor NaN, which older files write as null."""
    if isinstance(value, dict):
        return {name: _of_json(one, float | None) for name, one in value.items()}
    if isinstance(value, list):
        return tuple(map(_of_json, value))
    if hint is float and value is None:
        return nan
    return nan if value == _NAN and (hint is float or float in get_args(hint)) else value
