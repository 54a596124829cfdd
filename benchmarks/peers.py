"""The same evaluation by karat and by its peers, written as a user of each would write it.

Each function converts the data within the call. A peer is imported only when it is called, so that
no case carries the memory and threads of a library it does not measure.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, Any

from benchmarks.workloads import Data, Size, dicts

if TYPE_CHECKING:
    from karat import Run

METRICS = "recall@1,5,10,20,100 precision@1,5,10,20,100 ndcg@10,100 rr ap"

PYTREC_EVAL = {"recall.1,5,10,20,100", "P.1,5,10,20,100", "ndcg_cut.10,100", "recip_rank", "map"}
_IN_PYTREC_EVAL = {"recall": "recall", "precision": "P", "ndcg": "ndcg_cut", "rr": "recip_rank", "ap": "map"}

_CUTOFFS = (1, 5, 10, 20, 100)
RANX = [f"{name}@{k}" for name in ("recall", "precision") for k in _CUTOFFS]
RANX += ["ndcg@10", "ndcg@100", "mrr", "map"]

# ranx switches to one thread permanently once it has seen fewer than 10 queries.
_WARM_UP = Size(20, 50)


def by_karat(data: Data) -> Run:
    """Evaluate with karat, from the data to the scores of every query."""
    import karat

    return karat.evaluate(retrieved=data.run, gold=data.gold, metrics=METRICS)


def by_pytrec_eval(data: Data) -> dict[str, dict[str, float]]:
    """Evaluate with pytrec_eval, from the data to the scores of every query."""
    import pytrec_eval

    scores: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(data.gold, PYTREC_EVAL).evaluate(data.run)
    return scores


def by_ranx(data: Data) -> Any:
    """Evaluate with ranx, from the data to the means; its run stores the scores of every query."""
    import ranx

    return ranx.evaluate(ranx.Qrels(data.gold), ranx.Run(data.run), RANX)


def warm_up_ranx() -> None:
    """Let ranx compile its code for ids of this length."""
    by_ranx(dicts(_WARM_UP))


def check_agreement(ours: Run, theirs: dict[str, dict[str, float]], gold: dict[str, Any]) -> None:
    """Check before timing: both means are equal over the queries with relevant gold.

    The other queries score 0 in pytrec_eval, or are dropped if they have no gold at all. In karat they are undefined.
    """
    counted = [query for query, items in gold.items() if _has_relevant(items)]
    assert set(ours.undefined.values()) == {len(gold) - len(counted)}
    for name, mean in ours.mean.items():
        stem, at, k = name.partition("@")
        other = _IN_PYTREC_EVAL[stem] + at.replace("@", "_") + k
        expected = fsum(theirs[query][other] for query in counted) / len(counted)
        assert abs(mean - expected) < 1e-9, f"{name}: {mean} in karat, {expected} in pytrec_eval"
    assert len(ours.mean) == len(theirs[counted[0]])


def _has_relevant(items: dict[str, int] | list[str]) -> bool:
    return any(items.values()) if isinstance(items, dict) else bool(items)
