"""`karat eval`: from a file to a table of means, and a run file."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from karat.cli.user_code import add_import, function, load
from karat.errors import BadArgument


def add(commands: Any) -> None:
    """Declare the command."""
    evaluate = commands.add_parser("eval", help="evaluate a file of samples, or a run against its gold")
    evaluate.add_argument(
        "file", metavar="FILE", help="JSONL, JSON, CSV, Parquet, TREC; .gz, .zst; - for standard input"
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
    evaluate.add_argument("--format", choices=("table", "json", "csv", "markdown"), default="table")
    add_import(evaluate)
    evaluate.add_argument(
        "--skip-bad-rows", action="store_true", help="leave out rows that cannot be read, and count them"
    )
    evaluate.set_defaults(command=_eval, takes_metrics=True)


def _eval(options: Namespace) -> None:
    from karat.evaluation import evaluate
    from karat.metrics import DEFAULT
    from karat.report import terminal
    from karat.tokens import words

    for name in options.imports:
        load(name)
    if options.output and options.output.endswith((".json", ".jsonl", ".csv")):
        raise BadArgument("a run is saved as Parquet", got=options.output, hint="-o run.parquet; --format for the rest")
    run = evaluate(
        options.file,
        options.metrics or DEFAULT,
        gold=options.gold,
        judge=options.judge,
        at=options.at,
        tokens=function(options.tokens) if options.tokens else words,
        convention=options.convention,
        skip_bad_rows=options.skip_bad_rows,
    )
    slices = run.by(options.by) if options.by else None
    if options.output:
        run.save(options.output)
    if options.format == "json":
        import msgspec

        told = run.to_dict() | (
            {} if slices is None else {"by": {value: part.to_dict() for value, part in slices.items()}}
        )
        print(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
    elif options.format == "csv":
        print((run if slices is None else slices).table.write_csv(), end="")
    elif options.format == "markdown":
        from karat.report import markdown

        print(markdown.evaluation(run, slices))
    else:
        parts = [terminal.evaluation(run), *([repr(slices)] if slices else [])]
        print("\n\n".join(parts))
        if options.output:
            print(f"\nSaved to {options.output}")
