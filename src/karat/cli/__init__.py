"""Arguments → text: the command line. A command is a function in this folder, decorated by `@command`."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Action, ArgumentError, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from karat import __version__
from karat._internal.display import (
    bold,
    color,
    commands,
    definitions,
    has_color,
    paragraph,
    sanitize,
    style,
    wants_color,
)
from karat._internal.output import Terminated, clean_exit
from karat._internal.writers import put
from karat.errors import BadArgument, KaratError, NoColumn, NotJudged, nearest, unknown

if TYPE_CHECKING:
    from karat._internal.result import Result

Example = tuple[str, str]
"""A command as a user types it, and what it does."""
_WIDTH = 80
"""The width of help in a pipe."""
_SAMPLE = '{"query": …, "retrieved": […], "gold": […]}'
_EXAMPLES = (
    ("karat demo", "see it work, no data needed"),
    ("karat eval samples.jsonl -o run.parquet", "evaluate your data, save the run"),
    ("karat compare main.parquet run.parquet", "which is better?"),
    ("karat diagnose run.parquet", "why were gold items missed?"),
    ("karat eval --help", "every option of a command"),
)


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
    examples: tuple[Example, ...]
    epilog: str
    run: Callable[[Namespace], int | None]
    refused: Callable[[Sequence[str], KaratError], None] | None = None
    """Called if the arguments are refused."""

    def parser(self) -> ArgumentParser:
        """The parser of its arguments."""
        parser = _Parser(f"karat {self.name}", f"{self.about[0].upper()}{self.about[1:]}.", self.examples, self.epilog)
        groups: dict[str | None, Any] = {None: parser}
        for names, settings, group in (*self.arguments, _COLOR):
            if group not in groups:
                groups[group] = parser.add_argument_group(group)
            groups[group].add_argument(*names, **settings)
        named = [_usage(**settings) for names, settings, _ in self.arguments if not names[0].startswith("-")]
        parser.usage = " ".join([f"karat {self.name}", *named, "[OPTIONS]"])
        return parser


def _usage(*, metavar: str, nargs: str | None = None, **_: Any) -> str:
    """A positional argument as the usage shows it."""
    return {"?": f"[{metavar}]", "*": f"[{metavar} …]", "+": f"{metavar} [{metavar} …]"}.get(nargs or "", metavar)


class _Format(RawDescriptionHelpFormatter):
    """Help with bold headings, and the default of every option that has a value."""

    def start_section(self, heading: str | None) -> None:
        super().start_section(heading and bold(heading))

    def _get_help_string(self, action: Action) -> str:
        text = action.help or ""
        if not action.option_strings or action.nargs == 0 or action.required or "default" in text:
            return text
        return f"{text} (default: {'none' if action.default in (None, (), []) else '%(default)s'})"


def _folded(line: str) -> str:
    """A line of help, folded below itself."""
    margin = " " * (len(line) - len(line.lstrip()))
    return paragraph(line.lstrip(), f"{margin}  ", margin, default=_WIDTH)


class _Parser(ArgumentParser):
    """Mistakes are raised as errors of karat: a sentence, and a command to try."""

    color = False

    def __init__(self, program: str, about: str, examples: Sequence[Example], more: str = "") -> None:
        more = "\n".join(map(_folded, more.rstrip().splitlines()))
        shown = f"{bold('examples')}:\n{commands(examples)}"
        super().__init__(
            program, description=paragraph(about, "", "", default=_WIDTH), formatter_class=_Format,
            epilog="\n\n".join(filter(None, (more, shown))),
        )  # fmt: skip
        self._example = examples[0][0]

    def _print_message(self, message: str, file: Any = None) -> None:
        put(message, end="", error=file is sys.stderr)

    def error(self, message: str) -> NoReturn:
        """Raise the error that argparse would print below its usage."""
        missing, unrecognized = "the following arguments are required: ", "unrecognized arguments: "
        if message.startswith(missing):
            optional = {str(action.metavar) for action in self._actions if action.nargs in {"*", "?"}}
            names = [name for name in message.removeprefix(missing).split(", ") if name not in optional]
            raise BadArgument(f"{self.prog} needs {' and '.join(names)}", hint=self._example)
        if message.startswith(unrecognized):
            given = message.removeprefix(unrecognized)
            option = given.partition(" ")[0].partition("=")[0]
            known = [name for action in self._actions for name in action.option_strings]
            if option.startswith("-"):
                raise unknown(f"option of {self.prog}", option, known, f"{self.prog} --help")
            hint = f"--metrics {given}" if "--metrics" in known else self._example
            raise BadArgument(f"{self.prog}: too many arguments", got=given, hint=hint)
        raise BadArgument(f"{self.prog}: {message.removeprefix('argument ')}", hint=f"{self.prog} --help")

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            close = nearest(str(value), known)
            meant = f" Did you mean {close}?" if close else ""
            raise ArgumentError(action, f'expected one of {", ".join(known)}; got "{value}".{meant}')


_COMMANDS: dict[str, Command] = {}


def command(
    name: str, about: str, *arguments: Argument, examples: Sequence[Example], epilog: str = "",
    aliases: Sequence[str] = (), refused: Callable[[Sequence[str], KaratError], None] | None = None,
) -> Callable[[Callable[[Namespace], int | None]], Callable[[Namespace], int | None]]:  # fmt: skip
    """Register a function as a command; its examples are shown by `--help` and run by the tests."""

    def register(run: Callable[[Namespace], int | None]) -> Callable[[Namespace], int | None]:
        for known in (name, *aliases):
            _COMMANDS[known] = Command(name, about, arguments, tuple(examples), epilog, run, refused)
        return run

    return register


def argument(*names: str, group: str | None = None, **settings: Any) -> Argument:
    """Declare an argument; those of a group are listed under its title."""
    return Argument(names, settings, group)


def format_argument(*others: str, about: str = "how the result is printed") -> Argument:
    """Declare `--format`: a table, or one of these."""
    return argument("--format", choices=("table", *others), default="table", help=about)


RUN = argument("run", metavar="RUN", help="a run file, written by karat eval -o")
_COLOR = argument(
    "--color", choices=("auto", "always", "never"), default="auto",
    help="auto: on a terminal, unless NO_COLOR is set (default: %(default)s)",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; 2 if the input is not usable, 3 if too few queries were judged."""
    with clean_exit() as signals:
        try:
            return _main(arguments)
        except Exception:
            if not signals:
                raise
    put("karat: interrupted", error=True)  # which became another error, as in an import of native code
    return 128 + signals[0]


