"""Plan: what is asked of samples, wherever they are: in memory, in worker processes, in large files, on Spark.

A plan evaluates any part of the queries by itself, and the merged parts are the run of all of them. So nothing in
`Plan.evaluate` may depend on the other parts: the judge is chosen before, from the data as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from karat import __version__
from karat._internal.arrays import Floats
from karat._internal.display import valid_texts, valid_utf8
from karat.conventions import Convention, find_convention
from karat.errors import BadArgument, InputError, UnknownName
from karat.hits import Hits
from karat.judges import Auto, Ids, Judge, find_judge, fit
from karat.judges.auto import SHARED, nothing_matched
from karat.judges.list_order import Measured, order_notes
from karat.judges.sizes import check_cited, nothing_cited
from karat.judges.tokens import Counter, words
from karat.metrics import Metric, parse_all
from karat.metrics.registry import cached, register_all
from karat.plan.judgements import Judgements, seen_under
from karat.run import Run
from karat.run.provenance import Provenance
from karat.run.stored_items import LIMITS, StorageLimits, StoredItems, stored_ranks
from karat.samples import GoldItems, Reading, Samples
from karat.samples.answerable import ANSWERABLE
from karat.samples.notes import Note
from karat.samples.rankings.lists import Lists
from karat.samples.rankings.steps import CONCAT, Merge, Steps


@dataclass(frozen=True)
class Plan:
    """The metrics, the judge and the convention of an evaluation."""

    metrics: tuple[Metric, ...]
    judge: Judge
    convention: Convention
    at: str = "item"
    tokens: Counter | None = None
    """Counts the tokens of a text; None if no metric needs tokens."""
    judge_reason: str = ""
    """The reason for the judge, if karat chose it."""
    stored: int | None = None
    """The ranks whose items each part stores at once; None if the caller stores the items later."""
    limits: StorageLimits = LIMITS
    """The part of the items that a run stores."""
    merge: Merge = CONCAT
    """The way in which the steps of a query are made one ranking."""
    raw_scores: bool = False
    """True to store the retrieval scores, also for a part of the queries that has no mark `answerable`."""

    @classmethod
    def of(
        cls,
        metrics: str | Metric | Iterable[str | Metric],
        judge: Any,
        convention: str | Convention,
        *,
        at: str = "item",
        tokens: Counter = words,
        order: str | None = None,
        merge: str | Merge = "concat",
        samples: Any = None,
    ) -> Plan:
        """The plan for the arguments of `karat.evaluate`; `samples` only helps to explain swapped arguments."""
        if isinstance(metrics, str) and _is_usual(judge, convention, at, order, merge) and tokens is words:
            try:
                usual: Plan = cached(_usual_plan, metrics)
            except (UnknownName, BadArgument):  # explained below
                pass
            else:
                return usual
        wanted = _parse_metrics(metrics, samples)
        return cls._of(wanted, judge, convention, at=at, tokens=tokens, order=order, merge=merge)

    @classmethod
    def _of(
        cls,
        wanted: tuple[Metric, ...],
        judge: Any,
        convention: str | Convention,
        *,
        at: str,
        tokens: Counter,
        order: str | None,
        merge: str | Merge,
    ) -> Plan:
        judging = _judge_at(find_judge(judge), at)
        if not judging.complete_gold and (names := [m.name for m in wanted if m.definition.needs_all_gold]):
            raise BadArgument(
                f'{", ".join(names)} needs the complete gold, but "{judging.name}" only grades what was retrieved',
                hint='precision, ndcg, rr, hit, err or rbp, or judge="claims(…)" with answers',
            )
        budget = any(metric.has_budget or (metric.unit and metric.definition.reads_tokens) for metric in wanted)
        chosen = find_convention(convention, **({} if order is None else {"order": order}))
        _check_unjudged(judging, chosen)
        merging = CONCAT if merge == CONCAT.name else Merge.of(merge)
        if not merging.ordered and (names := [str(m) for m in wanted if m.ks or not m.definition.of_sets]):
            problem = f'{", ".join(names)} needs an order, but merge="{merging}" makes a set'
            raise BadArgument(problem, hint='recall, precision, f1, set_em without k, or merge="concat"')
        return cls(wanted, judging, chosen, at, tokens if budget else None, merge=merging)

    def with_judge_for(self, samples: Samples) -> Plan:
        """The same plan; judge "auto" is replaced by the one that fits the samples, and custom judges are fitted."""
        if isinstance(samples.retrieved, Steps) and self.convention.duplicates != "once":
            # Merging removes copies; what a judge removes besides could not be found in the steps again.
            return replace(self, convention=replace(self.convention, duplicates="once")).with_judge_for(samples)
        judge, reason = fit(self.judge, samples)
        _check_unjudged(judge, self.convention)
        raw_scores = self.raw_scores or ANSWERABLE in samples.meta
        if judge is self.judge and raw_scores == self.raw_scores:
            return self
        if not isinstance(self.judge, Auto):
            return replace(self, judge=judge, judge_reason=reason, raw_scores=raw_scores)
        if (known := self._fitted.get((judge, reason, raw_scores))) is not None:
            return known
        fitted = replace(self, judge=judge, judge_reason=reason, raw_scores=raw_scores)
        if judge in SHARED:
            self._fitted[judge, reason, raw_scores] = fitted
        return fitted

    @cached_property
    def _fitted(self) -> dict[tuple[Judge, str, bool], Plan]:
        """The plans with one of the judges that all evaluations share."""
        return {}

    @cached_property
    def _sizes(self) -> tuple[str, ...]:
        return needed_sizes(self.metrics)

    @cached_property
    def _only_measures(self) -> bool:
        return all(metric.unit for metric in self.metrics)

    @cached_property
    def _budget(self) -> bool:
        return any(metric.has_budget for metric in self.metrics)

    @cached_property
    def _of_aspects(self) -> list[str]:
        return aspect_metrics(self.metrics)

    def evaluate(self, samples: Samples) -> Run:
        """Judge and measure samples: all of them, or a part."""
        return self._evaluate(samples, whole=False)

    def _evaluate(self, samples: Samples, *, whole: bool) -> Run:
        """The run of samples; if these are all samples, it reads their items when they are needed."""
        given, samples = samples, self._merged(samples)
        judgements = self._judgements(samples)
        hits, scores = judgements.hits(self.convention), self._scores(judgements)
        if isinstance(samples.retrieved, Lists) and samples.retrieved.scores is not None:
            seen = seen_under(samples, self.convention)
            notes = order_notes(seen, hits, self.judge, self.convention, self._first(scores))
            hits = hits.replace(notes=(*hits.notes, *notes)) if notes else hits
        items: Callable[[], StoredItems | None] | None = None
        if whole:
            items = partial(self.items, given, hits)
        elif self.stored is not None:
            items = partial(given_items, self.items(samples, hits, self.stored))
        return Run(
            ids=samples.ids,
            hits=hits,
            metrics=self.metrics,
            convention=self.convention,
            scores=scores,
            provenance=self.provenance(samples.reading, hits),
            query=None if samples.query is None else valid_texts(samples.query),
            meta={valid_utf8([name])[0]: valid_texts(column) for name, column in samples.meta.items()},
            items=items,
        )

    def measure(self, samples: Samples) -> dict[str, Floats]:
        """The scores alone, without a run."""
        return self._scores(self._judgements(self._merged(samples)))

    def _judgements(self, samples: Samples) -> Judgements:
        return Judgements(
            samples, self.judge, tokens=self.tokens, budget=self._budget, sizes=self._sizes, raw_scores=self.raw_scores
        )

    def _scores(self, judgements: Judgements) -> dict[str, Floats]:
        return {n: column for m in self.metrics for n, column in judgements.scores(m, self.convention).items()}

    def _merged(self, samples: Samples) -> Samples:
        """The samples with their steps merged as the plan says, if they have steps."""
        if not isinstance(samples.retrieved, Steps) or samples.retrieved.merge == self.merge:
            return samples
        return replace(samples, retrieved=samples.retrieved.merged_by(self.merge))

    def seen(self, samples: Samples) -> Samples:
        """The samples as the convention sees them: some ignore a retrieved item whose id is that of the query."""
        return seen_under(samples, self.convention)

    def _first(self, scores: Mapping[str, Floats]) -> Measured | None:
        """The first metric that needs nothing but hits, at its first cutoff; no measure."""
        others = (m for m in self.metrics if not (m.has_budget or m.unit or m.sizes or m.definition.of_unanswerable))
        metric = next(others, None)
        if metric is None:
            return None
        c, name = self.convention.of(metric.name, cut=bool(metric.ks)), metric.names[0]
        return Measured(name, scores[name], lambda hits: metric.scores(hits, c)[name])

    def evaluate_all(self, samples: Samples) -> Run:
        """Judge and measure all samples; the run can show their items, and gives a hint if nothing matched."""
        return self.with_hint(self._evaluate(samples, whole=True), samples)

    def complete(self, run: Run, samples: Samples) -> Run:
        """A run of all samples with their items, and with a hint if nothing matched."""
        return self.with_hint(run, samples).replace(items=partial(self.items, samples, run.all_hits))

    def with_hint(self, run: Run, samples: Samples) -> Run:
        """The run with a note on what to try, if queries were judged and no gold item was found at all."""
        hits, p = run.all_hits, run.provenance
        if len(hits) or not run.judged or not hits.gold_count().any():
            return run
        hint = nothing_matched(samples, self.judge, self.convention)
        return run.replace(provenance=replace(p, notes=(*p.notes, *hint)))

    def items(self, samples: Samples, hits: Hits, ranks: int | None = None) -> StoredItems:
        """The items of samples that are stored with a run: this number of ranks, or as many as the limits allow."""
        if ranks is None:
            ranks = stored_ranks(self.metrics, len(samples), self.limits)
        seen = seen_under(self._merged(samples), self.convention)
        if self.judge.makes_gold:
            made = hits.gold_items
            seen = replace(seen, gold=GoldItems({"text": list(made.label)}, made.grade, made.start))
        return StoredItems.of(seen, hits, self.convention, self.judge, ranks, self.limits)

    def provenance(self, reading: Reading, hits: Hits) -> Provenance:
        """The provenance of a run by this plan."""
        return self._origin.changed(
            vars(reading),
            judge=self.judge.name,
            compares=self.judge.compares,
            judge_settings=dict(self.judge.settings),
            merge="" if hits.steps is None else str(self.merge),
            notes=(*reading.notes, *hits.notes, *self._origin.notes),
        )

    @cached_property
    def _origin(self) -> Provenance:
        """The provenance that all runs by this plan have in common; its notes come last."""
        c = self.convention
        all_columns = (
            ((name, m.name, k) for m in self.metrics for name, k in m.columns) if c.metrics or c.cutoffs else ()
        )
        missing = ", ".join(name for name, metric, k in all_columns if not c.has(metric, k))
        foreign = (Note("not_in_library", details={"convention": c.name, "metrics": missing}),) if missing else ()
        return Provenance(
            karat=__version__,
            metrics=tuple(map(str, self.metrics)),
            judge=self.judge.name,
            judge_reason=self.judge_reason,
            convention=c.name,
            tokens="" if self.tokens is None else getattr(self.tokens, "__qualname__", type(self.tokens).__name__),
            notes=foreign,
        )

    def check_scores(self) -> None:
        """Refuse measures alone: a run has scores, next to which measures are shown."""
        if self._only_measures:
            names = " ".join(map(str, self.metrics))
            raise BadArgument("a run needs at least one metric; measures are shown beside it", hint=f"recall@5 {names}")

    def check_samples(self, samples: Samples) -> None:
        """Refuse samples that lack what a metric needs, before anything is judged."""
        if "cited" in self._sizes:
            check_cited(samples)
        if (names := self._of_aspects) and not any(samples.gold.columns.get("aspects", ())):
            raise no_aspects(names, samples.reading.notes)

    def check_run(self, run: Run) -> Run:
        """The run; refuses one whose samples, which were not all in memory, lack what a metric needs."""
        if "cited" in self._sizes and np.isnan(run.all_hits.totals.sizes["cited"]).all():
            raise nothing_cited()
        if (names := self._of_aspects) and run.all_hits.gold_items.aspects is None:
            raise no_aspects(names, run.provenance.notes)
        return run

    def check_parallel(self) -> None:
        """Refuse a judge that needs all queries at once."""
        if not self.judge.parallel:
            raise BadArgument(
                f'judge "{self.judge.name}" cannot run in parallel: it needs all queries at once',
                hint="jobs=1",
            )

    def __getstate__(self) -> dict[str, Any]:
        """The plan for another process, with the definitions of custom metrics, which it does not know."""
        custom = {m.name: m.definition for m in self.metrics if not m.definition.built_in}
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        return own | {"metrics": tuple(map(str, self.metrics)), "custom": custom}

    def __setstate__(self, state: dict[str, Any]) -> None:
        register_all(state.pop("custom"))
        self.__dict__.update(state | {"metrics": parse_all(state["metrics"])})


def _is_usual(judge: Any, *others: Any) -> bool:
    """True for the defaults of `karat.evaluate`. A judge chosen by name has no state that evaluations could share."""
    return isinstance(judge, str) and (judge, *others) == ("auto", "standard", "item", None, "concat")


def _usual_plan(metrics: str) -> Plan:
    wanted = parse_all(metrics)
    return Plan._of(wanted, "auto", "standard", at="item", tokens=words, order=None, merge="concat")  # noqa: SLF001


def given_items(items: StoredItems | None) -> StoredItems | None:
    """Items that are in memory, as a function of no arguments that can be pickled."""
    return items


def needed_sizes(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """The numbers per query that metrics need besides hits."""
    return tuple(dict.fromkeys([name for metric in metrics for name in metric.sizes]))


def aspect_metrics(metrics: Iterable[Metric]) -> list[str]:
    """The names of the metrics that need gold with aspects."""
    return [metric.name for metric in metrics if metric.of_aspects]


def no_aspects(names: Sequence[str], notes: Iterable[Note] = ()) -> InputError:
    """The error for metrics of aspects if no gold item has one; the notes may know of a similar field."""
    similar = [note.details["field"] for note in notes if note.details.get("meant") == "aspects"]
    hint = f'rename "{similar[0]}" to "aspects", or ' if similar else ""
    hint += '"gold": [{"id": …, "aspects": ["price", "safety"]}, …], or qrels with a subtopic in the second column'
    need = "needs" if len(names) == 1 else "need"
    return InputError(f"{', '.join(names)} {need} the aspects of the gold, but no gold item has any", hint=hint)


def _parse_metrics(metrics: Any, samples: Any) -> tuple[Metric, ...]:
    """The metrics; explains if the gold or the samples were passed in their place."""
    try:
        return parse_all(metrics)
    except (UnknownName, BadArgument):
        if isinstance(metrics, str) and _is_file(metrics):
            if isinstance(samples, str) and not _is_file(samples):
                swapped = f'karat eval {metrics} "{samples}"'
                raise BadArgument("the file comes first, then the metrics", hint=swapped) from None
            hint = f'gold="{metrics}", or --gold {metrics}'
            raise BadArgument(f"{metrics} is a file, not a metric", hint=hint) from None
        names = isinstance(metrics, list | tuple) and all(isinstance(one, str | Metric) for one in metrics)
        bare = isinstance(samples, list | tuple) and any(isinstance(one, str) for one in samples)
        if samples is None or isinstance(metrics, str) or (names and not bare):
            raise
        problem = "the second argument is the metrics, not the gold"
        raise BadArgument(problem, got=metrics, hint="retrieved=…, gold=…") from None


def _check_unjudged(judge: Judge, c: Convention) -> None:
    """Refuse to remove unjudged items for a judge that judges every item."""
    if c.unjudged == "removed" and judge.makes_gold:
        problem = f'"{judge.name}" judges every retrieved item: none is unjudged, so none can be removed'
        raise BadArgument(problem, got="unjudged=removed", hint=f"convention={c.name.partition('(')[0]}")


def _is_file(text: str) -> bool:
    """True if the text is the path of a file; a text that cannot be a path is not."""
    try:
        return Path(text).is_file()
    except OSError:  # such as a name that is too long
        return False


def _judge_at(judge: Judge, at: str) -> Judge:
    """The judge; at="doc", ids of documents are compared in place of items."""
    if at in ("item", "step"):
        return judge
    if not isinstance(judge, Auto | Ids):
        raise BadArgument('at="doc" compares documents by id, not by text', got=judge.name, hint='judge="ids"')
    return Ids(at=at)  # type: ignore[arg-type]
