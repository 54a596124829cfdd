"""`karat eval`: from a file to a table of means, and a run file."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from karat.errors import BadArgument, KaratError
from karat.run import Run

if TYPE_CHECKING:
    from dataclasses import Field

    from karat.judges import Judge
    from karat.run import Run


def add_engine(command: ArgumentParser) -> None:
    """Let a command take the number of processes, or a cluster."""
    command.add_argument(
        "--jobs", metavar="N", type=int, default=1, help="judge texts in so many processes; the result is the same"
    )
    command.add_argument("--engine", choices=("here", "spark"), default="here", help="spark: on a cluster")
    command.add_argument("--master", default="local[*]", help="the cluster, such as spark://host:7077 (%(default)s)")


def evaluator(options: Namespace) -> Callable[..., Run]:
    """The function that evaluates, wherever it does."""
    if options.engine == "spark":
        return partial(_on_spark, options)
    from karat.pipeline import evaluate

    return partial(evaluate, jobs=options.jobs)


def _on_spark(options: Namespace, file: str, metrics: Any, *, skip_bad_rows: bool, **settings: Any) -> Run:
    if skip_bad_rows or options.jobs != 1:
        raise BadArgument("--skip-bad-rows and --jobs are not for a cluster", hint="a query that fails is told as such")
    from karat.scale.spark.tables import evaluate_files

    settings.pop("memory", None)  # which is Spark's to keep within bounds
    return evaluate_files(file, metrics, master=options.master, **settings).run


_INTERRUPTED = 130


def add_models(parser: ArgumentParser) -> None:
    """Declare an option for every setting of a model that has a help text."""
    group = parser.add_argument_group('for judges that call a language model, such as --judge "claims(gpt-4o-mini)"')
    for own in _model_options():
        group.add_argument(f"--{own.name.replace('_', '-')}", **own.metadata)
    group.add_argument("--yes", action="store_true", help="start without showing the estimate and asking")


def _model_options() -> list[Field[Any]]:
    from dataclasses import fields

    from karat.llm.settings import ModelSettings

    return [own for own in fields(ModelSettings) if own.metadata]


def judge_of(options: Namespace) -> Judge:
    """The judge, with the options of its model."""
    from karat.judges.model_judge import judge_with_model

    settings = {own.name: getattr(options, own.name) for own in _model_options()}
    settings["cache"] = False if options.cache == "none" else options.cache
    return judge_with_model(options.judge, confirm=not options.yes, **settings)


def exit_code(judge: Judge) -> int:
    """Print what the model was used for; return the exit code, that of an interruption if there was one."""
    if judge.model is None:
        return 0
    from karat.judges.model_judge import ModelJudge

    if not isinstance(judge, ModelJudge) or judge.spent is None:
        return 0
    print(judge.usage(), file=sys.stderr)
    return _INTERRUPTED if judge.interrupted else 0


def add_import(command: ArgumentParser) -> None:
    """Let a command take files with metrics of the user's own."""
    command.add_argument(
        "--import", dest="imports", metavar="FILE", action="append", default=[],
        help="a Python file or module with metrics of your own",
    )  # fmt: skip


def function(place: str) -> Any:
    """A function of the user's: `file.py:name` or `module:name`."""
    home, colon, name = place.rpartition(":")
    function = getattr(load(home), name, None) if colon else None
    if not callable(function):
        raise BadArgument(f"no function {place}", hint="file.py:name, or module:name")
    return function


def load(name: str) -> ModuleType:
    """Load a file or module of the user's, so that what it defines is known."""
    import importlib
    import importlib.util

    try:
        if not name.endswith(".py"):
            sys.path.insert(0, "")
            return importlib.import_module(name)
        known = f"karat_user_{Path(name).resolve().as_posix().encode().hex()}"
        if known in sys.modules:  # a file that is named twice is one module
            return sys.modules[known]
        spec = importlib.util.spec_from_file_location(known, name)
        if spec is None or spec.loader is None:
            raise ImportError(name)
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[spec.name]
            raise
    except KaratError:
        raise
    except (Exception, SystemExit) as error:
        raise BadArgument(f"cannot import {name}: {type(error).__name__}: {error}") from error
    return module