def _main(arguments: Sequence[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character that the terminal cannot encode is escaped
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    choice, code = _color_choice(given), None
    try:
        with color(on=wants_color(sys.stdout, choice)):
            chosen, options = _parse(given)
            code = chosen.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KaratError as error:
        with color(on=wants_color(sys.stderr, choice)):
            put(_error_text(_with_map(error, given)), error=True)
        return 3 if isinstance(error, NotJudged) else 2
    except KeyboardInterrupt:
        put("karat: interrupted", error=True)
        return 130
    except Terminated as end:  # temporary files are deleted by now
        put("karat: terminated", error=True)
        return 128 + int(end.args[0])
    except BrokenPipeError:  # such as `karat metrics | head`
        _discard_output()
    except OSError as error:  # most likely a full disk
        put(f"karat: cannot write the output: {error.strerror}", error=True)
        _discard_output()
        return 2
    return code or 0


def all_commands() -> dict[str, Command]:
    """Every command by its names, from the modules of this folder."""
    for path in sorted(Path(__file__).parent.iterdir()):
        if not path.name.startswith("_") and (path.is_dir() or path.suffix == ".py"):
            import_module(f"karat.cli.{path.stem}")
    return _COMMANDS


def _parse(given: list[str]) -> tuple[Command, Namespace]:
    """The command and its options; metrics may be anywhere among the arguments, quoted or not."""
    known = all_commands()
    if not given or given[0] in {"-h", "--help", "--version"}:
        _help(given)
    if given[0].startswith("-"):
        raise BadArgument("the command comes first, then its options", got=given[0], hint="karat --help")
    if given[0] not in known:
        raise unknown("command", given[0], known, "karat --help")
    chosen = known[given[0]]
    try:
        return chosen, chosen.parser().parse_intermixed_args(given[1:])
    except KaratError as error:
        if chosen.refused is not None:
            chosen.refused(given[1:], error)
        raise


def _color_choice(given: list[str]) -> str:
    """The value of `--color`, which concerns the messages of mistakes in the other options, too."""
    for option, value in zip(given, [*given, ""][1:], strict=True):
        if option == "--color" or option.startswith("--color="):
            return option.partition("=")[2] or value
    return "auto"


def _help(given: list[str]) -> NoReturn:
    """Print the commands, or the version, and exit."""
    if "--version" in given:
        from karat._kernel import description

        put(f"karat {__version__} · {description()}")
        raise SystemExit(0)
    names = [(name, one.about) for name, one in sorted(_COMMANDS.items()) if name == one.name]
    about = f"Evaluate retrieval for search and RAG. One sample per line: {_SAMPLE}"
    parts = [
        "usage: karat COMMAND …",
        paragraph(about, "", "", default=_WIDTH),
        f"{bold('commands')}:\n{definitions(names, default=_WIDTH)}",
        f"{bold('examples')}:\n{commands(_EXAMPLES)}",
    ]
    put("\n\n".join(parts), error=not given)
    raise SystemExit(0 if given else 2)


def say(message: str, *, error: bool = False) -> None:
    """Print a message to standard output or standard error, folded to the width of the terminal."""
    put(paragraph(sanitize(message), "", "", stream=sys.stderr if error else None), error=error)


def emit(result: Result, form: str, **options: Any) -> None:
    """Print a result in one of the formats of `--format`; a closed pipe does not change the exit code."""
    from karat._internal.writers import to_json
    from karat.report import render

    with color(on=has_color() and form == "table"):
        text = render(result, {"table": "terminal", "json": "data", "html": "page"}.get(form, form), **options)
    if form == "json":
        text = to_json(text)
    try:
        put(text, end="" if text.endswith("\n") else "\n")
    except BrokenPipeError:
        _discard_output()


def on_github() -> bool:
    """True in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def program() -> str:
    """The command that starts karat: its name, or its path if it is not on the search path."""
    from shutil import which

    return "karat" if which("karat") or not sys.argv[0].endswith("karat") else sys.argv[0]


def _with_map(error: KaratError, given: list[str]) -> KaratError:
    """The error; if columns are missing that others may have, with the whole command that reads these."""
    command = _COMMANDS.get(given[0]) if given else None
    if not isinstance(error, NoColumn) or not error.fields or command is None:
        return error
    if not any("--map" in one.names for one in command.arguments):
        fields = ", ".join(f'"{theirs}" to "{name}"' for name, theirs in error.fields.items())
        error.hint = f"rename {fields}"
        return error
    rest, maps = [], []
    for place, text in enumerate(given):
        if text.startswith(("--map=", "--fields=")):
            maps.append(text.partition("=")[2])
        elif place and given[place - 1] in ("--map", "--fields"):
            maps.append(text)
        elif text not in ("--map", "--fields"):
            rest.append(text)
    pairs = dict(pair.split("=", 1) for text in maps for pair in text.split(",") if "=" in pair)
    wanted = ",".join(f"{name}={theirs}" for name, theirs in {**pairs, **error.fields}.items())
    error.hint = shlex.join([program(), *rest, "--map", wanted])
    return error


def _error_text(error: KaratError) -> str:
    """The problem, what was given and what to try, folded to the width of the terminal."""
    indent, first = " " * 7, f"{style('karat:', 'bad')} "
    lines = []
    for line in error.problem.splitlines():
        lines.append(paragraph(sanitize(line), indent, first, stream=sys.stderr))
        first = indent
    for name, value in (("got", error.got), ("try", error.hint)):
        if value is not None:
            lines.append(paragraph(sanitize(value), f"{indent}     ", f"{indent}{name}  ", stream=sys.stderr))
    return "\n".join(lines)


def _discard_output() -> None:
    """Keep the interpreter from writing the rest of the output, and failing again, when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
