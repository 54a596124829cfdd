"""`karat label`: people grade the items of a pool in the browser, and their labels become gold."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from shlex import quote
from threading import Thread
from typing import TYPE_CHECKING

from karat._internal.display import plural
from karat._internal.writers import put
from karat.cli import argument, command, say
from karat.cli.model_options import given_settings, model_arguments
from karat.errors import BadArgument

if TYPE_CHECKING:
    from karat.web.label.label_desk import Desk
    from karat.web.label.label_files import Wanted

_SECONDS, _BODY = 120.0, 200_000
"""The time that a page may take, and the bytes that it may send."""
_LONGEST = 200_000
"""The characters of a guideline."""
_MODELS = "opinions of a language model"
_OTHER = "other work than a pool"


@command(
    "label", "make gold: people grade the items of a pool in the browser",
    argument("source", metavar="POOL", nargs="?", type=Path,
             help="a file of karat pool; with --sample, a run file"),
    argument("-o", "--output", metavar="FILE", type=Path, required=True,
             help="the gold, such as gold.jsonl; the labels are in gold.labels.jsonl next to it"),
    argument("--by", metavar="NAME", default="", help="the name of the person (default: the page asks)"),
    argument("--for", dest="metric", metavar="METRIC",
             help="order the work by what a label does to the difference of the runs, such as recall@5"),
    argument("--scale", metavar="SCALE",
             help='graded (0 to 3), binary, or "0=no,1=partly,2=yes" (default: that of the labels, else graded)'),
    argument("--guideline", metavar="FILE", type=Path, help="a text file that the page shows on the key g"),
    argument("--qrels", metavar="FILE", type=Path, help="also write TREC qrels; −1 for what is not judged"),
    argument("--write", action="store_true", help="only write the gold from the labels, and exit"),
    argument("--port", type=int, help="0 takes a free one (default: 5273, or a free one if it is taken)"),
    argument("--no-open", action="store_true", help="do not open a browser; the address is the first line"),
    argument("--holes", metavar="RUN", type=Path, group=_OTHER,
             help="label what this run retrieved and --gold does not judge"),
    argument("--gold", metavar="FILE", type=Path, group=_OTHER, help="the gold that is known, for --holes"),
    argument("--sample", metavar="N", type=int, group=_OTHER,
             help="label a random sample of N judgements of a run that a model judged, for karat calibrate"),
    argument("--depth", metavar="N", type=int, group=_OTHER,
             help="the ranks of each query for --holes and --sample (default: 10); fewer give a sample more queries"),
    argument("--model", metavar="NAME", group=_MODELS,
             help='a model that grades first, or "lexical"; hidden until the person has answered, and never gold'),
    argument("--show-model", action="store_true", group=_MODELS, help="show its opinions before the answer"),
    *model_arguments(_MODELS, model=False),
    examples=(
        ("karat label pool.parquet -o gold.jsonl --by ada", "grade a pool"),
        ("karat label pool.parquet -o gold.jsonl --for recall@5", "first what tells the runs apart"),
        ("karat label --holes new.parquet --gold gold.jsonl -o more.jsonl", "only what a new run brings"),
        ("karat label --sample 50 run.parquet -o check.jsonl", "check the judge of a run"),
    ),
    epilog="Every answer is on the disk before the next item appears. Only this machine, and only the browser with "
           "the printed address, can label.\n",
)  # fmt: skip
def label(options: Namespace) -> None:
    """Prepare the work, serve the page until Ctrl-C, then write the gold."""
    from karat._internal.output import new_name
    from karat.gold.labels import GRADED, SETTLED, checked_person, is_labels_file, labels_path, parse_scale, read_labels
    from karat.web.label.label_files import Prepared, elsewhere

    path = labels_path(options.output)
    if options.output.exists() and not path.exists():
        hint = f"-o {new_name(options.output)}, or karat pool RUN --gold {quote(str(options.output))}"
        raise BadArgument(f"{options.output} was not made by karat label: it is not replaced", hint=hint)
    options.by = checked_person(options.by) if options.by else ""
    if options.by.casefold() == SETTLED:
        raise BadArgument("this name is kept for settled disagreements", got=options.by, hint="--by ada")
    scale = None if options.scale is None else parse_scale(options.scale)
    if scale is None and path.exists() and is_labels_file(path):
        scale = read_labels(path).header.scale
    wanted = _wanted(options, max((scale or GRADED).values))
    if not options.write:
        prepared = elsewhere("prepare", wanted, Prepared)
        for remark in prepared.remarks:
            say(remark, error=True)
        if not prepared.work.size:
            raise BadArgument("there is nothing to label: everything in the pool is judged", got=str(wanted.pool))
        _serve(options, wanted, prepared)
    _finish(options, wanted)


def _wanted(options: Namespace, highest: float) -> Wanted:
    """The files and settings; refused if they do not fit together."""
    from karat._internal.output import check_outputs
    from karat.web.label.label_files import Wanted

    kinds = {"holes": options.holes is not None, "sample": options.sample is not None}
    if all(kinds.values()) or (kinds["holes"] and options.source is not None):
        raise BadArgument("a pool, --holes and --sample exclude each other", hint="karat label --help")
    kind = next((name for name, given in kinds.items() if given), "pool")
    source = options.holes if kind == "holes" else options.source
    if source is None:
        run = "run.parquet" if kind == "sample" else "pool.parquet"
        hint = f"karat label {'--sample 50 ' if kind == 'sample' else ''}{run} -o {options.output}"
        raise BadArgument(f"karat label needs {'a run' if kind == 'sample' else 'a pool'}", hint=hint)
    if (kind == "holes") != (options.gold is not None):
        hint = "karat label --holes new.parquet --gold gold.jsonl -o more.jsonl"
        raise BadArgument("--holes and --gold belong together", hint=hint)
    if kind == "sample" and options.sample < 1:
        raise BadArgument("--sample must be above 0", got=options.sample, hint="--sample 50")
    if options.depth is not None and (kind == "pool" or options.depth < 1):
        problem = "--depth must be above 0" if kind != "pool" else "--depth is for --holes and --sample"
        raise BadArgument(problem, got=options.depth, hint="karat pool --depth 5" if kind == "pool" else "--depth 5")
    if options.show_model and options.model is None and kind == "pool":
        raise BadArgument("--show-model needs --model", hint="--model gpt-4o-mini --show-model")
    check_outputs({"-o": options.output, **({"--qrels": options.qrels} if options.qrels else {})}, _inputs(options))
    settings = given_settings(options)
    if settings.keys() - {"model"} and options.model in (None, "lexical"):
        name = min(settings.keys() - {"model"}).replace("_", "-")
        raise BadArgument(f"--{name} is for a language model", hint=f"--model gpt-4o-mini --{name} …")
    return Wanted(
        str(source), str(options.output), kind, None if options.gold is None else str(options.gold),
        options.sample or 0, options.metric, highest, options.model,
        options.depth or 10, {name: value for name, value in settings.items() if name != "model"},
        confirm=not options.yes, qrels=None if options.qrels is None else str(options.qrels),
    )  # fmt: skip


def _inputs(options: Namespace) -> list[Path]:
    return [one for one in (options.source, options.holes, options.gold, options.guideline) if one is not None]


def _serve(options: Namespace, wanted: Wanted, prepared: object) -> None:
    """Open the labels, and serve the page."""
    from secrets import token_urlsafe

    from karat.cli.view import listen_at, open_browser
    from karat.gold.labels import LabelFile, labels_path, parse_scale
    from karat.web.label.label_desk import Desk
    from karat.web.label.label_files import Prepared
    from karat.web.server import serve
    from karat.web.settings import Limits, Settings

    assert isinstance(prepared, Prepared)
    guideline = _guideline(options.guideline)
    scale = None if options.scale is None else parse_scale(options.scale)
    work, path = prepared.work, labels_path(options.output)
    with LabelFile(path, pool=work.pool, pairs=work.pairs(), scale=scale) as labels:
        if labels.torn:
            say(f"{path} ended in a torn line of {labels.torn} bytes: it was moved to {path.name}.torn", error=True)
        desk = Desk(work, labels, by=options.by, guideline=guideline, show_model=options.show_model)
        at = listen_at(options.port)
        port, token, once = at.getsockname()[1], token_urlsafe(24), token_urlsafe(24)
        address = f"http://127.0.0.1:{port}/label?token="
        settings = Settings(
            view=wanted.pool.resolve().parent, token=token, once=once, port=port, workers=1, label=desk,
            limits=Limits(seconds=_SECONDS, body=_BODY), label_files=_label_files(wanted),
        )  # fmt: skip

        def started() -> None:
            put(address + token)
            _say_begin(desk, path, prepared.opinions)
            if not options.no_open:
                Thread(target=open_browser, args=(address + once,), daemon=True).start()

        serve(at, settings, started)


def _label_files(wanted: Wanted) -> dict[str, str]:
    from karat.web.label.label_files import beside

    if wanted.metric is None:
        return {}
    files = {"pool": wanted.pool.resolve(), "opinions": beside(Path(wanted.out).resolve(), "opinions.jsonl")}
    return {name: str(path) for name, path in files.items()} | {"metric": wanted.metric, "highest": f"{wanted.highest}"}


def _guideline(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text("utf-8", errors="replace")[:_LONGEST]
    except OSError as error:
        raise BadArgument(f"cannot read {path}: {error.strerror or error}", hint="--guideline FILE") from error


def _say_begin(desk: Desk, path: Path, opinions: int) -> None:
    work = desk.work
    order = f" in the order for {work.metric}" if work.metric else ""
    known = f"; {work.judged:,} are judged already" if work.judged else ""
    queries = plural(len(work.queries), "query", "queries")
    say(f"{plural(work.size, 'item', 'items')} of {queries} to label{order}{known}", error=True)
    if opinions:
        say(f"{plural(opinions, 'opinion', 'opinions')} of a model, hidden until a person has answered", error=True)
    before = f", with {plural(desk.before, 'label', 'labels')} from before" if desk.before else ""
    say(f"every answer is stored in {path}{before}; Ctrl-C ends and writes the gold", error=True)


def _finish(options: Namespace, wanted: Wanted) -> None:
    """Write the gold, and say what is where, and what to do next."""
    from karat.gold.labels import labels_path
    from karat.web.label.label_files import Written, elsewhere

    path = labels_path(options.output)
    if not path.exists():
        raise BadArgument(
            f"there are no labels: {path} does not exist",
            hint=f"karat label {quote(wanted.source)} -o {quote(str(options.output))}",
        )
    done = elsewhere("finish", wanted, Written)
    left = f"{plural(done.unjudged, 'item', 'items')} of the pool not judged"
    say(f"{plural(done.grades, 'label', 'labels')}, stored in {path}; {left}", error=True)
    if not done.grades:
        if options.output.exists():
            say(f"{options.output} is left as it is: no grade stands", error=True)
        return
    items = f"{done.relevant:,} relevant and {done.irrelevant:,} irrelevant items"
    size = f"{plural(done.queries, 'query', 'queries')}, {items}"
    say(f"gold: {options.output} with {size}" + (f"; qrels: {options.qrels}" if options.qrels else ""), error=True)
    for line in done.lines:
        say(line, error=True)
    if wanted.kind == "sample":
        say(f"next: karat calibrate {quote(wanted.source)} {quote(str(path))}", error=True)
    else:
        say(f"next: karat eval SAMPLES --gold {quote(str(options.output))} -o run.parquet", error=True)