def add(commands: Any) -> None:
    """Declare the command."""
    evaluate = commands.add_parser(
        "eval", aliases=["evaluate"], help="evaluate a file of samples, or a run against its gold"
    )
    evaluate.add_argument(
        "file",
        metavar="FILE",
        help="JSONL, JSON, CSV, Parquet, Arrow, TREC; .gz, .zst; a folder, a pattern, s3://…; - for standard input",
    )
    evaluate.add_argument("metrics", metavar="METRICS", nargs="?", help='such as "recall@1,5,10 ndcg@10 rr"')
    evaluate.add_argument("--gold", metavar="FILE", help="the gold, if FILE holds only what was retrieved")
    evaluate.add_argument(
        "--judge", default="auto", help='how items are compared, such as "fuzzy(0.8)"; karat judges lists them'
    )
    evaluate.add_argument("--at", choices=("item", "doc"), default="item", help="doc: compare documents, not chunks")
    evaluate.add_argument(
        "--tokens", metavar="FILE:NAME", help="the function that counts tokens for recall@500t (default: words)"
    )
    evaluate.add_argument("--convention", default="standard", help="whose definitions (default: %(default)s)")
    evaluate.add_argument("--by", metavar="FIELD", help="also show the means for each value of a field")
    evaluate.add_argument("-o", "--output", metavar="RUN", help="save the run as a Parquet file")
    evaluate.add_argument(
        "--format", choices=("table", "json", "csv", "markdown"), default="table", help="csv: one row per query"
    )
    add_models(evaluate)
    add_engine(evaluate)
    add_import(evaluate)
    evaluate.add_argument(
        "--memory", metavar="SIZE", default="1GiB", help="larger files are read in pieces (default: %(default)s)"
    )
    evaluate.add_argument(
        "--skip-bad-rows", action="store_true", help="leave out rows that cannot be read, and count them"
    )
    evaluate.set_defaults(command=_eval, takes_metrics=True)


def _eval(options: Namespace) -> int:
    from karat.judges.tokens import words
    from karat.metrics import DEFAULT

    for name in options.imports:
        load(name)
    if options.output and options.output.endswith((".json", ".jsonl", ".csv")):
        raise BadArgument("a run is saved as Parquet", got=options.output, hint="-o run.parquet; --format for the rest")
    judge = judge_of(options)
    run = evaluator(options)(
        options.file,
        options.metrics or DEFAULT,
        gold=options.gold,
        judge=judge,
        at=options.at,
        tokens=function(options.tokens) if options.tokens else words,
        convention=options.convention,
        skip_bad_rows=options.skip_bad_rows,
        memory=options.memory,
    )
    text = shown(run, options.by, options.format)
    if options.output:
        run.save(options.output)
    print(text, end="")
    if options.output and options.format == "table":
        print(f"\nSaved to {options.output}")
    return exit_code(judge)


def shown(run: Run, by: str | None, form: str) -> str:
    """The run, with its slices by a field if there is one."""
    slices = run.by(by) if by else None
    if form == "json":
        import msgspec

        parts = {} if slices is None else {"by": {value: part.to_dict() for value, part in slices.items()}}
        return msgspec.json.format(msgspec.json.encode(run.to_dict() | parts), indent=2).decode() + "\n"
    if form == "csv":
        return (run if slices is None else slices).table.write_csv()
    if form == "markdown":
        from karat.report.forms import evaluation as as_markdown

        return as_markdown(run, slices) + "\n"
    from karat.report import run as terminal

    return "\n\n".join([terminal.evaluation(run), *([repr(slices)] if slices else [])]) + "\n"


def add_show(commands: Any) -> None:
    """Declare the command."""
    show = commands.add_parser("show", help="print the means of a saved run again")
    show.add_argument("run", metavar="RUN", help="a run file, as karat eval -o writes it")
    show.add_argument("--by", metavar="FIELD", help="also show the means for each value of a field")
    show.add_argument(
        "--format", choices=("table", "json", "csv", "markdown"), default="table", help="csv: one row per query"
    )
    show.set_defaults(command=_show)


def _show(options: Namespace) -> None:
    from karat.run.file import load

    print(shown(load(options.run), options.by, options.format), end="")


def add_merge(commands: Any) -> None:
    """Declare the command."""
    merge = commands.add_parser("merge", help="put runs of some of the queries each together as one run")
    merge.add_argument("parts", metavar="RUN", nargs="+", help="run files, as karat eval -o writes them, in any order")
    merge.add_argument("-o", "--output", metavar="RUN", required=True, help="save the run of all queries here")
    merge.set_defaults(command=_merge)


def _merge(options: Namespace) -> None:
    from karat.report import run as terminal
    from karat.run.merge import merge

    run = merge(options.parts)
    run.save(options.output)
    print(terminal.evaluation(run))
    print(f"\nSaved to {options.output}")
