"""A gate on GitHub Actions: annotations, at the lines of queries in the golden file; a step summary; outputs."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from karat._internal.display import number, sanitize
from karat.analysis.checks import Check
from karat.analysis.gate import Gate, read_ids
from karat.errors import SIGNS, KaratError
from karat.report.gate import subject, summary
from karat.report.remarks import no_baseline
from karat.samples.dialects import KARAT, LONG, id_column
from karat.samples.keys import as_id, is_id

SUMMARY_BYTES = 1_000_000
"""The largest step summary: GitHub shows none above 1 MiB."""
_SHOWN = 10
"""GitHub shows this many annotations of a kind per step."""
_CUT = "\n\n… The summary was cut here: GitHub shows at most 1 MB. `karat gate --markdown FILE` writes all of it.\n"
_TITLE = "karat gate"
_JSON_NAMES = sorted({*LONG["query"], *(theirs for theirs, ours in KARAT.fields.items() if ours == "id")} - {"query"})
_JSON_ID = re.compile(rf'"(?:{"|".join(_JSON_NAMES)})"\s*:\s*("(?:[^"\\]|\\.)*"|-?[\d.]+)')
_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY_ESCAPES = _ESCAPES | str.maketrans({":": "%3A", ",": "%2C"})


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int


def workflow_command(kind: str, message: str, **properties: object) -> str:
    """A workflow command such as `::error file=…,line=…::message`, in which the values are escaped."""
    given = ",".join(
        f"{name}={str(value).translate(_PROPERTY_ESCAPES).translate(SIGNS)}" for name, value in properties.items()
    )
    return f"::{kind}{' ' if given else ''}{given}::{sanitize(message).translate(_ESCAPES)}"


def annotate(gate: Gate, places: Mapping[str, Place]) -> list[str]:
    """An error per failed check, those of slices last, at the line of a must-pass query; a warning if undecided."""
    failed = sorted((check for check in gate.checks if check.failed), key=lambda check: check.by is not None)
    lines = [_error(check, places) for check in failed]
    if len(lines) > _SHOWN:
        more = len(lines) - _SHOWN + 1
        lines[_SHOWN - 1 :] = [workflow_command("error", f"{more} more checks failed: {summary(gate)}", title=_TITLE)]
    if gate.counts["undecided"]:
        kind = "error" if gate.verdict == "undecided" or gate.fail_undecided else "warning"
        lines.append(workflow_command(kind, " ".join([f"{summary(gate)}.", *no_baseline(gate)]), title=_TITLE))
    return lines


def _error(check: Check, places: Mapping[str, Place]) -> str:
    about = ", ".join(filter(None, (check.rule, subject(check))))
    place = places.get(check.query or "")
    where = {} if place is None else {"file": place.file, "line": place.line}
    return workflow_command("error", f"{about}: {check.text}", **where, title=_TITLE)


def undecided_annotation(error: KaratError) -> str:
    """The annotation if the gate could not be decided."""
    return workflow_command("error", " ".join(map(str.strip, str(error).splitlines())), title=_TITLE)


def outputs(gate: Gate | None) -> str:
    """Lines for `$GITHUB_OUTPUT`: the verdict, the number of checks, and the first metric; None: an error."""
    if gate is None:
        return "passed=false\nverdict=undecided\n"
    metric = gate.rules[0].metric
    values = {
        "passed": str(gate.passed).lower(),
        "verdict": gate.verdict,
        "checks": len(gate.checks),
        **{f"checks_{verdict}": count for verdict, count in gate.counts.items()},
        "metric": metric,
        "mean": number(gate.run.with_repeats.summary("mean")[metric].value, 6),
    }
    return "".join(f"{name}={sanitize(str(value))}\n" for name, value in values.items())


def step_summary(text: str, used: int = 0) -> str:
    """The Markdown for `$GITHUB_STEP_SUMMARY`, cut at the end of a line if the file would become too large."""
    room = SUMMARY_BYTES - used
    if len(text.encode()) <= room:
        return text
    close = "\n\n</details>"
    kept = text.encode()[: max(0, room - len((close + _CUT).encode()))].decode(errors="ignore").rpartition("\n")[0]
    return kept + (close if kept.count("<details>") > kept.count("</details>") else "") + _CUT


def find_places(ids: Iterable[str], golden: Iterable[Path], listed: Path | None, root: Path | None) -> dict[str, Place]:
    """The lines of these queries: in the first golden file that has them, else in the file that lists them.

    Paths are relative to the root.
    """
    wanted, places = set(ids), dict[str, Place]()
    if not wanted:
        return places
    sources = [(path, _query_lines(path)) for path in golden]
    if listed is not None:
        sources.append((listed, iter(read_ids(listed).items())))
    for path, lines in sources:
        for query, line in lines:
            if query in wanted and query not in places:
                places[query] = Place(_relative(path, root), line)
    return places


def _relative(path: Path, root: Path | None) -> str:
    if root is not None and path.resolve().is_relative_to(root.resolve()):
        path = path.resolve().relative_to(root.resolve())
    return path.as_posix()


def _query_lines(path: Path) -> Iterator[tuple[str, int]]:
    """The id of the query on each line of a JSON, JSONL, CSV, TSV or TREC file; nothing for other files."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError):
        return
    if path.suffix in {".csv", ".tsv"}:
        yield from _row_lines(text, "\t" if path.suffix == ".tsv" else ",")
        return
    filled = [(place, line) for place, line in enumerate(text.split("\n"), 1) if line.strip()]
    for row, (place, line) in enumerate(filled, 1):
        if path.suffix == ".json":
            yield from ((_id(_parsed(found)), place) for found in _JSON_ID.findall(line))
        elif line.lstrip().startswith("{"):
            given = {name: value for name, value in (_parsed(line) or {}).items() if value is not None}
            yield _id(given.get(id_column(list(given)) or "", row) if given else None), place
        else:
            yield line.split(maxsplit=1)[0], place


def _row_lines(text: str, delimiter: str) -> Iterator[tuple[str, int]]:
    """The id of each row of a table, by default its number, and the first of its lines."""
    rows, first, limit = list[tuple[int, list[str]]](), 1, csv.field_size_limit(len(text) + 1)
    try:
        reader = csv.reader(StringIO(text), delimiter=delimiter)
        for cells in reader:
            if "".join(cells).strip() or len(cells) > 1:
                rows.append((first, cells))
            first = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)
    header = rows[0][1] if rows else []
    name = id_column(header)
    for row, (line, cells) in enumerate(rows[1:], 1):
        yield (str(row) if name is None else dict(zip(header, cells, strict=False)).get(name, "")), line


def _parsed(text: str) -> Any:
    """The value of a JSON text; None if it cannot be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _id(value: object) -> str:
    return as_id(value) if is_id(value) else ""
