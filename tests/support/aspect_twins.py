"""Slow, simple twins of the metrics of aspects and of nuggets, in plain Python, one query at a time."""

from __future__ import annotations

from math import inf, log2, nan


def served(q, rank):
    """The aspects that the item at a rank serves; none if it is a copy of one above."""
    if not (q.counts(rank) and q.scored(rank)):
        return set()
    gold = [g for g in q.satisfies.get(q.ranking[rank - 1], ()) if q.relevant(g, None)]
    return set().union(*(q.aspects_of(g) for g in gold))


def facets(q):
    """The aspects of the query that some relevant gold item serves."""
    return set().union(*(q.aspects_of(g) for g in range(len(q.grades)) if q.relevant(g, None)))


def gains(q, alpha):
    """The gain at each rank: aspects seen n times above gain (1 - alpha)^n."""
    seen = dict.fromkeys(facets(q), 0)
    for rank in range(1, len(q.ranking) + 1):
        there = served(q, rank)
        yield rank, sum((1 - alpha) ** seen[name] for name in there)
        for name in there:
            seen[name] += 1


def st_recall(q, k):
    top = [served(q, rank) for rank in range(1, len(q.ranking) + 1) if rank <= k]
    return len(set().union(*top)) / len(facets(q)) if facets(q) else nan


def err_ia(q, k, alpha=0.5):
    total = sum(gain / rank for rank, gain in gains(q, alpha) if rank <= k)
    ideal = sum((1 - alpha) ** (i - 1) / i for i in range(1, int(min(k, 2000)) + 1))
    if not facets(q):
        return nan
    return total if k == 1 and q.c.aspect_scores == "ndeval" else total / ideal / len(facets(q))


def nrbp(q, k, alpha=0.5, beta=0.5):
    total = sum(gain * beta ** (rank - 1) for rank, gain in gains(q, alpha))
    return (1 - (1 - alpha) * beta) * total / len(facets(q)) if facets(q) else nan


def p_ia(q, k):
    over = k if k != inf and q.c.precision_over == "k" else min(k, len(q.ranking))
    found = sum(len(served(q, rank)) for rank in range(1, len(q.ranking) + 1) if rank <= k)
    return (found / over / len(facets(q)) if over else 0.0) if facets(q) else nan


def first_ranks(q):
    """The first rank of each relevant gold item that was found."""
    first = {}
    for rank, item in enumerate(q.ranking, 1):
        for gold in sorted(q.satisfies.get(item, ())) if q.counts(rank) and q.scored(rank) else ():
            if q.relevant(gold, None):
                first.setdefault(gold, rank)
    return first


def places(rows, order):
    """The place of each gold item: its rank, below the item before it; items at the same rank in this order."""
    place, found = 0, []
    for gold, rank in sorted(rows.items(), key=lambda pair: (pair[1], order.index(pair[0]))):
        place = max(rank, place + 1)
        found.append((gold, place))
    return found


def ap_ia(q, k):
    each = []
    for name in facets(q):
        wanted = [g for g in range(len(q.grades)) if q.relevant(g, None) and name in q.aspects_of(g)]
        found = places({gold: rank for gold, rank in first_ranks(q).items() if gold in wanted}, wanted)
        each.append(sum(number / place for number, (_, place) in enumerate(found, 1)) / len(wanted))
    return sum(each) / len(each) if each else nan


def alpha_ndcg(q, k, alpha=0.5):
    def dcg(order):
        seen = dict.fromkeys(facets(q), 0)
        total = 0.0
        for gold, place in order:
            gain = sum((1 - alpha) ** seen[name] for name in q.aspects_of(gold))
            total += gain / log2(place + 1) if place <= k else 0.0
            for name in q.aspects_of(gold):
                seen[name] += 1
        return total

    left = [g for g in range(len(q.grades)) if q.relevant(g, None) and q.aspects_of(g)]
    ideal, seen = [], dict.fromkeys(facets(q), 0)
    while left:
        best = max(left, key=lambda g: (sum((1 - alpha) ** seen[n] for n in sorted(q.aspects_of(g))), str(g)))
        left.remove(best)
        ideal.append((best, len(ideal) + 1))
        for name in q.aspects_of(best):
            seen[name] += 1
    if not ideal:
        return nan
    found = {gold: rank for gold, rank in first_ranks(q).items() if q.aspects_of(gold)}
    score = dcg(places(found, [gold for gold, _ in ideal])) / dcg(ideal)
    return min(score, 1.0) if q.c.aspect_scores == "bounded" else score


def nugget_all(q, k, least=None):
    nuggets = [gold for gold in range(len(q.grades)) if q.relevant(gold, least)]
    found = [gold for gold, rank in first_ranks(q).items() if rank <= k and gold in nuggets]
    return len(found) / len(nuggets) if nuggets else q.c.empty_gold


def nugget_vital(q, k):
    return nugget_all(q, k, 2.0)


def nugget_all_strict(q, k):
    """No case has partial support; tests/judges/test_nuggets.py has."""
    return nugget_all(q, k)


def nugget_vital_strict(q, k):
    return nugget_all(q, k, 2.0)


ASPECT_TWINS = (st_recall, alpha_ndcg, err_ia, nrbp, p_ia, ap_ia)
NUGGET_TWINS = (nugget_all, nugget_vital, nugget_all_strict, nugget_vital_strict)
