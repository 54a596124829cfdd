"""Arguments → text: the command line. A command is a function in this folder, decorated by `@command`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from karat import __version__
from karat.errors import KaratError, NotJudged

if TYPE_CHECKING:
    from karat._internal.result import Result

_EPILOG = """\
examples:
  karat demo                                          see it work, no data needed
  karat eval samples.jsonl                            {"query": …, "retrieved": […], "gold": […]} per line
  karat eval samples.jsonl "recall@1,5 ndcg@10 rr"    choose the metrics
  karat eval run.trec --gold qrels.txt -o run.parquet TREC files; save the run
  karat eval samples.jsonl --judge "fuzzy(0.8)"       match similar texts; karat judges lists the judges
  karat compare main.parquet branch.parquet           which run is better, and which queries moved
  karat diagnose branch.parquet                       why gold items were missed
"""


class Argument(NamedTuple):
    """An argument of a command, as `ArgumentParser.add_argument` takes it."""

    names: tuple[str, ...]
    settings: dict[str, Any]
    group: str | None = None


class Command(NamedTuple):
    """A command: its arguments, and the function that runs it and returns the exit code."""

    name: str
    about: str
    arguments: tuple[Argument, ...]
    epilog: str
    run: Callable[[Namespace], int | None]

    def parser(self) -> ArgumentParser:
        """The parser of its arguments."""
        parser = _parser(f"karat {self.name}", self.about, self.epilog)
        groups: dict[str | None, Any] = {None: parser}
        for names, settings, group in self.arguments:
            if group not in groups:
                groups[group] = parser.add_argument_group(group)
            groups[group].add_argument(*names, **settings)
        return parser


def _parser(program: str, about: str, epilog: str) -> ArgumentParser:
    return ArgumentParser(program, description=about, epilog=epilog, formatter_class=RawDescriptionHelpFormatter)


_COMMANDS: dict[str, Command] = {}


def command(
    name: str, about: str, *arguments: Argument, epilog: str = "", aliases: Sequence[str] = ()
) -> Callable[[Callable[[Namespace], int | None]], Callable[[Namespace], int | None]]:
    """Register a function as a command."""

    def register(run: Callable[[Namespace], int | None]) -> Callable[[Namespace], int | None]:
        for known in (name, *aliases):
            _COMMANDS[known] = Command(name, about, arguments, epilog, run)
        return run

    return register


def argument(*names: str, group: str | None = None, **settings: Any) -> Argument:
    """Declare an argument; those of a group are listed under its title."""
    return Argument(names, settings, group)


def format_argument(*others: str, **settings: Any) -> Argument:
    """Declare `--format`: a table, or one of these."""
    return argument("--format", choices=("table", *others), default="table", **settings)


RUN = argument("run", metavar="RUN", help="a run file, written by karat eval -o")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; 2 if the input is not usable, 3 if a model judged nothing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character that the terminal cannot encode is escaped
            stream.reconfigure(errors="backslashreplace")
    chosen, options = _parse(list(sys.argv[1:] if arguments is None else arguments))
    code = None
    try:
        code = chosen.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KaratError as error:
        print(_error_text(error), file=sys.stderr)
        return 3 if isinstance(error, NotJudged) else 2
    except KeyboardInterrupt:
        print("karat: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # such as `karat metrics | head`
        _discard_output()
    except OSError as error:  # most likely a full disk
        print(f"karat: cannot write the output: {error.strerror}", file=sys.stderr)
        _discard_output()
        return 2
    return code or 0


def _parse(given: list[str]) -> tuple[Command, Namespace]:
    """The command and its options; metrics may be anywhere among the arguments, quoted or not."""
    for path in sorted(Path(__file__).parent.iterdir()):
        if not path.name.startswith("_") and (path.is_dir() or path.suffix == ".py"):
            import_module(f"karat.cli.{path.stem}")
    if not given or given[0] not in _COMMANDS:
        _help(given)
    chosen = _COMMANDS[given[0]]
    return chosen, chosen.parser().parse_intermixed_args(given[1:])


def _help(given: list[str]) -> NoReturn:
    """Print the help, the version, or an error, and exit."""
    parser = _parser("karat", "Evaluate retrieval for search and RAG.", _EPILOG)
    parser.add_argument("--version", action="version", version=f"karat {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, one in sorted(_COMMANDS.items()):
        if name == one.name:
            commands.add_parser(name, help=one.about)
    if not given:
        parser.print_help(sys.stderr)
        parser.exit(2)
    parser.parse_args(given)
    parser.error("the command comes first, then its options")


def emit(result: Result, form: str, **options: Any) -> None:
    """Print a result in one of the formats of `--format`."""
    from karat._internal.output import to_json
    from karat.report import render

    text = render(result, {"table": "terminal", "json": "data", "html": "page"}.get(form, form), **options)
    if form == "json":
        text = to_json(text)
    print(text, end="" if text.endswith("\n") else "\n")


def program() -> str:
    """The command that starts karat: its name, or its path if it is not on the search path."""
    from shutil import which

    return "karat" if which("karat") or not sys.argv[0].endswith("karat") else sys.argv[0]


def _error_text(error: KaratError) -> str:
    from karat._internal.display import sanitize

    first, *rest = (sanitize(line) for line in str(error).splitlines())
    return "\n".join([f"karat: {first}", *(f"       {line}" for line in rest)])


def _discard_output() -> None:
    """Keep the interpreter from writing the rest of the output, and failing again, when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
