"""`karat gate`: may this run be merged? 0 yes, 1 no, 2 could not decide."""

from __future__ import annotations

from argparse import Namespace, RawDescriptionHelpFormatter
from typing import Any

_EPILOG = """\
rules:
  "recall@5 >= 0.80"         the mean; also >, <=, <
  "recall@5 lower >= 0.75"   the lower end of its 95 % interval
  "recall@5 no-drop"         no drop against the baseline that is beyond chance
  "recall@5 no-drop 0.01"    nor one that is larger than 0.01

exit code: 0 passed, 1 failed, 2 could not decide (bad input, a baseline with other gold)
"""


def add(commands: Any) -> None:
    """Declare the command."""
    gate = commands.add_parser(
        "gate",
        help="judge a run by rules and against a baseline, for CI",
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    gate.add_argument("run", metavar="RUN", help="a run file, from karat eval -o")
    gate.add_argument("rules", metavar="RULE", nargs="+", help='such as "recall@5 >= 0.80" or "ndcg@10 no-drop"')
    gate.add_argument("--baseline", metavar="RUN", help="the run to set against, with the same queries and gold")
    gate.add_argument("--by", metavar="FIELD", help="judge drops for each value of a field, too")
    gate.add_argument("--must-pass", metavar="FILE", default=(), help="ids of queries that may not fall, one per line")
    gate.add_argument("--tolerance", metavar="X", help="a larger drop fails even if it could be chance (default: none)")
    gate.add_argument("--slice-tolerance", metavar="X", help="the same for slices (default: none)")
    gate.add_argument(
        "--alpha", type=float, metavar="X", default=0.05,
        help="how often the gate may fail if nothing has changed (default: %(default)s)",
    )  # fmt: skip
    gate.add_argument(
        "--min-judged", metavar="SHARE", type=float, default=0.0,
        help="undecided unless this share of the queries was judged, such as 0.95 (default: %(default)s)",
    )  # fmt: skip
    gate.add_argument(
        "--min-defined", type=int, metavar="N", default=1,
        help="a mean over fewer queries cannot be decided (default: %(default)s)",
    )  # fmt: skip
    gate.add_argument("--junit", metavar="FILE", help="write the checks as test results")
    gate.add_argument(
        "--markdown", metavar="FILE", help='write a summary for a pull request, or "$GITHUB_STEP_SUMMARY"'
    )
    gate.add_argument("--format", choices=("table", "json"), default="table")
    gate.set_defaults(command=_gate, takes_metrics=True)


def _gate(options: Namespace) -> int:
    from karat.errors import KaratError
    from karat.gatekeeping import gate
    from karat.outfile import write_text
    from karat.report.gate import undecided_junit, undecided_markdown

    try:
        judged = gate(
            options.run,
            *options.rules,
            baseline=options.baseline,
            by=options.by,
            must_pass=options.must_pass,
            tolerance=options.tolerance,
            slice_tolerance=options.slice_tolerance,
            alpha=options.alpha,
            min_defined=options.min_defined,
            min_judged=options.min_judged,
        )
    except KaratError as error:  # no summary of an earlier run may stay and be taken for this one
        if options.junit:
            write_text(options.junit, undecided_junit(error))
        if options.markdown:
            write_text(options.markdown, undecided_markdown(error))
        raise
    if options.junit:
        write_text(options.junit, judged.to_junit())
    if options.markdown:
        write_text(options.markdown, judged.to_markdown())
    if options.format == "json":
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(judged.to_dict()), indent=2).decode())
    else:
        print(f"{judged} · exit {judged.exit_code}")
    return judged.exit_code
