"""What cannot be installed, as its definitions: Future AGI as documented and as its server, REMem, LongMemEval, and
the evaluation scripts of multi-hop benchmarks.

Each function takes the set of relevant gold, the ranked list and k, or None for the whole list.
"""

from math import log2

# ---- Future AGI -----------------------------------------------------------------------------------------------------


def recall(gold, retrieved, k):
    return len(gold & set(retrieved[:k])) / len(gold) if gold else None


def precision_over_k(gold, retrieved, k):
    wanted = k or len(retrieved)
    return (len(gold & set(retrieved[:k])) / wanted if wanted else 0.0) if gold else None


def precision_over_returned(gold, retrieved, k):
    top = retrieved[:k]
    return (sum(doc in gold for doc in top) / len(top) if top else 0.0) if gold else None


def ndcg_of_first_copies(gold, retrieved, k):
    gains = [doc in gold and doc not in retrieved[:i] for i, doc in enumerate(retrieved[:k])]
    return _ratio(_dcg(gains), _dcg([1] * min(len(gold), k or len(retrieved)))) if gold else None


def ndcg_of_every_copy(gold, retrieved, k):
    top = retrieved[:k]
    return min(1.0, _ratio(_dcg([doc in gold for doc in top]), _dcg([1] * min(len(gold), len(top))))) if gold else None


def rr(gold, retrieved, k):
    ranks = [rank for rank, doc in enumerate(retrieved[:k], 1) if doc in gold]
    return (1 / ranks[0] if ranks else 0.0) if gold else None


def hit(gold, retrieved, k):
    return float(bool(gold & set(retrieved[:k]))) if gold else None


def ap_of_first_copies(gold, retrieved, k):
    ranks = [i + 1 for i, doc in enumerate(retrieved[:k]) if doc in gold and doc not in retrieved[:i]]
    return sum(found / rank for found, rank in enumerate(ranks, 1)) / len(gold) if gold else None


def ap_of_every_copy(gold, retrieved, k):
    ranks = [i + 1 for i, doc in enumerate(retrieved[:k]) if doc in gold]
    return min(1.0, sum(found / rank for found, rank in enumerate(ranks, 1)) / len(gold)) if gold else None


# ---- REMem and LongMemEval ------------------------------------------------------------------------------------------


def recall_or_zero(gold, retrieved, k):
    return recall(gold, retrieved, k) or 0.0


def hit_or_zero(gold, retrieved, k):
    return hit(gold, retrieved, k) or 0.0


def recall_all_or_zero(gold, retrieved, k):
    return float(bool(gold) and gold <= set(retrieved[:k]))


def recall_all(gold, retrieved, k):
    """All of nothing is there."""
    return float(gold <= set(retrieved[:k]))


def ndcg_of_retrieved(gold, retrieved, k):
    gains = [doc in gold for doc in retrieved]
    return _ratio(_dcg_from_two(gains[:k]), _dcg_from_two(sorted(gains, reverse=True)[:k]))


def ndcg_of_gold(gold, retrieved, k):
    ideal = [1] * len(gold)
    return _ratio(_dcg_from_two([doc in gold for doc in retrieved[:k]]), _dcg_from_two(ideal[:k]))


# ---- MultiHop-RAG, MuSiQue, HotpotQA, LoCoMo, BrowseComp-Plus --------------------------------------------------------


def new_gold_over_rank(gold, retrieved, k):
    """At each rank the gold that is new there, over the rank: MultiHop-RAG calls it MAP."""
    if not gold:
        return None
    total, left = 0.0, set(gold)
    for rank, doc in enumerate(retrieved[:k], 1):
        total += (doc in left) / rank
        left.discard(doc)
    return total / (min(len(gold), k) if k else len(gold))


def set_precision(gold, retrieved, k):
    """Of a set: copies do not count; 0 of nothing."""
    return _ratio(len(gold & set(retrieved)), len(set(retrieved)))


def set_recall(gold, retrieved, k):
    return _ratio(len(gold & set(retrieved)), len(gold))


def set_f1(gold, retrieved, k):
    """0 if both sets are empty."""
    p, r = set_precision(gold, retrieved, k), set_recall(gold, retrieved, k)
    return _ratio(2 * p * r, p + r)


def set_f1_or_both_empty(gold, retrieved, k):
    return set_f1(gold, retrieved, k) if gold or retrieved else 1.0


def set_em(gold, retrieved, k):
    return float(gold == set(retrieved))


def evidence_recall(gold, retrieved, k):
    """1 if there is no evidence, or no context in which to look for it."""
    return len(gold & set(retrieved)) / len(gold) if gold and retrieved else 1.0


def citations(gold, cited):
    """Precision and recall of the set of cited documents; both 0 if it is empty."""
    both = len(set(cited) & gold)
    return _ratio(both, len(set(cited))), _ratio(both, len(gold))


def _dcg(gains):
    return sum(gain / log2(i + 2) for i, gain in enumerate(gains))


def _dcg_from_two(gains):
    """The first two ranks weigh the same."""
    return sum(gain / max(1.0, log2(i + 1)) for i, gain in enumerate(gains))


def _ratio(above, below):
    return above / below if below else 0.0


FUNCTIONS = {
    "futureagi": {
        "recall": recall, "precision": precision_over_k, "ndcg": ndcg_of_first_copies,
        "rr": rr, "hit": hit, "ap": ap_of_first_copies,
    },
    "futureagi-server": {
        "recall": recall, "precision": precision_over_returned, "ndcg": ndcg_of_every_copy,
        "rr": rr, "hit": hit, "ap": ap_of_every_copy,
    },
    "remem": {"recall": recall_or_zero, "recall_all": recall_all_or_zero, "ndcg": ndcg_of_retrieved},
    "longmemeval": {"hit": hit_or_zero, "recall_all": recall_all, "ndcg": ndcg_of_gold},
    "multihop-rag": {"hit": hit, "rr": rr, "ap": new_gold_over_rank},
    "musique": {"set_em": set_em, "set_f1": set_f1_or_both_empty},
    "hotpotqa": {"set_em": set_em, "set_f1": set_f1, "precision": set_precision, "recall": set_recall},
    "locomo": {"recall": evidence_recall},
    "browsecomp-plus": {"recall": recall},
}  # fmt: skip


def scores(convention, cases, columns):
    """For each column the score of each query."""
    found = {}
    for column in columns:
        name, _, k = column.partition("@")
        score = FUNCTIONS[convention][name]
        found[column] = [score(case.relevant, case.retrieved, int(k) if k else None) for case in cases]
    return found
