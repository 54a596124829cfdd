"""A real `karat label` in a process of its own, on a pool of two retrievers over the bundled help centre."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from karat.gold.pool import pool
from support import example
from support.served import started
from support.viewed import Viewer

RETRIEVERS = ("bm25", "first-words")


def samples(count=4, depth=4, retriever="bm25"):
    """Queries of the help centre with what a retriever returns, without gold."""
    rows = example.help_centre(retriever)[:count]
    return [
        {"id": row["id"], "query": row["query"], "retrieved": [{**one} for one in row["retrieved"][:depth]]}
        for row in rows
    ]


def write_pool(path, count=4, depth=4, retrievers=RETRIEVERS):
    """The pool of two retrievers; returns it."""
    made = pool([samples(count, depth, name) for name in retrievers], names=list(retrievers), depth=depth)
    made.save(path)
    return made


class Labelling(Viewer):
    """A labelling server that runs; `post` answers as the page does."""

    out = Path()

    @property
    def labels(self):
        """The lines of the labels file, without its headers."""
        path = self.out.with_name(f"{self.out.stem}.labels.jsonl")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return [line for line in lines if "karat_labels" not in line]

    def post(self, path, body, **more):
        more = {"Origin": self.url, **more}
        return self.ask(path, body, **more)

    def get(self, path):
        return self.ask(path).json

    def sheet(self, number, by="ada"):
        return self.get(f"/label/sheet/{number}?by={by}")

    def grade(self, query, item, grade, by="ada", key=None, **more):
        """The answer to a grade."""
        body = {"id": key or uuid4().hex, "by": by, "query": query, "item": item, "answer": "grade", "grade": grade}
        return self.post("/label/answer", body | more)


@contextmanager
def labelled(source, out, *options, port=0, cwd=None, env=None):
    """A labelling server on a free port, stopped at the end, which writes the gold."""
    arguments = [] if source is None else [source]
    command = ("label", *arguments, "-o", out, "--no-open", "--port", port, *options)
    with started(Labelling, *command, cwd=cwd, env=env) as server:
        server.out = Path(out)
        yield server
