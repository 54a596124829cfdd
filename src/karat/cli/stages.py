"""`karat stages`: the stages of a pipeline, from one file of samples or from several run files."""

from __future__ import annotations

from argparse import Namespace

from karat._internal.user_code import load_user_code
from karat.cli import argument, command, emit, format_argument
from karat.cli.evaluate import IMPORT, MAP
from karat.errors import BadArgument, KaratError


@command(
    "stages",
    "compare the stages of a pipeline: what does the reranker add?",
    argument(
        "given", metavar="FILE", nargs="+",
        help='samples with "stages", or run files in the order of the pipeline; then metrics, such as recall@5 ndcg@10',
    ),
    argument("--metrics", metavar="METRICS", nargs="+", default=[], help="the same as metrics after the files"),
    argument("--gold", metavar="FILE", help="the gold of traces with rerankers, found by the text of the query"),
    argument("--names", metavar="NAME", nargs="+", help="the stages and their order, or the names of the run files"),
    argument("--judge", default="auto", help='how items are matched, such as "fuzzy(0.8)"; karat judges lists them'),
    argument("--at", choices=("item", "doc"), default="item", help="doc: compare documents, not chunks"),
    argument("--convention", default="standard", help="whose definitions of the metrics, such as llamaindex"),
    argument("--order", choices=("listed", "score"), help="score: sort lists by their scores (default: as listed)"),
    argument("-k", "--k", type=int, metavar="K", help="the cutoff (default: that of the recall nearest to 5)"),
    argument("-n", type=int, metavar="N", default=5, help="queries to list (default: %(default)s)"),
    MAP,
    IMPORT,
    format_argument("json", "csv", "markdown", about="csv: one row per stage and metric"),
    examples=[
        ("karat stages stages.jsonl recall@5 ndcg@10", 'samples with "stages"'),
        ("karat stages main.parquet branch.parquet", "two run files, in the order of the pipeline"),
        ("karat stages stages.jsonl recall@3 --names bm25 reranked", "two of the stages"),
    ],
)  # fmt: skip
def _stages(options: Namespace) -> None:
    from karat.analysis.stages import stages
    from karat.judges import find_judge

    for name in options.imports:
        load_user_code(name)
    judge = find_judge(options.judge)
    if judge.model is not None:
        problem = f'judge "{judge.name}" calls a model: karat stages does not estimate its cost'
        raise BadArgument(problem, hint=f'karat.stages("{options.given[0]}", judge="{options.judge}") in Python')
    first, *others = options.given
    files = [first, *(one for one in others if not _is_metric(one))]
    metrics = " ".join([*filter(_is_metric, others), *options.metrics]) or None
    given = _traces(files, options.gold) if options.gold else files[0] if len(files) == 1 else files
    found = stages(
        given, metrics, names=options.names, judge=options.judge,
        at=options.at, convention=options.convention, order=options.order, k=options.k, fields=",".join(options.map),
    )  # fmt: skip
    shown = {"shown": max(options.n, 0)} if options.format in {"table", "markdown"} else {}
    emit(found, options.format, **shown)


def _traces(files: list[str], gold: str) -> object:
    """The samples of a file of traces, with their gold."""
    from karat.samples.traces.traces import read_traces

    if len(files) > 1:
        raise BadArgument("--gold is for one file of traces", got=files, hint=f"karat stages {files[0]} --gold {gold}")
    return read_traces(files[0], gold=gold)


def _is_metric(given: str) -> bool:
    """True if an argument after the first file names metrics; a path that exists, or that ends like one, is a file."""
    from pathlib import Path

    from karat.metrics import parse_all

    if Path(given).is_file():
        return False
    try:
        return bool(parse_all(given))
    except KaratError:  # a file that does not exist, or a metric that is misspelt
        return "(" in given or not (Path(given).suffix or "/" in given)
