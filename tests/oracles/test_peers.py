"""Each named convention against the library of that name, query by query."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

import karat
from oracles import written_out
from oracles.cases import (
    KS,
    SUITES,
    Case,
    bearable_for_pytrec_eval,
    without_copies,
    without_gold_of_only_negative_grades,
    without_negative_grades,
)

ROOT = Path(__file__).parents[2]
PEERS = Path(__file__).with_name("peers")
AT_LEAST = 300
"""So many numbers in each column, or it is no comparison."""
NOWHERE = "http://127.0.0.1:9"
QUIET = {
    **dict.fromkeys(["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"], NOWHERE),  # no telemetry, no downloads
    **dict.fromkeys(["NO_PROXY", "no_proxy"], ""),
    "RAGAS_DO_NOT_TRACK": "true",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
}


class Peer(NamedTuple):
    """A library, what it is asked for, and what it cannot be asked."""

    metrics: str
    """Under the names of karat; `recall@` stands for recall at every k."""
    home: str | None = None
    """Its environment in .oracles, where it is not that of the tests."""
    suites: tuple[str, ...] = ("ranked",)
    changes: tuple[Callable[[Case], Case | None], ...] = ()
    """What is done to the queries before either side sees them; None leaves one out."""
    open: Callable[[Case, str], bool] = lambda case, metric: False
    """Whether the library leaves the score to chance: the order of ties."""
    tolerance: float = 1e-9

    @property
    def columns(self):
        at_k = [name + str(k) for name in self.metrics.split() if name.endswith("@") for k in KS]
        return at_k + [name for name in self.metrics.split() if not name.endswith("@")]


def tied_beyond_fifteen(case, metric):
    """ranx sorts up to 15 items stably; longer lists in no order that can be told."""
    return case.tied and len(case.retrieved) > 15


def tied_unless_ndcg(case, metric):
    """torchmetrics averages ties in nDCG; its top k leaves them open."""
    return case.tied and metric != "ndcg"


BOTH = ("ranked", "scored")
ALL = {
    "trec_eval": Peer(
        "recall@ precision@ hit@ ap@ ndcg@ recall_capped@ rr ap ndcg r_precision bpref infap recall precision f1",
        suites=BOTH, changes=(without_copies, bearable_for_pytrec_eval),
    ),
    "ir-measures": Peer(
        "recall@ precision@ hit@ ap@ ndcg@ rr@ rr ap ndcg r_precision bpref infap recall precision f1",
        suites=BOTH, changes=(without_gold_of_only_negative_grades,),
    ),
    "ranx": Peer(
        "recall@ precision@ hit@ rr@ ap@ ndcg@ f1@ recall precision hit rr ap ndcg f1 r_precision rbp(p=0.5)",
        "ranx", suites=BOTH, changes=(without_copies,), open=tied_beyond_fifteen,
    ),
    "beir": Peer(
        "ndcg@ ap@ recall@ precision@ rr@ recall_capped@ hit@",
        "torch", suites=BOTH, changes=(without_copies,),
        tolerance=5.1e-6,  # it rounds to five places
    ),
    "mteb": Peer(
        "ndcg@ ap@ recall@ precision@ hit@ rr@",
        "torch", suites=BOTH, changes=(without_copies,),
    ),
    "sklearn": Peer("ndcg@ ndcg", "sklearn", suites=BOTH, changes=(without_copies, without_negative_grades)),
    "torchmetrics": Peer(
        "recall@ precision@ hit@ rr@ ap@ ndcg@ recall precision hit rr ap ndcg r_precision",
        "torch", suites=BOTH, changes=(without_negative_grades,), open=tied_unless_ndcg,
        tolerance=1e-6,  # it computes in single precision
    ),
    "mlflow": Peer("recall@ precision@ ndcg@", "mlflow"),
    "llamaindex": Peer("hit@ rr@ precision@ recall@ ap@ ndcg@ hit rr precision recall ap ndcg", "llamaindex"),
    "haystack": Peer("recall@ rr@ ap@ ndcg@ recall rr ap ndcg", "haystack"),
    "trulens": Peer("recall@ precision@ ndcg@ hit@ recall precision ndcg hit rr", "trulens"),
    "phoenix": Peer("precision@ ndcg@ precision ndcg rr hit", "phoenix"),
    "continuous-eval": Peer(
        "precision@ recall@ f1@ ap@ rr@ ndcg@ precision recall f1 ap rr ndcg", "continuous-eval"
    ),
    "autorag": Peer("recall@ precision@ f1@ ndcg@ rr@ ap@ recall precision f1 ndcg rr ap", "autorag"),
    "ragas": Peer("recall@ precision@ ap@ recall precision ap", "ragas"),  # adds 1e-10 to what it divides by
    "evidently": Peer(
        "recall@ precision@ ap@ hit@ rr@ ndcg@", "evidently",
    ),
    "azure": Peer("ndcg@3", "azure", suites=BOTH, changes=(without_negative_grades,)),
    "futureagi": Peer("recall@ precision@ ndcg@ recall precision ndcg rr hit ap"),
    "futureagi-server": Peer("recall@ precision@ ndcg@ recall precision ndcg rr hit ap"),
    "remem": Peer("recall@ recall_all@ ndcg@"),
    "longmemeval": Peer("hit@ recall_all@ ndcg@"),
    "multihop-rag": Peer("hit@ rr@ ap@"),
    "musique": Peer("set_em set_f1"),
    "hotpotqa": Peer("set_em set_f1 precision recall"),
    "locomo": Peer("recall"),
    "browsecomp-plus": Peer("recall"),  # its other metrics are in test_multihop.py
}  # fmt: skip


# ---- both sides -----------------------------------------------------------------------------------------------------


@cache
def queries(name):
    """What both sides are given."""
    peer = ALL[name]
    cases = [case for suite in peer.suites for case in SUITES[suite]()]
    for change in peer.changes:
        cases = [changed for case in cases if (changed := change(case)) is not None]
    return cases


@cache
def theirs(name):
    """The scores of the library, or why there are none."""
    peer = ALL[name]
    if name in written_out.FUNCTIONS:
        return written_out.scores(name, queries(name), peer.columns)
    python = ROOT / ".oracles" / peer.home / "bin" / "python" if peer.home else Path(sys.executable)
    if not python.exists():
        return f"`make oracle-{peer.home}` installs {name}"
    return json.loads(answer(name, python, json.dumps({"ks": KS, "queries": [c._asdict() for c in queries(name)]})))


def answer(name, python, question):
    """What the library says; the same question, asked the same way of the same versions, is asked once."""
    script = PEERS / f"{name.replace('-', '_')}.py"
    lock = ROOT / "requirements" / (f"oracles/{ALL[name].home}.lock" if ALL[name].home else "dev.lock")
    asked_by = [script.read_bytes(), (PEERS / "__main__.py").read_bytes(), lock.read_bytes(), question.encode()]
    known = ROOT / ".oracles" / "answers" / f"{name}-{sha256(b''.join(asked_by)).hexdigest()[:16]}.json"
    if not known.exists():
        done = subprocess.run(
            [python, PEERS, script.stem],
            input=question, capture_output=True, text=True, check=False, env=os.environ | QUIET,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        known.parent.mkdir(parents=True, exist_ok=True)
        new = known.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(json.loads(done.stdout)["scores"]))
        new.replace(known)
    return known.read_text()


def asked(name):
    scores = theirs(name)
    if isinstance(scores, str):
        pytest.skip(scores)
    return scores


def ours(name, column):
    """karat is given lists, and then dicts with scores: one call takes one kind."""
    cases = queries(name)
    found = {}
    for suite in ALL[name].suites:
        some = [case for case in cases if (case.scores is None) == (suite == "ranked")]
        result = karat.evaluate(
            retrieved={case.id: given(case) for case in some},
            gold={case.id: case.gold for case in some},
            metrics=[column],
            convention=name,
        )
        found |= dict(zip(result.ids, result.scores[column], strict=True))
    return [float(found[case.id]) for case in cases]


def given(case):
    return case.retrieved if case.scores is None else dict(zip(case.retrieved, case.scores, strict=True))


def same(their, our, tolerance):
    if their is None or isinstance(their, str):
        return math.isnan(our)
    return abs(their - our) <= tolerance


# ---- the comparison -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "column"), [(name, column) for name, peer in ALL.items() for column in peer.columns])
def test_equals(name, column):
    peer, their = ALL[name], asked(name)[column]
    wrong = [
        (case, t, o)
        for case, t, o in zip(queries(name), their, ours(name, column), strict=True)
        if not peer.open(case, column.partition("@")[0]) and not same(t, o, peer.tolerance)
    ]
    assert not wrong, "{} queries of {} differ; the first: {}, theirs {}, ours {}".format(
        len(wrong), len(their), *min(wrong, key=lambda found: len(found[0].retrieved) + len(found[0].gold))
    )


@pytest.mark.parametrize("name", ALL)
def test_the_queries_are_worth_comparing(name):
    scores = asked(name)
    assert sorted(scores) == sorted(ALL[name].columns)
    for column, values in scores.items():
        metric = column.partition("@")[0]
        told = [v for case, v in zip(queries(name), values, strict=True) if not ALL[name].open(case, metric)]
        numbers = [value for value in told if isinstance(value, float)]
        assert len(numbers) >= AT_LEAST, column
        assert len(set(numbers)) > 1, column
