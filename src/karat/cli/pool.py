"""`karat pool`, separate from `karat label`: the items that several runs retrieved, each once, for people to label."""

from __future__ import annotations

from argparse import Namespace
from shlex import quote

from karat.cli import argument, command, emit, format_argument, say
from karat.cli.evaluate import MAP


@command(
    "pool",
    "pool what several runs retrieved, to label it",
    argument("runs", metavar="RUN", nargs="+", help="a run file, samples with results, or a TREC run; gold not needed"),
    argument("--depth", type=int, metavar="N", default=10, help="the ranks of each run that are pooled"),
    argument(
        "--gold", metavar="FILE", action="append", default=[],
        help="gold that is known already: what it judges is not asked again; may be repeated",
    ),
    MAP,
    argument("-o", "--output", metavar="POOL", help="save the pool, which karat label reads"),
    format_argument("json", "csv", "markdown"),
    examples=[
        ("karat pool main.parquet branch.parquet -o pool.parquet", "what either returned in its top 10"),
        ("karat pool samples.jsonl bm25.run --depth 5", "samples and TREC runs, no gold needed"),
        ("karat pool branch.parquet --gold gold.jsonl", "what is not judged in a new run"),
    ],
)  # fmt: skip
def _pool(options: Namespace) -> None:
    from karat.gold.pool import pool
    from karat.gold.pool_file import check_pool_path

    if options.output is not None:
        check_pool_path(options.output, (*options.runs, *options.gold), "-o")
    found = pool(options.runs, depth=options.depth, gold=options.gold or None, fields=",".join(options.map))
    if options.output is not None:
        found.save(options.output)
    emit(found, options.format)
    if options.output is not None:
        label = f". Label it: karat label {quote(options.output)} -o gold.jsonl" if found.judged < found.size else ""
        say(f"Saved to {options.output}{label}", error=options.format != "table")
