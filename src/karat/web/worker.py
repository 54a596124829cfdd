"""A worker process, run separately by `pool`: calls on standard input, replies on what was standard output."""

from __future__ import annotations

import os
import signal
import sys

from karat.web.messages import Reply, read_call, write_reply
from karat.web.tasks import do, load_tasks


def main() -> None:
    """Answer calls until the server closes standard input."""
    # Ctrl-C in a terminal reaches the workers, too; the server decides when they end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # anything that prints must not write among the replies
    calls = sys.stdin.buffer
    load_tasks()
    write_reply(replies, Reply(progress=(0, 0)), b"")
    while (received := read_call(calls)) is not None:

        def progress(done: int, of: int) -> None:
            write_reply(replies, Reply(progress=(done, of)), b"")

        reply, body = do(*received, progress)
        write_reply(replies, reply, body)


if __name__ == "__main__":
    main()
