"""The files of `karat gate`: JUnit, Markdown, and those of a job of GitHub Actions; which of them may be replaced."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from karat._internal.output import Terminated, check_outputs, is_special, new_name, write_text
from karat._internal.writers import put
from karat.cli import on_github
from karat.errors import BadArgument, KaratError, first_line

_BEGINNINGS = ("### ✅ karat gate ", "### ❌ karat gate ", "### ⚠️ karat gate ")
_JUNIT = '<testsuite name="karat gate"'
_HEAD = 200
"""The number of bytes that tell a file of karat gate."""
_SUMMARY, _OUTPUT = "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"


class GateFiles:
    """The files that a gate writes, whether it passed, failed or could not decide.

    A file of an earlier gate, or an empty one, is replaced; any other only with --force. The step summary and the
    outputs of GitHub Actions are appended to.
    """

    def __init__(self, options: Namespace) -> None:
        self._read = [options.run, options.baseline, options.must_pass, options.gold]
        self._force = options.force
        self._replaced = {"--junit": options.junit, "--markdown": options.markdown}
        self._appended = {name: os.environ.get(name) or None for name in (_SUMMARY, _OUTPUT) if on_github()}
        summary = os.environ.get(_SUMMARY)
        if options.markdown and summary and os.path.realpath(options.markdown) == os.path.realpath(summary):
            del self._replaced["--markdown"]
            self._appended[_SUMMARY] = summary

    def check(self) -> None:
        """Refuse, before work starts, files that cannot be written, are read, or would be lost."""
        check_outputs({**self._replaced, **self._appended}, self._read)
        for option, path in self._replaced.items():
            self._check_replaceable(option, path)

    def _check_replaceable(self, option: str, path: str | None) -> None:
        if path is None or self._force or is_special(path) or is_of_gate(path):
            return
        if Path(path).exists() and Path(path).stat().st_size:
            problem = f"cannot write {path}: it exists, and karat gate did not write it"
            raise BadArgument(problem, hint=f"{option} {new_name(path)}, or --force")

    @contextmanager
    def failure(self) -> Iterator[None]:
        """Write that the gate could not decide if the block ends by an error or a signal, whatever it is."""
        try:
            yield
        except BaseException as error:
            self.write_failure(error)
            raise

    def write_failure(self, error: BaseException) -> None:
        """Write that the gate could not decide, and why; the error itself is more important than one of a file."""
        from karat.report import github
        from karat.report.gate import undecided_junit, undecided_markdown

        if not isinstance(error, KaratError):
            ended = {KeyboardInterrupt: "interrupted by Ctrl-C", Terminated: "terminated"}.get(type(error))
            error = KaratError(ended or f"{type(error).__name__}: {first_line(error)}")
        annotations = [github.undecided_annotation(error)] if on_github() else []
        self.write(undecided_junit(error), undecided_markdown(error), annotations, github.outputs(None))

    def write(self, junit: str, markdown: str, annotations: Sequence[str], outputs: str) -> KaratError | None:
        """Write each file, then annotations to standard error, so that --format json stays JSON; return a problem."""
        texts = {"--junit": junit, "--markdown": markdown, _SUMMARY: markdown, _OUTPUT: outputs}
        problem = None
        for option, path in {**self._replaced, **self._appended}.items():
            try:
                if path is not None and option in self._appended:
                    _append(path, texts[option], cut=option == _SUMMARY)
                elif path is not None:
                    self._replace(option, path, texts[option])
            except KaratError as error:
                problem = problem or error
            except BrokenPipeError:  # standard output is a closed pipe
                pass
        put("".join(f"{line}\n" for line in annotations), error=True, end="", commands=True)
        return problem

    def _replace(self, option: str, path: str, text: str) -> None:
        """Write a file. If that fails, delete the one of an earlier gate: it must not pass for this one."""
        try:
            check_outputs({option: path}, self._read)
            self._check_replaceable(option, path)
            write_text(path, text)
        except BadArgument:
            if is_of_gate(path):
                with suppress(OSError):
                    Path(os.path.realpath(path)).unlink()
            raise


def _append(path: str, text: str, *, cut: bool) -> None:
    from karat.report.github import step_summary

    file = Path(path)
    try:
        used = file.stat().st_size if file.exists() else 0
        with file.open("a", encoding="utf-8") as out:
            out.write(step_summary(text, used) if cut else text)
    except (OSError, ValueError) as error:
        raise BadArgument(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error


def is_of_gate(path: str) -> bool:
    """True for a file that `karat gate` wrote, as its beginning shows."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            head = file.read(_HEAD).decode(errors="replace")
    except (OSError, ValueError):
        return False
    return head.startswith(_BEGINNINGS) or (head.startswith("<?xml") and _JUNIT in head)


class _Files(ArgumentParser):
    """Finds the options of files among arguments that are not valid."""

    def error(self, message: str) -> NoReturn:
        """Raise, rather than print and exit."""
        raise BadArgument(message)


def refused_arguments(given: Sequence[str], error: KaratError) -> None:
    """Replace the files of an earlier gate if the arguments are refused: they must not pass for those of this one."""
    parser = _Files(add_help=False)
    parser.set_defaults(run=None, baseline=None, must_pass=None, gold=None, force=False)
    for option in ("--junit", "--markdown"):
        parser.add_argument(option, type=lambda path: path if is_of_gate(path) else None)
    with suppress(BadArgument):
        GateFiles(parser.parse_known_args(given)[0]).write_failure(error)
