"""The command line: reads arguments, calls the functions of the library, prints. No logic of its own."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from karat._version import __version__
from karat.errors import BadArgument, KaratError

_EPILOG = """\
examples:
  karat demo                                          see it work, no data needed
  karat eval samples.jsonl                            {"query": …, "retrieved": […], "gold": […]} per line
  karat eval samples.jsonl "recall@1,5 ndcg@10 rr"    the metrics you want
  karat eval run.trec --gold qrels.txt -o run.parquet TREC files, and keep the result
  karat eval samples.jsonl --judge "fuzzy(0.8)"       texts that need not be equal; karat judges lists more
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, or 2 if the input was not usable."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a terminal cannot show is written out, not a reason to fail
            stream.reconfigure(errors="backslashreplace")
    options = _options(arguments)
    try:
        options.command(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KaratError as error:
        print(_told(error), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("karat: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe has seen enough
        _forget_output()
    except OSError as error:  # a full disk, most likely
        print(f"karat: cannot write the output: {error.strerror}", file=sys.stderr)
        _forget_output()
        return 2
    return 0


def _options(arguments: Sequence[str] | None) -> Namespace:
    """Read the arguments; metrics may stand anywhere among them, quoted or not."""
    parser = _parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        parser.print_help(sys.stderr)
        raise SystemExit(2)
    options, rest = parser.parse_known_args(given)
    if rest and (options.command is not _eval or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.metrics = " ".join([options.metrics or "", *rest])
    return options


def _forget_output() -> None:
    """Keep the interpreter from trying, and failing, to write the rest as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="karat",
        description="How much gold is in what you retrieved?",
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"karat {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    demo = commands.add_parser("demo", help="evaluate two retrievers on the bundled example")
    demo.add_argument("--samples", metavar="FILE", help="write the samples of the first retriever to a JSONL file")
    demo.set_defaults(command=_demo)

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
    evaluate.add_argument("--format", choices=("table", "json", "csv"), default="table")
    _add_import(evaluate)
    evaluate.add_argument(
        "--skip-bad-rows", action="store_true", help="leave out rows that cannot be read, and count them"
    )
    evaluate.set_defaults(command=_eval)

    judges = commands.add_parser("judges", help="list every judge")
    judges.set_defaults(command=_judges)

    metrics = commands.add_parser("metrics", help="list every metric")
    _add_import(metrics)
    metrics.set_defaults(command=_metrics)
    return parser


def _add_import(command: ArgumentParser) -> None:
    command.add_argument(
        "--import", dest="imports", metavar="FILE", action="append", default=[],
        help="a Python file or module with metrics of your own",
    )  # fmt: skip


def _demo(options: Namespace) -> None:
    from karat.report import demo

    if options.samples is None:
        print(demo.show(_program()))
        return
    from pathlib import Path

    import msgspec

    lines = [msgspec.json.encode(row) for row in demo.samples("bm25")]
    try:
        Path(options.samples).write_bytes(b"\n".join([*lines, b""]))
    except OSError as error:
        raise BadArgument(f"cannot write {options.samples}: {error.strerror}") from error
    print(f"{options.samples}: {len(lines)} samples. Next: {_program()} eval {options.samples}")


def _eval(options: Namespace) -> None:
    from karat.evaluation import evaluate
    from karat.metrics import DEFAULT
    from karat.report import terminal
    from karat.tokens import words

    for name in options.imports:
        _import(name)
    if options.output and options.output.endswith((".json", ".jsonl", ".csv")):
        raise BadArgument("a run is saved as Parquet", got=options.output, hint="-o run.parquet; --format for the rest")
    run = evaluate(
        options.file,
        options.metrics or DEFAULT,
        gold=options.gold,
        judge=options.judge,
        at=options.at,
        tokens=_function(options.tokens) if options.tokens else words,
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
    else:
        parts = [terminal.evaluation(run), *([repr(slices)] if slices else [])]
        print("\n\n".join(parts))
        if options.output:
            print(f"\nSaved to {options.output}")


def _judges(options: Namespace) -> None:
    from karat.report import terminal

    print(terminal.judge_list())


def _metrics(options: Namespace) -> None:
    from karat.report import terminal

    for name in options.imports:
        _import(name)
    print(terminal.metric_list())


def _function(place: str) -> Any:
    """A function of the user's: `file.py:name` or `module:name`."""
    home, colon, name = place.rpartition(":")
    function = getattr(_import(home), name, None) if colon else None
    if not callable(function):
        raise BadArgument(f"no function {place}", hint="file.py:name, or module:name")
    return function


def _import(name: str) -> ModuleType:
    """Load a file or module of the user's, so that what it defines is known."""
    import importlib
    import importlib.util

    try:
        if not name.endswith(".py"):
            sys.path.insert(0, "")
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location("karat_user_metrics", name)
        if spec is None or spec.loader is None:
            raise ImportError(name)
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except KaratError:
        raise
    except (Exception, SystemExit) as error:
        raise BadArgument(f"cannot import {name}: {type(error).__name__}: {error}") from error
    return module


def _program() -> str:
    """How to call karat again: by its name, or by its path where it is not on the search path."""
    from shutil import which

    return "karat" if which("karat") or not sys.argv[0].endswith("karat") else sys.argv[0]


def _told(error: KaratError) -> str:
    from karat.tables import clean

    first, *rest = (clean(line) for line in str(error).splitlines())
    return "\n".join([f"karat: {first}", *(f"       {line}" for line in rest)])


if __name__ == "__main__":
    sys.exit(main())
