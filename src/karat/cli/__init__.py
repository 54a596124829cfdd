"""The command line: reads arguments, calls the functions of the library, prints. No logic of its own."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence

from karat import __version__
from karat.errors import KaratError

_EPILOG = """\
examples:
  karat demo                                          see it work, no data needed
  karat eval samples.jsonl                            {"query": …, "retrieved": […], "gold": […]} per line
  karat eval samples.jsonl "recall@1,5 ndcg@10 rr"    the metrics you want
  karat eval run.trec --gold qrels.txt -o run.parquet TREC files, and keep the result
  karat eval samples.jsonl --judge "fuzzy(0.8)"       texts that need not be equal; karat judges lists more
  karat compare main.parquet branch.parquet           is it better, and which queries moved?
  karat diagnose branch.parquet                       why is this gold missing?
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is its own, mostly 0, or 2 if the input was not usable."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a terminal cannot show is written out, not a reason to fail
            stream.reconfigure(errors="backslashreplace")
    options, code = _options(arguments), 0
    try:
        code = options.command(options) or 0
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
    return int(code)


def _options(arguments: Sequence[str] | None) -> Namespace:
    """Read the arguments; metrics may stand anywhere among them, quoted or not."""
    parser = _parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        parser.print_help(sys.stderr)
        raise SystemExit(2)
    options, rest = parser.parse_known_args(given)
    if rest and (not getattr(options, "takes_metrics", False) or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest and hasattr(options, "rules"):
        options.rules += rest
    elif rest:
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

    from karat.cli import analyze, cache, demo, evaluate, starter
    from karat.cli import catalog as lists

    for add in (
        demo.add, evaluate.add, evaluate.add_show, evaluate.add_merge, analyze.add, analyze.add_gate,
        analyze.add_diagnose, analyze.add_calibrate, analyze.add_lint, analyze.add_report, starter.add, lists.add,
        lists.add_conventions, cache.add,
    ):  # fmt: skip
        add(commands)
    return parser


def _told(error: KaratError) -> str:
    from karat._internal.display import sanitize

    first, *rest = (sanitize(line) for line in str(error).splitlines())
    return "\n".join([f"karat: {first}", *(f"       {line}" for line in rest)])


def program() -> str:
    """How to call karat again: by its name, or by its path where it is not on the search path."""
    from shutil import which

    return "karat" if which("karat") or not sys.argv[0].endswith("karat") else sys.argv[0]
