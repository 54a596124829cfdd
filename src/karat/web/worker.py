"""A worker process, run separately by `worker_pool`: calls on standard input, replies on what was standard output."""

from __future__ import annotations

import gc
import os
import signal
import sys
from itertools import count

from karat.web.messages import Reply, read_call, write_reply
from karat.web.tasks import JOB, do, load_tasks

_LARGE = 1_000_000
"""Bytes of a body after which garbage is collected."""
_CALLS = 100
"""Calls after which it is collected in any case."""


def main() -> None:
    """Answer calls until the server closes standard input."""
    # Ctrl-C in a terminal reaches the workers, too; the server decides when they end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # anything that prints must not write among the replies
    calls = sys.stdin.buffer
    load_tasks(view=sys.argv[1:] == ["view"])
    gc.collect()
    gc.freeze()
    write_reply(replies, Reply(progress=(0, 0)), b"")
    for number in count(1):
        received = read_call(calls)
        if received is None:
            return

        def progress(done: int, of: int) -> None:
            write_reply(replies, Reply(progress=(done, of)), b"")

        call, size = received[0], len(received[1])
        # Looking for garbage among many rows takes a third of the time of an evaluation; it can wait for the answer.
        gc.enable() if call.task.endswith(JOB) else gc.disable()
        write_reply(replies, *do(*received, progress))
        del received
        if size > _LARGE or number % _CALLS == 0:
            gc.collect()


if __name__ == "__main__":
    main()
