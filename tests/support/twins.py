"""A slow, simple twin of every metric, in plain Python, one query at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, log2, nan

from karat.conventions import STANDARD, Convention
from karat.metrics import Level
from support.aspect_twins import ASPECT_TWINS, NUGGET_TWINS


@dataclass
class Case:
    """One query: the item at each rank, the gold items that each item matches, and the grades of the gold."""

    ranking: list[int]
    satisfies: dict[int, set[int]]
    grades: list[float]
    c: Convention = field(default=STANDARD)
    scores: list[float] | None = None
    cited: list[int] | None = None
    """The numbers of the gold items that the answer cites; others are not gold."""
    aspects: list[set[str]] | None = None
    """The aspects of each gold item; None: every item serves the same two."""
    answerable: bool = True

    def aspects_of(self, gold):
        return {"a", "b"} if self.aspects is None else self.aspects[gold]

    def raw_scores(self):
        """The scores as given; if there are none, as many as there are ranks, falling to 1."""
        return list(range(len(self.ranking), 0, -1)) if self.scores is None else self.scores

    def relevant(self, gold, rel):
        return self.grades[gold] > 0 if rel is None else self.grades[gold] >= rel

    def scored(self, rank):
        """True if the score of the item at this rank allows it to count."""
        return not self.c.above_zero or self.scores is None or self.scores[rank - 1] > 0

    def counts(self, rank):
        """True if the item at a rank is not a copy of one above."""
        return self.ranking[rank - 1] not in self.ranking[: rank - 1]

    def ranks(self, rel, copies=None):
        """Each relevant rank with its best grade."""
        found = {}
        for rank, item in enumerate(self.ranking, 1):
            grades = [self.grades[g] for g in self.satisfies.get(item, ()) if self.relevant(g, rel)]
            if grades and self.scored(rank) and (self.counts(rank) or (copies or "precision" in self.c.per_rank)):
                found[rank] = max(grades)
        return found

    def items(self, rel, of="recall"):
        """Each found gold item with its first rank, place and grade, in order of the places."""
        if of in self.c.per_rank:
            return [(rank, rank, grade) for rank, grade in self.ranks(rel, copies=True).items()]
        first = {}
        for rank, item in enumerate(self.ranking, 1):
            if self.counts(rank) and self.scored(rank):
                for gold in self.satisfies.get(item, ()):
                    if self.relevant(gold, rel):
                        first.setdefault(gold, rank)
        rows, place = [], 0
        for gold, rank in sorted(first.items(), key=lambda pair: (pair[1], -self.grades[pair[0]])):
            place = max(rank, place + 1)
            rows.append((rank, place, self.grades[gold]))
        return rows

    def text(self, item):
        """The characters of an item: ten of each gold item that it matches, or seven of its own."""
        gold = {("gold", g, i) for g in self.satisfies.get(item, ()) for i in range(10)}
        return gold or {("own", item, i) for i in range(7)}

    def gold_text(self):
        return {("gold", g, i) for g in range(len(self.grades)) if self.relevant(g, None) for i in range(10)}

    def read(self, k):
        top = self.ranking if k == inf else self.ranking[:k]
        return set().union(*map(self.text, top))

    def used(self, rank):
        """The share of the chunk at a rank that is relevant; 0 for a copy."""
        held = [self.relevant(gold, None) for gold in self.satisfies.get(self.ranking[rank - 1], ())]
        return sum(held) / len(held) if held and self.counts(rank) else 0.0

    def size(self, rel=None):
        return sum(self.relevant(gold, rel) for gold in range(len(self.grades)))

    def cited_gold(self):
        """The relevant gold items that the answer cites."""
        return {gold for gold in self.cited or () if gold < len(self.grades) and self.relevant(gold, None)}

    def whatever_score(self):
        return replace(self, c=replace(self.c, above_zero=False)) if self.c.above_zero else self

    def recall_size(self, rel):
        """The denominator of recall."""
        if self.c.recall_over == "gold":
            return self.size(rel)
        return len(self.whatever_score().items(rel))

    def equal(self, found):
        """The first and the last place of each item, in any order of those with the same score; no two ties overlap."""
        if self.c.ties != "averaged" or self.scores is None:
            return [(place, place) for _, place, _ in found]
        ends, before = [], 0
        for score in sorted(set(self.scores), reverse=True):
            ranks = [rank for rank, own in enumerate(self.scores, 1) if own == score]
            golds = [sum(own == rank for own, _, _ in found) for rank in ranks]
            places = []
            for rank, number in zip(ranks, sorted(golds), strict=True):
                for _ in range(number):
                    places.append(max(rank, (places[-1] if places else before) + 1))
            if places:
                whole = (max(ranks[0], before + 1), places[-1])
                ends += [(place, place) if len(ranks) == 1 else whole for place in places]
                before = places[-1]
        return ends

    def gain(self, grade):
        return {"linear": grade, "exponential": 2**grade - 1, "binary": 1.0}[self.c.gain]

    def discount(self, place):
        return 1 / log2(place + 1 if self.c.discount == "log2" else max(place, 2))


def recall(q, k, rel=None):
    return sum(rank <= k for rank, _, _ in q.items(rel)) / (q.recall_size(rel) or 1)


def hit(q, k, rel=None):
    return float(any(rank <= k for rank, _, _ in q.items(rel)))


def recall_all(q, k, rel=None):
    return float(sum(rank <= k for rank, _, _ in q.items(rel)) == q.size(rel))


def recall_capped(q, k, rel=None):
    return min(sum(rank <= k for rank, _, _ in q.items(rel)), k) / min(q.size(rel), k)


def precision(q, k, rel=None):
    over = k if k != inf and q.c.precision_over == "k" else min(k, len(q.ranking))
    if q.c.precision_over == "different":
        over = len(set(q.ranking if k == inf else q.ranking[:k]))
    return sum(rank <= k for rank in q.ranks(rel)) / over if over else 0.0


def f(q, k, beta=1.0, rel=None):
    p, r = precision(q, k, rel), recall(q, k, rel)
    return (1 + beta**2) * p * r / (beta**2 * p + r) if p or r else 0.0


def f1(q, k, rel=None):
    return f(q, k, 1.0, rel)


def r_precision(q, k, rel=None):
    return recall(q, q.recall_size(rel), rel)


def set_em(q, k, rel=None):
    good = {q.ranking[rank - 1] for rank in q.ranks(rel)}
    return float(good == set(q.ranking) and len(q.items(rel, "set")) == q.size(rel))


def set_f1(q, k, rel=None):
    good = {q.ranking[rank - 1] for rank in q.ranks(rel)}
    p = len(good) / len(set(q.ranking)) if q.ranking else 0.0
    r = len(q.items(rel, "set")) / q.size(rel)
    return 2 * p * r / (p + r) if p + r else 0.0


def citation_precision(q, k):
    if not q.cited:
        return nan if q.cited is None else q.c.nothing_cited
    return len(q.cited_gold()) / len(set(q.cited))


def citation_recall(q, k):
    if not q.cited:
        return nan if q.cited is None else q.c.nothing_cited
    return len(q.cited_gold()) / q.size()


def judged(q, k):
    if not q.ranking:
        return nan
    top = [rank for rank in q.ranks(0.0 if q.c.pooled == "unjudged" else -inf) if rank <= k]
    return len(top) / min(k, len(q.ranking))


def rr(q, k, rel=None):
    return max((1 / rank for rank in q.ranks(rel) if rank <= k), default=0.0)


def ap(q, k, rel=None):
    rows = [(number, place) for number, (_, place, _) in enumerate(q.items(rel, "ap"), 1) if place <= k]
    over = {
        "gold": q.size(rel),
        "retrieved": len(q.whatever_score().items(rel, "ap")),
        "found": sum(rank <= k for rank, _, _ in q.items(rel, "ap")),
        "reachable": min(q.size(rel), k),
    }[q.c.ap_over]
    if q.c.ap_counts == "there":
        return sum(1 / rank for rank, _, _ in q.items(rel, "ap") if rank <= k) / over if over else 0.0
    return sum(number / place for number, place in rows) / over if over else 0.0


def iprec(q, k, rel=None):
    if k is inf:
        return sum(iprec(q, Level(level / 10), rel) for level in range(11)) / 11
    points = [(number, number / place) for number, (_, place, _) in enumerate(q.items(rel), 1)]
    share = k.recall * q.size(rel)
    needed = int(share + 0.9) if q.c.recall_level == "up" else int(share + 0.5)
    return max((precision for number, precision in points if number >= needed), default=0.0)


def rr_each(q, k, rel=None):
    return sum(1 / rank for rank, _, _ in q.items(rel) if rank <= k) / q.size(rel)


def ap_each(q, k, rel=None):
    total = 0.0
    for gold in range(len(q.grades)):
        matches = [r for r, item in enumerate(q.ranking, 1) if gold in q.satisfies.get(item, ()) and q.scored(r)]
        ranks = [r for r in matches if r <= k and (q.counts(r) or "ap" in q.c.per_rank)]
        if ranks and q.relevant(gold, rel):
            total += sum(number / rank for number, rank in enumerate(ranks, 1)) / len(ranks)
    return total / q.size(rel)


def dcg_of(q, k, found):
    """The sum of the gains, each with the mean discount of its possible places."""
    total = 0.0
    places = q.equal(found)
    for (_, _, grade), (first, last) in zip(found, places, strict=True):
        discounts = [q.discount(p) if p <= k else 0.0 for p in range(first, last + 1)]
        total += q.gain(grade) * sum(discounts) / len(discounts)
    if q.c.unretrieved == "last":
        retrieved = {gold for item in q.ranking for gold in q.satisfies.get(item, ())}
        left = [grade for gold, grade in enumerate(q.grades) if gold not in retrieved and grade >= 0]
        last = max([len(q.ranking), *(end for _, end in places)])
        for place in range(last + 1, last + len(left) + 1):
            if place <= k:
                total += sum(q.gain(grade) for grade in left if grade > 0) / len(left) * q.discount(place)
    return total


def with_gain(q, gain):
    names = {"exp": "exponential", "linear": "linear", "binary": "binary"}
    return q if gain is None else replace(q, c=replace(q.c, gain=names[gain]))


def dcg(q, k, gain=None):
    return dcg_of(with_gain(q, gain), k, q.items(None, "ndcg"))


def ndcg(q, k, gain=None):
    q = with_gain(q, gain)
    found = q.items(None, "ndcg")
    dcg = dcg_of(q, k, found)
    best = sorted((grade for grade in q.grades if grade > 0), reverse=True)
    if q.c.ideal == "grown":
        copies = [g for rank, g in q.ranks(None, copies=True).items() if rank <= k and not q.counts(rank)]
        best = sorted([*best, *copies], reverse=True)
    if q.c.ideal == "retrieved":
        best = sorted((grade for _, _, grade in found), reverse=True)
    reach = max([len(q.ranking), *(place for _, place, _ in found)])
    cut = {"k": k, "all": inf, "returned": min(k, reach), "retrieved": k, "grown": min(k, reach)}[q.c.ideal]
    ideal = sum(q.gain(grade) * q.discount(place) for place, grade in enumerate(best, 1) if place <= cut)
    return dcg / ideal if ideal else 0.0


def err(q, k, max_grade=4.0):
    reading, total = 1.0, 0.0
    for rank, grade in q.ranks(None).items():
        stop = (2 ** min(grade, max_grade) - 1) / 2**max_grade
        total += reading * stop / rank if rank <= k else 0.0
        reading *= 1 - stop
    return total


def rbp(q, k, p=0.8, rel=None):
    ranks = [(rank, grade if q.c.rbp_of == "grade" else 1.0) for rank, grade in q.ranks(rel).items() if rank <= k]
    return (1 - p) * sum(weight * p ** (rank - 1) for rank, weight in ranks)


def bpref(q, k, rel=None):
    size = q.size(rel)
    irrelevant = q.size(0.0) - size
    above, total = 0, 0.0
    for _, _, grade in q.items(0.0):
        if grade > 0 if rel is None else grade >= rel:
            total += 1 - min(above, size) / min(irrelevant, size) if above else 1.0
        else:
            above += 1
    return total / size


def infap(q, k, rel=None):
    good, bad, pooled, total = 0, 0, 0, 0.0
    for _, place, grade in q.items(-inf):
        if grade > 0 if rel is None else grade >= rel:
            above = place - 1
            in_pool = (good + bad + pooled) / above if above else 0.0
            total += 1 / place + above / place * in_pool * (good + 1e-5) / (good + bad + 2e-5)
            good += 1
        elif grade >= 0:
            bad += 1
        else:
            pooled += 1
    return total / q.size(rel)


def span_recall(q, k):
    return len(q.read(k) & q.gold_text()) / len(q.gold_text())


def span_precision(q, k):
    return len(q.read(k) & q.gold_text()) / len(q.read(k)) if q.read(k) else 0.0


def span_iou(q, k):
    return len(q.read(k) & q.gold_text()) / len(q.read(k) | q.gold_text())


def span_f1(q, k):
    p, r = span_precision(q, k), span_recall(q, k)
    return 2 * p * r / (p + r) if p + r else 0.0


def context_recall(q, k, rel=None):
    return sum(rank <= k for rank, _, _ in q.items(rel)) / q.size(rel)


def context_precision(q, k, rel=None):
    ranks = sorted(rank for rank in q.ranks(rel, copies="ap" in q.c.per_rank) if rank <= k)
    return sum(number / rank for number, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


def chunk_attribution(q, k):
    top = [rank for rank in q.ranks(None) if rank <= k]
    return len(top) / min(k, len(q.ranking)) if q.ranking else 0.0


def chunk_utilization(q, k, over=None):
    top = range(1, 1 + int(min(k, len(q.ranking))))
    size = len([rank for rank in q.ranks(None) if rank <= k]) if over == "used" else len(top)
    return min(1.0, sum(q.used(rank) for rank in top) / max(size, 1))


def false_alarm(q, k, threshold=None):
    returned = [threshold is None or score >= threshold for score in q.raw_scores()]
    return 1.0 if any(returned[: int(min(k, len(returned)))]) else 0.0


TWINS = {
    twin.__name__: twin
    for twin in (
        recall, hit, recall_all, recall_capped, precision, f, f1, r_precision, judged, false_alarm,
        set_em, set_f1, citation_precision, citation_recall,
        rr, ap, iprec, ndcg, err, rbp, bpref, infap, rr_each, ap_each, span_recall, span_precision, span_iou, span_f1,
        context_recall, context_precision, chunk_attribution, chunk_utilization, *ASPECT_TWINS, *NUGGET_TWINS,
    )
}  # fmt: skip
NEEDS_NO_GOLD = {"judged", "false_alarm"}


def condensed(q):
    """The query without the retrieved items that have no judgement."""
    kept = [n for n, item in enumerate(q.ranking) if any(q.grades[gold] >= 0 for gold in q.satisfies.get(item, ()))]
    scores = None if q.scores is None else [q.scores[n] for n in kept]
    satisfies = {item: {gold for gold in own if q.grades[gold] >= 0} for item, own in q.satisfies.items()}
    return replace(q, ranking=[q.ranking[n] for n in kept], satisfies=satisfies, scores=scores)


def twin_score(metric, k, q, **settings):
    """The expected score; undefined if the metric needs gold and there is none."""
    rel = settings.get("rel")
    if q.answerable == (metric == "false_alarm"):
        return nan
    if q.c.unjudged == "removed" and metric not in NEEDS_NO_GOLD:
        q = condensed(q)
    if metric not in NEEDS_NO_GOLD:
        if q.size(rel) == 0:
            if not q.ranking and q.c.both_empty is not None:
                return q.c.both_empty
            return q.c.empty_gold if q.grades or q.c.nothing_judged is None else q.c.nothing_judged
        if not q.ranking and q.c.empty_retrieved != 0:
            return q.c.empty_retrieved
        if not q.whatever_score().items(rel) and q.c.none_found != 0:
            return q.c.none_found
    return TWINS[metric](q, inf if k is None else k, **settings)
