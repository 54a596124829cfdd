"""Options of commands that may ask a language model, and what is said of it afterwards."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from karat.judges import Judge

_INTERRUPTED = 130


def add_models(parser: ArgumentParser) -> None:
    """Declare the options."""
    models = parser.add_argument_group('for judges that ask a language model, such as --judge "claims(gpt-4o-mini)"')
    models.add_argument("--model", metavar="NAME", help="the model; the key comes from OPENAI_API_KEY")
    models.add_argument("--base-url", metavar="URL", help="any endpoint that speaks OpenAI's protocol")
    models.add_argument("--repeats", metavar="N", type=int, help="judge N times and take the majority")
    models.add_argument("--concurrency", metavar="N", type=int, help="calls at once, at most (default: 16)")
    models.add_argument("--max-cost", metavar="DOLLARS", type=float, help="stop asking before more is spent")
    models.add_argument("--max-tokens", metavar="N", type=int, help="the same in tokens")
    models.add_argument("--max-calls", metavar="N", type=int, help="the same in calls")
    models.add_argument("--cache", metavar="FILE", help='where answers are kept; "none" for nowhere')
    models.add_argument("--yes", action="store_true", help="ask at once, without showing the estimate first")


def judge_of(options: Namespace) -> Judge:
    """The judge that was asked for, with the options of its model."""
    from karat.judges.asking import asking_judge

    names = ("base_url", "repeats", "concurrency", "max_cost", "max_tokens", "max_calls")
    settings: dict[str, Any] = {name: getattr(options, name) for name in names}
    settings["cache"] = False if options.cache == "none" else options.cache
    return asking_judge(options.judge, model=options.model, confirm=not options.yes, **settings)


def exit_code(judge: Judge) -> int:
    """Say on standard error what was asked; the code is that of an interruption if there was one."""
    asking = getattr(judge, "asking", None)
    if asking is None or asking.spent is None:
        return 0
    print(asking.told(), file=sys.stderr)
    return _INTERRUPTED if asking.interrupted else 0
