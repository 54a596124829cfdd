"""`karat fuse`: several rankings of the same queries, fused into one, and what that adds to the best of them."""

from __future__ import annotations

from argparse import Namespace

from karat._internal.output import check_outputs
from karat.cli import argument, command, emit, format_argument, say
from karat.cli.evaluate import MAP
from karat.errors import BadArgument

_EPILOG = """\
methods:
  rrf(60)                    reciprocal rank fusion; takes weights
  wsum(norm=min-max)         weighted sum of scores; takes weights
  combsum, combmnz, combanz, combmax, combmin, combmed (norm=…)
  isr, rbc(0.8), borda       by rank

normalisations: none, min-max, max, sum, zmuv, rank, borda (default: min-max)
"""


@command(
    "fuse",
    "fuse the rankings of several retrievers, and compare with the best of them",
    argument("first", metavar="LEG", help="a run file, written by karat eval -o; or a TREC run or samples"),
    argument("others", metavar="LEG", nargs="+", help="the legs to fuse it with"),
    argument("--method", default="rrf(60)", help="the method with its settings (default: %(default)s)"),
    argument("--weights", metavar="W,W", help="one weight per leg, for rrf and wsum, such as 0.7,0.3"),
    argument("--depth", type=int, metavar="K", help="the number of items of a fused ranking (default: all)"),
    argument("--metrics", nargs="+", default=(), help="metrics that all legs have (default: all of them)"),
    argument("--sweep", action="store_true", help="choose method and weights by cross-validation over the queries"),
    argument("--metric", help="the metric that --sweep maximises (default: the first)"),
    argument("--folds", type=int, metavar="N", default=5, help="the folds of --sweep (default: %(default)s)"),
    argument(
        "--allow-mismatch", action="store_true", help="fuse runs of different data or settings over the shared queries"
    ),
    MAP,
    argument("-o", "--output", metavar="RUN", help="save the fused run, which compare, gate and report read"),
    argument("--trec", metavar="FILE", help="write the fused rankings as a TREC run"),
    format_argument("json", "csv", "markdown"),
    examples=[
        ("karat fuse main.parquet branch.parquet", "reciprocal rank fusion"),
        ('karat fuse main.parquet branch.parquet --method "wsum(norm=zmuv)" --weights 0.7,0.3', "a weighted sum"),
        ("karat fuse main.parquet branch.parquet --sweep --metric recall@5", "the best setting, on held-out queries"),
        ("karat fuse main.parquet branch.parquet -o fused.parquet", "save the fused run"),
    ],
    epilog=_EPILOG,
)
def _fuse(options: Namespace) -> None:
    from karat.analysis.fuse import fuse
    from karat.run.file import check_path

    legs = (options.first, *options.others)
    if options.output is not None:
        check_path(options.output, legs, "-o")
    check_outputs({"-o": options.output, "--trec": options.trec}, legs)
    found = fuse(
        *legs, method=options.method, weights=options.weights, depth=options.depth,
        metrics=" ".join(options.metrics) or None, sweep=options.sweep, metric=options.metric, folds=options.folds,
        allow_mismatch=options.allow_mismatch, fields=",".join(options.map),
    )  # fmt: skip
    if options.output is not None:
        if found.run is None:
            raise BadArgument(
                "there is no fused run to save",
                got="; ".join(found.remarks()) or "legs without gold",
                hint="run files as legs, or --trec fused.trec",
            )
        found.run.save(options.output)
    if options.trec is not None:
        found.to_trec(options.trec)
    emit(found, options.format)
    for path in filter(None, (options.output, options.trec)):
        say(f"Saved to {path}", error=options.format != "table")
