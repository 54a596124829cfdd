"""Rows of a framework's data: where the documents and the gold are in them, and their scores with a comment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from karat._internal.display import plural
from karat.collection.json_paths import JsonPath, NotThere
from karat.errors import InputError, Unavailable, nearest
from karat.metrics import Metric, parse_all
from karat.pipeline import evaluate
from karat.plan import Plan
from karat.run import Run
from karat.samples.objects import gold_items, plain_items

Where: TypeAlias = str | Callable[[Any], Any]
"""The place of a value in a record: a path of fields, such as `output.docs`, or a function."""
Metrics: TypeAlias = str | Metric | Iterable[str | Metric]


@contextmanager
def framework(bridge: str, package: str) -> Iterator[None]:
    """The imports of a bridge; without the framework, the error has the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise Unavailable(f"{bridge} needs {package}, which is not installed", hint=f"pip install {package}") from error


class Score(NamedTuple):
    """A number for a framework: its metric, the value or None if there is none, and the reason or the interval."""

    name: str
    value: float | None
    comment: str | None = None
    failed: bool = False


class Rows:
    """Metrics and options of `karat.evaluate`, and the places of documents and gold in the rows of a framework."""

    def __init__(self, metrics: Metrics, documents: Where, gold: Where, options: Mapping[str, Any]) -> None:
        self.metrics = parse_all(metrics)
        self.documents = documents
        self.gold = gold
        self.options = dict(options)
        signature(evaluate).bind([], self.metrics, **self.options)  # a misspelt option is refused here
        plan = Plan.of(self.metrics, self.options.get("judge", "auto"), self.options.get("convention", "standard"))
        self.needs_gold = plan.judge.needs_gold
        self.names = [name for metric in self.metrics for name in metric.names]

    def sample(self, inputs: Any, outputs: Any, reference: Any) -> dict[str, Any] | None:
        """The sample of a row; None if the system failed, so that there are no outputs."""
        retrieved = value_at(outputs, self.documents, "documents")
        if retrieved is None:
            return None
        fields = reference if isinstance(reference, Mapping) else {}
        is_given = self.needs_gold or callable(self.gold) or self.gold in fields
        gold = value_at(reference, self.gold, "gold") if is_given else None
        answer = fields.get("answer")
        sample = {
            "query": query_of(inputs),
            "retrieved": plain_items(retrieved, "the documents"),
            "gold": gold if gold is None or isinstance(gold, Mapping) else gold_items(gold, "the gold"),
            "answer": answer if isinstance(answer, str) else None,
        }
        return {name: value for name, value in sample.items() if value is not None}

    def scores(self, sample: Mapping[str, Any] | None) -> list[Score]:
        """The scores of one row; a comment gives the reason if there is none."""
        if sample is None:
            return [Score(name, None, "failed: there are no documents", failed=True) for name in self.names]
        run = self.evaluate([sample])
        if run.failures:
            (why,) = run.failures.values()
            return [Score(name, None, f"failed: {why}", failed=True) for name in self.names]
        why = "undefined" if sample.get("gold") else "undefined: there is no gold"
        return [_score(name, float(run.columns[name][0]), why) for name in self.names]

    def summaries(self, samples: Sequence[Mapping[str, Any] | None]) -> list[Score]:
        """The "recall@5 mean" of each metric, with the interval as the comment; the median of a measure."""
        read = [sample for sample in samples if sample is not None]
        failed = len(samples) - len(read)
        if not read:
            return [Score(f"{name} mean", None, f"{failed} failed", failed=True) for name in self.names]
        run = self.evaluate(read)
        values = overall(run)
        titles = {name: f"{name} median" if name in run.measured else f"{name} mean" for name in self.names}
        return [_score(titles[name], values[name], "", _about(run, name, failed)) for name in self.names]

    def evaluate(self, samples: Sequence[Mapping[str, Any]]) -> Run:
        """The run of some rows; measures alone are evaluated beside a metric."""
        beside = parse_all("rr") if all(metric.unit for metric in self.metrics) else ()
        empty: dict[str, Any] = {"gold": []} if self.needs_gold else {}
        return evaluate([{**empty, **sample} for sample in samples], (*self.metrics, *beside), **self.options)


def overall(run: Run) -> dict[str, float]:
    """One number per metric of a run: its mean; of a measure, its median."""
    medians = {name: float(summary.median) for name, summary in run.measure_summary.items()}
    means = {name: float(value) for name, value in run.mean.items()}
    return {name: (means | medians)[name] for name in run.columns}


def value_at(record: Any, where: Where, option: str) -> Any:
    """The value in a record; None if the record is empty, which is what frameworks give if the system failed."""
    if callable(where):
        return where(record)
    if not isinstance(record, Mapping):
        return record
    try:
        return JsonPath(where).find(record)
    except NotThere:
        if all(one is None for one in record.values()) or _is_error(record):
            return None
        known = [str(name) for name in record]
        hint = f'{option}="{nearest(where, known) or known[0]}"'
        raise InputError(f'there is no "{where}" among the fields', got=", ".join(known), hint=hint) from None


def _is_error(record: Mapping[Any, Any]) -> bool:
    """True for an error in place of the outputs, besides fields without a value."""
    return bool(record.get("error")) and all(one is None for name, one in record.items() if name != "error")


def query_of(inputs: Any) -> str | None:
    """The text of the query: the inputs themselves, or the one text among them."""
    texts = [inputs] if isinstance(inputs, str) else []
    if isinstance(inputs, Mapping):
        texts = [value for value in inputs.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else None


def _score(name: str, value: float, why: str, about: str | None = None) -> Score:
    if isfinite(value):
        return Score(name, value, about)
    never = "never reached" if value > 0 else why
    return Score(name, None, "; ".join(text for text in (never, about) if text))


def _about(run: Run, name: str, failed: int) -> str:
    """The interval of a mean or median, and the queries without a score."""
    measures = run.measure_summary
    low, high = measures[name].interval if name in measures else run.interval()[name]
    defined = measures[name].defined if name in measures else run.defined[name]
    said = [f"95 % interval {low:.3f} to {high:.3f}"] if isfinite(low) else []
    counts = {"undefined": len(run) - defined - len(run.failures), "failed": len(run.failures) + failed}
    said += [plural(defined, "query", "queries"), *(f"{count} {word}" for word, count in counts.items() if count)]
    return ", ".join(said)
