"""ir-measures takes rows: of two rows for one doc the later counts. Its numbers are those of several programs."""

from functools import cache, partial

import ir_measures
from ir_measures import AP, RR, Bpref, P, Qrel, R, Rprec, ScoredDoc, SetF, SetP, SetR, Success, infAP, nDCG

PACKAGE = "ir-measures"
AT_K = {"recall": R, "precision": P, "hit": Success, "ap": AP, "ndcg": nDCG, "rr": RR}
WHOLE = {
    "rr": RR,
    "ap": AP,
    "ndcg": nDCG,
    "r_precision": Rprec,
    "bpref": Bpref,
    "infap": infAP,
    "recall": SetR,
    "precision": SetP,
    "f1": SetF,
}


def columns(query, ks):
    named = {f"{name}@{k}": measure @ k for name, measure in AT_K.items() for k in ks} | WHOLE
    scores = query["scores"] or range(len(query["retrieved"]), 0, -1)

    @cache
    def result():
        gold = [Qrel(query["id"], doc, grade) for doc, grade in query["gold"].items()]
        run = [ScoredDoc(query["id"], doc, float(s)) for doc, s in zip(query["retrieved"], scores, strict=True)]
        return {m.measure: m.value for m in ir_measures.iter_calc(list(named.values()), gold, run)}

    def one(measure):
        return result().get(measure)

    return {name: partial(one, measure) for name, measure in named.items()}
