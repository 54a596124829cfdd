"""`karat push`: the scores of each query, back to the spans of the trace store it came from."""

from __future__ import annotations

from argparse import Namespace

from karat._internal.display import plural
from karat._internal.writers import escape_json, put
from karat.cli import RUN, argument, command, say
from karat.errors import Unavailable

_TARGETS = ("phoenix", "langsmith", "langfuse", "mlflow")
_EPILOG = """\
to annotate spans:
  karat push phoenix traced.parquet --endpoint http://localhost:6006

where and who, if --endpoint is not given:
  phoenix    PHOENIX_COLLECTOR_ENDPOINT, PHOENIX_API_KEY
  langsmith  LANGSMITH_ENDPOINT, LANGSMITH_API_KEY
  langfuse   LANGFUSE_BASE_URL, LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY
  mlflow     MLFLOW_TRACKING_URI

exit code: 0 if every score was sent, 1 if some were not, 2 if none could be.
Failed queries and undefined scores are not sent. Pushing again replaces.
"""


@command(
    "push",
    "write the scores of each query back to the spans it came from",
    argument("to", metavar="STORE", choices=_TARGETS, help=f"a trace store: {', '.join(_TARGETS)}"),
    RUN,
    argument("--metrics", nargs="+", default=(), help="metrics that the run has (default: all of them)"),
    argument("--endpoint", metavar="URL", help="the address of the server (default: see below)"),
    argument("--project", metavar="NAME", help="langsmith: the project of the runs"),
    argument("--name-prefix", metavar="TEXT", default="", help="a text that each name begins with"),
    argument("--documents", action="store_true", help="phoenix: also the grade of each retrieved document"),
    argument("--dry-run", action="store_true", help="print the scores as lines of JSON, and send nothing"),
    examples=[
        ("karat push phoenix traced.parquet --dry-run", "see what would be sent"),
        ("karat push mlflow traced.parquet --metrics recall@5 --dry-run", "only this metric"),
    ],
    epilog=_EPILOG,
)
def _push(options: Namespace) -> int:
    from karat.bridges.push import push, scores_to_push
    from karat.run.file import load

    chosen = {
        "metrics": " ".join(options.metrics), "name_prefix": options.name_prefix, "documents": options.documents
    }  # fmt: skip
    run = load(options.run)
    if options.dry_run:
        outgoing = scores_to_push(run, options.to, **chosen)
        _print_lines([score.to_dict() for score in outgoing.scores])
        say(f"{plural(len(outgoing.scores), 'score', 'scores')} to send{_skipped(outgoing.skipped)}", error=True)
        return 0
    done = push(run, options.to, endpoint=options.endpoint, project=options.project, **chosen)
    say(f"{plural(done.sent, 'score', 'scores')} sent to {options.to}{_skipped(done.skipped)}")
    for reason, count in list(done.errors.items())[:_SHOWN]:
        say(f"{plural(count, 'score', 'scores')} not sent: {reason}", error=True)
    if done.failed and not done.sent:
        raise Unavailable(f"no score was sent to {options.to}")
    return 1 if done.failed else 0


_SKIPPED = {
    "no span": ("query without a span", "queries without a span"),
    "failed": ("failed query", "failed queries"),
    "undefined": ("undefined score", "undefined scores"),
    "never reached": ("measure that was never reached", "measures that were never reached"),
    "several spans": ("query whose documents are not of one span", "queries whose documents are not of one span"),
}
_SHOWN = 10
"""Reasons of failures that are printed."""


def _skipped(skipped: dict[str, int]) -> str:
    """The counts of what is not sent, by reason, as the end of a sentence."""
    counts = [plural(count, *_SKIPPED[reason]) for reason, count in skipped.items()]
    return f"; skipped: {', '.join(counts)}" if counts else ""


def _print_lines(rows: list[dict[str, object]]) -> None:
    """Print each row as a line of JSON."""
    import msgspec

    for row in rows:
        put(escape_json(msgspec.json.encode(row).decode()))
