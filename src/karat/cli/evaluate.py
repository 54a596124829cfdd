"""`karat eval`: from samples to a run, and its means."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

from karat._internal.display import paragraph
from karat._internal.model_settings import DEFAULT_CACHE
from karat._internal.output import check_outputs, is_special, new_name, text_file
from karat._internal.user_code import load_user_code, user_function
from karat._internal.writers import put
from karat.cli import argument, command, emit, format_argument, say
from karat.cli.model_options import given_settings, model_arguments
from karat.errors import BadArgument, NotJudged, RunFileError

if TYPE_CHECKING:
    from karat.judges import Judge
    from karat.judges.model_judge import ModelJudge
    from karat.run import Run

_INTERRUPTED = 130
ELSEWHERE = "-o /another/folder/run.parquet"
_MODELS = "judges that call a language model, such as claims"

IMPORT = argument(
    "--import", dest="imports", metavar="FILE", action="append", default=[],
    help="a Python file or module that defines custom metrics or judges; repeatable",
)  # fmt: skip
BY = argument(
    "--by", metavar="FIELD", action="append", default=[],
    help='also show the means for each value of a field; may be repeated; "a,b" crosses two fields',
)  # fmt: skip
BOUNDS = argument(
    "--bounds", action="store_true",
    help="also show the bounds of each mean, whatever the unjudged items are; csv: those of each query",
)  # fmt: skip
SUMMARY = argument(
    "--summary", metavar="NAMES", action="append", default=[],
    help='also show p10, median, gm or "worst(field)" of each metric; several with commas; may be repeated',
)  # fmt: skip
ALSO = argument(
    "--also", metavar="FIELDS", action="append", default=[],
    help='also summarise numeric fields of the samples, such as cost,tokens; "clicks(more)" if more is better',
)  # fmt: skip
MAP = argument(
    "--map", "--fields", metavar="FIELD=COLUMN", action="append", default=[],
    help="your column names, such as retrieved=docs,gold=relevant,query=question; docs/fields.md lists the fields",
)  # fmt: skip
SPLIT = argument(
    "--split", metavar="NAME", help="the split of a data set, such as dev of a BEIR folder (default: its test split)"
)
_SPANS = "traces of Phoenix, LangSmith, Langfuse or MLflow"
WHERE = argument(
    "--where", metavar="CONDITION", action="append", default=[], group=_SPANS,
    help="only spans with such attributes: 'session.id == \"abc\" and latency > 500'; may be repeated",
)  # fmt: skip
SINCE = argument(
    "--since", metavar="TIME", group=_SPANS, help="only spans that started since then: 2026-11-01, or 7d (days ago)"
)
UNTIL = argument("--until", metavar="TIME", group=_SPANS, help="only spans that started before: 2026-11-30, or 1d")
_EXIT_CODES = """\
exit code: 0 evaluated, 2 bad input or settings, 3 too few queries were judged, 130 interrupted by Ctrl-C
"""
_WRITE = {
    ".csv": "show run.parquet --format csv >", ".json": "show run.parquet --format json >",
    ".md": "show run.parquet --format markdown >", ".html": "report run.parquet -o",
}  # fmt: skip
"""Endings of files, and the command that writes such a file."""
FORMAT = format_argument(
    "json", "csv", "markdown", "metrics", about="csv: one row per query; metrics: numbers for DVC, as JSON"
)


@command(
    "eval",
    "evaluate a file of samples, or rankings with their gold",
    argument(
        "file", metavar="FILE",
        help="JSONL, JSON, CSV, Parquet, Arrow, TREC, traces; .gz, .zst; a folder, a pattern, s3://…; - for a pipe",
    ),
    argument(
        "metrics", metavar="METRICS", nargs="*",
        help="such as recall@1,5,10 ndcg@10 rr; karat metrics lists them (default: recall@1,3,5,10 and others)",
    ),
    argument("--metrics", metavar="METRICS", dest="more_metrics", nargs="+", default=[], help="the same as METRICS"),
    argument(
        "--gold", metavar="FILE",
        help="the gold, if FILE has only the retrieved items: a file, a BEIR folder, irds:… (default: FILE has it)",
    ),
    MAP,
    SPLIT,
    WHERE,
    SINCE,
    UNTIL,
    argument("--judge", default="auto", help='how items are matched, such as "fuzzy(0.8)"; karat judges lists them'),
    argument(
        "--at", choices=("item", "doc", "step"), default="item",
        help="doc: compare documents, not chunks; step: evaluate each step as a query of its own",
    ),
    argument(
        "--merge", default="concat",
        help='how steps become one ranking: concat, interleave, "rrf(60)", max, or union, a set (default: concat)',
    ),
    argument("--tokens", metavar="FILE:NAME", help="the function that counts tokens for recall@500t (default: words)"),
    argument(
        "--convention", default="standard",
        help='whose definitions of the metrics, such as llamaindex or "standard(ties=given)"',
    ),
    argument(
        "--order", choices=("listed", "score"),
        help="score: sort lists by their scores (default: as listed, except with conventions that sort)",
    ),
    BY,
    BOUNDS,
    SUMMARY,
    ALSO,
    argument("-o", "--output", metavar="RUN", help="save the run as a Parquet file"),
    argument("--metrics-file", metavar="FILE", help="also write the numbers as JSON, such as metrics.json for DVC"),
    argument("--force", action="store_true", help="replace the --metrics-file even if karat did not write it"),
    FORMAT,
    argument(
        "--min-judged", metavar="SHARE", type=float, default=0.0,
        help="exit 3 if a smaller share of the queries was judged, or none",
    ),
    *model_arguments(_MODELS),
    argument(
        "--jobs", metavar="N", type=int, default=1,
        help="compare texts in N processes; the result is the same",
    ),
    argument("--engine", choices=("local", "spark"), default="local", help="spark: run on a Spark cluster"),
    argument("--master", default="local[*]", help="the Spark master, such as spark://host:7077"),
    IMPORT,
    argument("--memory", metavar="SIZE", default="1GiB", help="read larger files in pieces"),
    argument("--skip-bad-rows", action="store_true", help="skip rows that cannot be read, and count them"),
    examples=[
        ("karat eval samples.jsonl", "the usual metrics"),
        ('karat eval samples.jsonl "recall@1,5 ndcg@10 rr" -o run.parquet', "choose the metrics, and save the run"),
        ("karat eval bm25.run ap ndcg@10 --gold qrels.txt", "TREC files"),
        ('karat eval samples.jsonl recall@5 --judge "fuzzy(0.8)"', "match similar texts, not ids"),
        ("karat eval samples.jsonl recall@5 --by topic", "the means of each topic, too"),
        ("karat eval results.jsonl recall@5 --map retrieved=docs,gold=relevant", "columns with other names"),
        ("karat eval traces.jsonl recall@5 --gold gold.jsonl --since 2026-11-01", "what an application retrieved"),
    ],
    epilog=_EXIT_CODES,
    aliases=["evaluate"],
)  # fmt: skip
def _eval(options: Namespace) -> int:
    from karat.judges.protocol import share_of_one
    from karat.judges.tokens import words
    from karat.metrics import DEFAULT
    from karat.run.summaries import read_statistics

    least = share_of_one("--min-judged", options.min_judged)
    for name in options.imports:
        load_user_code(name)
    read_statistics(options.summary)
    also = also_fields(options)
    judge = _judge(options)
    check_output(options, _inputs(options, judge))
    run = _evaluate(
        options,
        " ".join([*options.metrics, *options.more_metrics]) or DEFAULT,
        gold=options.gold,
        judge=judge,
        at=options.at,
        tokens=user_function(options.tokens) if options.tokens else words,
        convention=options.convention,
        order=options.order,
        merge=options.merge,
        also=also,
        fields=",".join(options.map),
        split=options.split,
    )
    called = _model_judge(judge)
    interrupted = called is not None and called.interrupted
    problem = emit_and_save(run, options, partial=interrupted or not run.enough_judged(least))
    if called is not None:
        put(paragraph(called.usage(), "  ", "", stream=sys.stderr), error=True)
    if problem is not None:
        raise RunFileError(f"{problem.problem}{_cached(called)}", hint=ELSEWHERE) from problem
    if interrupted:
        return _INTERRUPTED
    _check_judged(run, least)
    return 0


def also_fields(options: Namespace) -> list[str]:
    """The fields that --also names, each once."""
    from karat.run.numbers import read_fields

    return [str(field) for given in options.also for field in read_fields(given)]


def emit_and_save(run: Run, options: Namespace, *, partial: bool = False) -> RunFileError | None:
    """Save the run if requested, and print it; return why it could not be saved. A partial run replaces no other run.

    It is saved first, because standard output may be a pipe that is closed early.
    """
    from pathlib import Path

    from karat.report import render

    target, problem = options.output and Path(options.output), None
    if partial and target and target.exists():
        target = target.with_name(f"{target.stem}.partial{target.suffix}")
    try:
        if target:
            run.save(target)
            if target != Path(options.output):
                say(f"{options.output} is kept: the new run is partial, and is saved to {target}", error=True)
    except RunFileError as error:
        problem = error
    form = getattr(options, "format", "table")
    wanted = {name: getattr(options, name, []) for name in ("by", "summary")}
    if path := getattr(options, "metrics_file", None):
        with text_file(path) as write:
            write(f"{render(run, 'metrics', **wanted)}\n")
    try:
        emit(run, form, **wanted, bounds=getattr(options, "bounds", False))
        if target and problem is None and form == "table":
            put()
            say(f"Saved to {target}")
    except OSError:  # the run that is not saved is the larger problem
        if problem is None:
            raise
    return problem


def _cached(judge: ModelJudge | None) -> str:
    """A second sentence, on the answers that were paid for: where they are cached."""
    if judge is None:
        return ""
    from karat.llm.cache import cache_path

    cache = DEFAULT_CACHE if judge.calls.cache is True else judge.calls.cache
    if not cache or judge.engine.warning:
        warning = judge.engine.warning or "the answers of the model are not cached"
        return f". {warning[0].upper()}{warning[1:]}."
    return f". The answers of the model are cached in {cache_path(cache)}: they are not paid for again."


def _is_file(value: str | PathLike[str]) -> bool:
    from pathlib import Path

    try:
        return Path(value).is_file()
    except (OSError, ValueError):  # a text that is no path
        return False


def _inputs(options: Namespace, judge: Judge) -> list[str | PathLike[str] | None]:
    """Every file that an evaluation reads, the cache among them."""
    settings = [value for value in judge.settings.values() if isinstance(value, str | PathLike) and _is_file(value)]
    tokens = (options.tokens or "").rpartition(":")[0]
    given = [options.file, options.gold, *options.imports, tokens, options.prices, *settings]
    if judge.model is None:
        return given
    from karat.llm.cache import cache_path

    return [*given, cache_path(options.cache or DEFAULT_CACHE)]


def check_output(options: Namespace, inputs: Iterable[str | PathLike[str] | None]) -> None:
    """Refuse, before any work, an output that cannot be written as a run."""
    from karat.run.file import check_path

    inputs = list(inputs)
    metrics_file = getattr(options, "metrics_file", None)
    check_outputs({"--metrics-file": metrics_file, "-o": options.output}, inputs)
    if metrics_file is not None and not getattr(options, "force", False):
        _check_replaceable(metrics_file)
    if options.output is None:
        return
    try:
        check_path(options.output, inputs, "-o")
    except RunFileError as error:
        name = options.output
        then = next((f", then karat {how} {name}" for ending, how in _WRITE.items() if name.endswith(ending)), "")
        raise BadArgument(error.problem, got=name, hint=f"-o run.parquet{then}") from None


def _check_replaceable(path: str) -> None:
    """Refuse to replace a file that is neither empty nor one with the numbers of a run."""
    from json import loads
    from pathlib import Path

    file = Path(path)
    if is_special(path) or not file.is_file() or not file.stat().st_size:
        return
    try:
        known = loads(file.read_bytes())
    except (OSError, ValueError):
        known = None
    if not (isinstance(known, dict) and known.keys() >= {"queries", "failed_queries"}):
        problem = f"cannot write {path}: it exists, and karat eval did not write it"
        raise BadArgument(problem, hint=f"--metrics-file {new_name(path)}, or --force")


def _evaluate(options: Namespace, metrics: Any, **settings: Any) -> Run:
    """Evaluate here or on a cluster."""
    chosen = {name: value for name in ("where", "since", "until") if (value := getattr(options, name))}
    if options.engine == "spark":
        if chosen:
            raise BadArgument("--where, --since and --until do not apply to --engine spark", hint="--engine local")
        if options.skip_bad_rows or options.jobs != 1:
            raise BadArgument("--skip-bad-rows and --jobs do not apply to --engine spark", hint="--engine local")
        if settings.pop("split") is not None:
            raise BadArgument("--split does not apply to --engine spark", hint="--engine local")
        from karat.scale.spark.tables import evaluate_files

        also = settings.pop("also")
        run = evaluate_files(options.file, metrics, master=options.master, **settings).run
        return run.also(also) if also else run
    from karat.pipeline import evaluate

    local = {"jobs": options.jobs, "memory": options.memory, "skip_bad_rows": options.skip_bad_rows}
    if chosen:
        from karat.samples.traces.traces import read_traces

        return evaluate(read_traces(options.file, **chosen), metrics, **settings, **local)
    return evaluate(options.file, metrics, **settings, **local)


def _judge(options: Namespace) -> Judge:
    """The judge, with the settings of its model."""
    from karat.judges import find_judge

    settings = given_settings(options)
    if not settings and (judge := find_judge(options.judge)).model is None:
        return judge  # nothing of karat.llm is loaded
    from karat.judges.model_judge import judge_with_model

    return judge_with_model(options.judge, confirm=not options.yes, **settings)


def _model_judge(judge: Judge) -> ModelJudge | None:
    """The judge, if it has called a model."""
    if judge.model is None:
        return None
    from karat.judges.model_judge import ModelJudge

    return judge if isinstance(judge, ModelJudge) and judge.spent is not None else None


def _check_judged(run: Run, least: float) -> None:
    """Refuse a run of which too few queries were judged; it was shown and saved before."""
    from karat.run.repeats import judged_in_words

    if not run.enough_judged(least):
        expected = f"; expected at least {100 * least:g} % (--min-judged {least:g})" if run.judged_rows else ""
        raise NotJudged(f"{judged_in_words(run)}{expected}")
