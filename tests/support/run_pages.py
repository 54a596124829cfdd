"""The Run screen, by its tasks and without a server; and small runs of several kinds."""

from __future__ import annotations

import re
from html import unescape
from types import SimpleNamespace
from urllib.parse import parse_qsl

import numpy as np

import karat
from karat.web.messages import Call
from karat.web.tasks import do, load_tasks
from karat.web.view.folder import find_files

LINK = re.compile(r'<a (?=[^>]*data-adds="([^"]*)")[^>]*>')


def _text(html):
    return unescape(re.sub(r"<[^>]*>", " ", html))


class RunPages:
    """The Run screen of the runs of a folder."""

    def __init__(self, folder):
        self.folder = folder
        load_tasks(view=True)

    def id(self, name):
        return next(file.id for file in find_files(self.folder).files if file.name == name)

    def ask(self, task, run, **arguments):
        run_id = arguments.pop("run_id", None) or self.id(run)
        call = Call(task, arguments={"run_id": run_id, **arguments}, store=str(self.folder), accept="text/html")
        reply, body = do(call, b"", lambda *_: None)
        return SimpleNamespace(status=reply.status, html=body.decode(), text=_text(body.decode()))

    def page(self, run, **state):
        answer = self.ask("view_run", run, **state)
        assert answer.status == 200, answer.text
        return answer.html

    def part(self, run, name, **state):
        answer = self.ask("view_run_part", run, part=name, **state)
        assert answer.status == 200, answer.text
        return answer.html

    def queries(self, run, **state):
        """The table: its ids, the number of matches that it tells, and its HTML."""
        html = self.part(run, "queries", **state)
        matches = re.search(r'<p id="matches">(.*?)</p>', html)[1]
        ids = [unescape(one) for one in re.findall(r'<summary><bdi class="id">(.*?)</bdi>', html)]
        count = int(matches.split()[0].replace(",", "")) if matches[0].isdigit() else 0
        return SimpleNamespace(ids=ids, count=count, matches=matches, html=html)


def added(link):
    """The filter of a link."""
    return dict(parse_qsl(unescape(link), keep_blank_values=True))


def many(count, seed=0):
    """A run with scores of many kinds, two fields, ids in no order, and no texts."""
    random = np.random.default_rng(seed)
    rows = []
    for i in random.permutation(count).tolist():
        gold = [f"g{j}" for j in range(random.integers(1, 8))]
        retrieved = random.permutation([*gold, *(f"x{j}" for j in range(12))])[:10].tolist()
        fields = {"topic": f"t{i % 4}", "part": [None, "a"][i % 2]}
        rows.append({"id": f"q{i}", "retrieved": retrieved, "gold": gold, **fields})
    return karat.evaluate(rows, "recall@5,10 precision@5 ndcg@10 rr", judge="ids")


def repeated():
    """A run of eight queries with three repeats each."""
    rows = [
        {
            "id": f"q{i}",
            "repeat": r,
            "retrieved": ["a", "b", "c"] if (i * r) % 3 else ["c", "d", "a"],
            "gold": ["a", "b"],
            "topic": "xy"[i % 2],
        }
        for i in range(8)
        for r in (1, 2, 3)
    ]
    return karat.evaluate(rows, "recall@1,5 rr", judge="ids")
