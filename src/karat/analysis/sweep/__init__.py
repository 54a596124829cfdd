"""Sweep: try every setting of a retriever on one gold set, save the runs, and choose without fooling yourself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from karat._internal.result import Result
from karat._internal.source_code import code_of
from karat._internal.user_code import load_user_code, user_function
from karat.analysis.changes import check_comparable
from karat.analysis.compare import aligned, chosen_metrics, shared_queries
from karat.analysis.standings import Standings, standings_of
from karat.analysis.sweep.grid import LIMIT, Setting, check_parameters, combinations, label
from karat.analysis.sweep.saved import FailedSetting, SweepFolder, digest, judge_digest, samples_of
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, KaratError, first_line
from karat.judges import JudgeLike
from karat.judges.tokens import Counter, words
from karat.metrics import DEFAULT, Metric, parse_all
from karat.run import Run
from karat.run.numbers import read_fields
from karat.samples.field_map import Fields

if TYPE_CHECKING:
    import polars as pl

_DEPTH = 20
"""The number of items to retrieve, unless a setting k or a metric says otherwise."""
_COUNTED = "hit@1000t"
"""A metric with a token budget: with it, the tokens of the retrieved texts are counted."""
_HINT = 'judge="ids", not "auto"'
_CALL = 'karat.sweep(make, {"chunk": [200, 400]}, "gold.jsonl")'


@dataclass(repr=False, eq=False)
class Sweep(Result):
    """The result of `karat.sweep`."""

    folder: str
    """The folder with the run files."""
    runs: list[Run]
    """One run per setting; `run.provenance.settings` has the values."""
    failures: list[FailedSetting]
    """The settings for which no run could be made."""
    metric: str
    """The metric by which the settings are ranked."""
    missing: int = 0
    """The number of settings that were not tried, because the sweep was stopped."""

    def __len__(self) -> int:
        return len(self.runs)

    @cached_property
    def names(self) -> list[str]:
        """A label for each run, such as "chunk=200, k=5"."""
        return [label(run.provenance.settings) for run in self.runs]

    @property
    def files(self) -> list[str]:
        """The file of each run."""
        stems = (Path(run.provenance.source).stem for run in self.runs)
        return [str(Path(self.folder) / f"{stem}.parquet") for stem in stems]

    @cached_property
    def ids(self) -> list[str]:
        """The queries in every run."""
        return shared_queries(self._averaged)

    @cached_property
    def _averaged(self) -> list[Run]:
        """The runs with one row per query, which has the means of its repeats."""
        return [run.averaged() for run in self.runs]

    @cached_property
    def standings(self) -> Standings:
        """The settings from the best to the worst, those that may be best, and an honest mean of the winner."""
        runs = self._averaged
        columns = [name for name in runs[0].scores if all(name in run.scores for run in runs)]
        return standings_of(self.names, runs, self.ids, aligned(runs, self.ids, columns), self.metric)

    @property
    def best(self) -> dict[str, Any]:
        """The setting with the highest mean; `standings.possible` has those that cannot be distinguished from it."""
        return dict(self.standings.rows[0].settings)

    @property
    def table(self) -> pl.DataFrame:
        """One row per setting, the best first: the settings, the means, tokens, and whether it may be the best."""
        frame: pl.DataFrame = self._render("frame")
        return frame

    def report(self, path: str | PathLike[str]) -> None:
        """Write the sweep as one HTML page.

        Args:
            path: the HTML file.
        """
        from karat._internal.output import check_outputs, write_text

        if Path(path).suffix == ".parquet":
            raise BadArgument("a report is an HTML page; this file would replace a run", got=str(path), hint="a.html")
        check_outputs({"": path})
        write_text(path, self._render("page"))

    def remarks(self) -> list[str]:
        """Sentences that a reader of the table should know: the verdict, and what makes a comparison unfair."""
        return list(self._render("remarks"))


def sweep(
    make: Callable[..., Any] | str | PathLike[str],
    settings: Mapping[str, Iterable[Any]] | Sequence[Mapping[str, Any]] | None = None,
    gold: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT,
    *,
    folder: str | PathLike[str] = "karat-sweep",
    metric: str | None = None,
    k: int | None = None,
    judge: JudgeLike = "auto",
    at: Literal["item", "doc"] = "item",
    tokens: Counter = words,
    convention: str | Convention = "standard",
    order: Literal["listed", "score"] | None = None,
    concurrency: int = 8,
    timeout: float | None = 30.0,
    retries: int = 0,
    repeats: int = 1,
    also: str | Sequence[str] = (),
    fields: Fields = None,
    split: str | None = None,
    limit: int = LIMIT,
    restart: bool = False,
) -> Sweep:
    """Try every setting of a retriever, save the runs, and say which setting is best, and how sure that is.

    Args:
        make: a function that takes the settings by name and returns a retriever, as `karat.collect` takes it; or its
            name, "file.py:make" or "file.py". The folder of a finished sweep, alone, shows it again.
        settings: a list of values for each setting, all combinations of which are tried; or a list of dicts, the
            combinations themselves. A setting `k` is also the number of items to retrieve.
        gold: the queries with their gold, as in `karat.collect`.
        metrics: metric names, such as "recall@5 ndcg@10".
        folder: the folder for the runs, one file per setting. The same call continues a sweep that was stopped.
        metric: the metric by which the settings are ranked; default: the first one.
        k: the number of items to retrieve without a setting `k`; default: 20, or the largest cutoff of the metrics.
        judge: how items are matched, as in `karat.evaluate`.
        at: "doc" compares documents, not chunks.
        tokens: counts the tokens of a text, for the comparison at equal tokens; the default counts words.
        convention: the definition of the metrics, as in `karat.evaluate`.
        order: "score" sorts lists by their scores, as in `karat.evaluate`.
        concurrency: the number of simultaneous calls of a retriever.
        timeout: the seconds of each call; None for no limit.
        retries: how often a failed call is repeated.
        repeats: how often each query is called, for retrievers that do not always return the same.
        also: numeric fields of the gold to show as medians, such as "cost" or "clicks(more)"; latency is always shown.
        fields: the columns of the gold if they have other names, as in `karat.collect`.
        split: the split of a data set, as in `karat.collect`.
        limit: the largest number of settings; more are refused.
        restart: True to remove the runs of another sweep from the folder, and begin anew.

    Returns:
        A `Sweep`: `best` (the settings of the winner), `standings` (the rows, the settings that may be best, the
        winner's mean on held-out queries with its interval), `runs`, `failures`, `table`, `report("sweep.html")`.

    Example:
        >>> found = karat.sweep(make, {"chunk": [200, 400, 800], "k": [5, 10]}, "gold.jsonl", "recall@5 ndcg@10")
        >>> found.best
        {'chunk': 400, 'k': 10}
    """
    if settings is None and gold is None:
        return saved_sweep(make, metric)
    if settings is None or gold is None:
        raise BadArgument(f"a sweep needs {'settings' if settings is None else 'gold'}", hint=_CALL)
    grid = combinations(settings, limit)
    maker = _maker(make)
    takes_k = check_parameters(maker, grid)
    wanted = parse_all(metrics)
    headline = _headline(metric, [name for one in wanted if not one.unit for name in one.names])
    gold = list(gold) if isinstance(gold, Iterator) else gold
    numbers = tuple(map(str, read_fields(also))) if also else ()
    place = SweepFolder(folder)
    calls = {"concurrency": concurrency, "timeout": timeout, "retries": retries, "repeats": repeats}
    reading = {"fields": fields, "split": split}
    judging = {"judge": judge, "at": at, "tokens": tokens, "convention": convention, "order": order}
    of_gold = digest(gold) + "".join(f" {value}" for value in reading.values() if value)
    collected = {"retriever": _source(make, maker), "gold": of_gold, "number of repeats": str(repeats)}
    evaluated = {"metrics": " ".join(map(str, wanted)), **{name: digest(value) for name, value in judging.items()}}
    evaluated["judge"] = judge_digest(judge)
    place.begin(collected, evaluated, restart=restart)
    trial = _Trial(maker, takes_k, _depth(k, wanted), gold, wanted, calls | reading, judging)
    runs = _try_all(trial, place, grid, headline, numbers)
    return _result(place, runs, place.failures(grid), headline)


def saved_sweep(folder: Any, metric: str | None = None) -> Sweep:
    """The sweep of a folder, from its run files alone."""
    if not isinstance(folder, str | PathLike):
        raise BadArgument("a sweep needs settings and gold", hint=_CALL)
    place = SweepFolder(folder)
    if not place.exists:
        raise BadArgument(f"{fspath(folder)} is not the folder of a sweep", hint="karat-sweep, or settings and gold")
    runs = [run.also(place.also) if place.also else run for run in place.runs()]
    if not runs:
        raise BadArgument(f"{fspath(folder)} has no finished run", hint="the same karat sweep again")
    known = list(runs[0].scores)
    found = _result(place, runs, place.failures(), _headline(metric or place.metric, known))
    found.missing = place.missing
    return found


def _result(place: SweepFolder, runs: list[Run], failures: list[FailedSetting], headline: str) -> Sweep:
    names = [label(run.provenance.settings) for run in runs]
    for run, name in zip(runs[1:], names[1:], strict=True):
        check_comparable(runs[0], run, names=(names[0], name), hint=_HINT)
    return Sweep(str(place.path), runs, failures, headline)


def _headline(metric: str | None, known: Sequence[str]) -> str:
    if not known:
        raise BadArgument("a sweep needs a metric from 0 to 1 to choose by", hint='"recall@5"')
    return known[0] if metric is None else chosen_metrics(metric, known, "metric of the sweep")[0]


def _maker(make: Any) -> Callable[..., Any]:
    """The function itself, or the one of a name; without a name in it, `make`."""
    if isinstance(make, str | PathLike):
        text = fspath(make)
        if text.endswith(".py"):
            found = getattr(load_user_code(text), "make", None)
            if not callable(found):
                raise BadArgument(f"{text} has no function make", hint="def make(**settings): …")
            return found  # type: ignore[no-any-return]
        return user_function(text)  # type: ignore[no-any-return]
    if not callable(make):
        raise BadArgument("make must be a function that returns a retriever", got=make, hint="lambda chunk: …")
    return make  # type: ignore[no-any-return]


def _source(make: Any, maker: Callable[..., Any]) -> str:
    """A digest of the code that makes the retriever: the file that was named, or the function."""
    return digest(code_of(make, maker))


def _depth(k: int | None, metrics: Sequence[Metric]) -> int:
    if k is not None:
        return k
    return max([_DEPTH, *(cutoff for one in metrics for _, cutoff in one.columns if isinstance(cutoff, int))])


class _Trial(NamedTuple):
    """The trial of a setting: make the retriever, collect, evaluate."""

    make: Callable[..., Any]
    takes_k: bool
    depth: int
    gold: Any
    metrics: tuple[Metric, ...]
    calls: Mapping[str, Any]
    judging: Mapping[str, Any]

    def run(self, setting: Setting, place: Path) -> Run:
        """The run of a setting; the samples are kept beside the run file."""
        from karat.collection import collect

        given = {name: value for name, value in setting.items() if name != "k" or self.takes_k}
        samples = samples_of(place)[0]
        k = setting.get("k")
        depth = k if isinstance(k, int) and not isinstance(k, bool) else self.depth
        retriever = self.make(**given)
        found = collect(retriever, self.gold, k=depth, output=samples, **self.calls)
        run = self.evaluated(found)
        if not run.judged:
            raise InputError(next(iter(run.failures.values()), "no query was judged"))
        return run.replace(provenance=replace(run.provenance, settings=setting, source=str(samples)))

    def evaluated(self, samples: Sequence[Mapping[str, Any]]) -> Run:
        """The run of samples, with the number of tokens if they have texts."""
        from karat.pipeline import evaluate

        if not any(one.has_budget for one in self.metrics) and _have_texts(samples):
            try:
                run = evaluate(samples, [*self.metrics, _COUNTED], **self.judging)
            except InputError:  # strings that are compared as ids have no texts
                return evaluate(samples, self.metrics, **self.judging)
            scores = {name: values for name, values in run.columns.items() if name != _COUNTED}
            names = tuple(name for name in run.provenance.metrics if name != _COUNTED)
            kept = tuple(one for one in run.requested if str(one) != _COUNTED)
            return run.replace(scores=scores, metrics=kept, provenance=replace(run.provenance, metrics=names))
        return evaluate(samples, self.metrics, **self.judging)


def _have_texts(samples: Sequence[Mapping[str, Any]]) -> bool:
    """True if the first retrieved item has a text, or is one."""
    items = (item for sample in samples for item in sample.get("retrieved") or ())
    first = next(items, None)
    text = first.get("text") if isinstance(first, Mapping) else first
    return isinstance(text, str) and bool(text.strip()) and (isinstance(first, Mapping) or " " in text.strip())


def _try_all(
    trial: _Trial, place: SweepFolder, grid: Sequence[Setting], headline: str, also: tuple[str, ...]
) -> list[Run]:
    """The run of each setting, from before or made now, except for those that failed."""
    files = place.places(grid)
    place.write(headline, also)
    runs, first = [], None
    for number, (setting, file) in enumerate(zip(grid, files, strict=True), 1):
        run = place.finished(file, setting)
        if run is None or run.failures:  # queries that failed are called again
            announce(number, len(grid), setting)
            try:
                run = trial.run(setting, file)
            except Exception as error:  # noqa: BLE001  # code of the user
                first = first or error
                place.note_failure(setting, _cause(error))
                continue
            run.save(file)
        runs.append(run.also(also) if also else run)
    if not runs and first is not None:
        if isinstance(first, KaratError):
            raise first
        raise BadArgument(f"every setting failed: {_cause(first)}") from first
    return runs


def _cause(error: Exception) -> str:
    """The reason in one line, without secrets."""
    from karat.llm.secrets import Secrets

    text = error.problem if isinstance(error, KaratError) else f"{type(error).__name__}: {first_line(error)}"
    return Secrets().message(text)


def announce(number: int, total: int, setting: Setting) -> None:
    """Say on a terminal which setting is tried now."""
    import sys

    from karat._internal.writers import put

    if sys.stderr is not None and sys.stderr.isatty():
        put(f"setting {number} of {total}: {label(setting)}", error=True)
