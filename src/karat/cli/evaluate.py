"""`karat eval`: from a file to a table of means, and a run file."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from karat.cli.engines import add_engine, evaluator
from karat.cli.models import add_models, exit_code, judge_of
from karat.cli.user_code import add_import, function, load
from karat.errors import BadArgument


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
    from karat.cli.output import shown
    from karat.metrics import DEFAULT
    from karat.tokens import words

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
