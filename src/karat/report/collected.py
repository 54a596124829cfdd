"""Collected samples in words: how many, how fast, how many failed and why. The samples themselves are not shown."""

from __future__ import annotations

from typing import Any

from karat._internal.display import heading, number, paragraph, plural, quantity, sanitize
from karat._internal.writers import html_text, plain
from karat.collection.collected import Collected
from karat.report import forms
from karat.report.reading_notes import OBJECT_SENTENCES

_SHOWN = 5


def terminal(found: Collected) -> str:
    """One line of counts, and one for each kind of failure."""
    first, *rest = _lines(found)
    return "\n".join([heading(first), *(paragraph(line) for line in rest)])


def markdown(found: Collected) -> str:
    """The same as Markdown."""
    first, *rest = map(forms.escape, _lines(found))
    return "\n\n".join(filter(None, (first, forms.bullets(rest))))


def html(found: Collected) -> str:
    """The same as a list, for notebooks."""
    first, *rest = map(html_text, _lines(found))
    return f"<p>{first}</p><ul>{''.join(f'<li>{line}</li>' for line in rest)}</ul>"


def data(found: Collected) -> dict[str, Any]:
    """The counts, the speed, the failures and the samples."""
    about = {name: value for name, value in vars(found).items() if value is not None}
    extra = {"rate": found.rate, "short": found.short, "latency": found.latency, "failures": found.failures}
    return dict(plain({**about, **extra})) | {"samples": list(found)}


def _lines(found: Collected) -> list[str]:
    queries, failed = len({sample["id"] for sample in found}), sum(count for _, count in found.causes)
    samples = f" · {plural(len(found), 'sample', 'samples')}" if len(found) != queries else ""
    lines = [f"{sanitize(found.target)} · {plural(queries, 'query', 'queries')}{samples} · k={found.k}"]
    if found.calls:
        before = len(found) - found.calls
        already = f"; {before:,} were done before" if before else ""
        lines.append(f"{plural(found.calls, 'query', 'queries')} called, {number(found.rate, 1)} per second{already}.")
    else:
        lines.append("Nothing was left to do: all queries were collected before.")
    latency = found.latency
    if latency["p50"] == latency["p50"]:
        figures = ", ".join(f"{name} {quantity(latency[name], 'ms')}" for name in ("p50", "p95", "mean"))
        lines += [f"Latency: {figures}.", *_on_latency(found)]
    if failed:
        lines.append(f"{failed:,} of {plural(len(found), 'sample', 'samples')} failed:")
        lines += [f"{sanitize(cause)} ({count:,})" for cause, count in found.causes[:_SHOWN]]
        more = len(found.causes) - _SHOWN
        lines += [plural(more, "other cause", "other causes")] if more > 0 else []
    if found.older:
        one = f"{found.older:,} of {plural(len(found), 'result was', 'results were')}"
        lines.append(
            f"The code of {sanitize(found.target)} has changed since {one} collected: --fresh calls all again."
        )
    if found.cut:
        one = plural(found.cut, "result", "results")
        lines.append(f"{one} had more than {found.k} items: the rest was cut off.")
    sizes = [len(sample["retrieved"]) for sample in found if "retrieved" in sample]
    if empty := sizes.count(0):
        lines.append(f"{empty:,} of {plural(len(sizes), 'result is', 'results are')} empty.")
    if found.short > empty:
        one = f"{found.short:,} of {plural(len(sizes), 'result has', 'results have')}"
        lines.append(f"{one} fewer than {found.k} items, {sum(sizes) / len(sizes):.3g} on average.")
    lines += [OBJECT_SENTENCES[note.kind](note, None) for note in found.notes]
    return lines


def _on_latency(found: Collected) -> list[str]:
    """Remarks on latencies that are not those of a single call to a retriever that runs."""
    lines = []
    if found.waits:
        mean, cpu = quantity(found.latency["mean"], "ms"), quantity(found.cpu / found.calls, "ms")
        why = f"a call took {mean}, of which its thread worked {cpu}"
        lines.append(f"The latencies include waiting for other calls: {why}. --concurrency 1 measures each call alone.")
    if found.is_cold:
        first = f"The first call took {quantity(found.first, 'ms')}"
        lines.append(f"{first}, much longer than most. --warm-up 1 makes an unrecorded call before it.")
    return lines
