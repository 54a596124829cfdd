"""Gold and qrels from labels: karat reads them as they are, also after re-chunking, and so does karat calibrate."""

from __future__ import annotations

import json

import numpy as np
import pytest

import karat
from karat.errors import BadArgument, InputError
from karat.gold.agreement_of_labels import agreement_of_labels, agreement_with_model
from karat.gold.judged_sample import calibration_rows, sample_of
from karat.gold.labels import SETTLED, Label, LabelFile, Quote
from karat.gold.pool import pool
from karat.gold.written_gold import write_gold, write_qrels
from karat.stats.agreement import agree, alpha, cohen_kappa
from support.forked import run_karat

PAGE = (
    "Refunds take five days. Cards are refunded to the card. Cash is refunded at the desk. "
    "The desk is open from nine to five. On Sundays it is closed."
)


def cut(size, **more):
    """The page in chunks of this size."""
    return [
        {"id": f"{size}-{at}", "text": PAGE[at : at + size], "doc": "p", "start": at, "end": min(at + size, len(PAGE))}
        | more
        for at in range(0, len(PAGE), size)
    ]


def sample(retrieved, query="q1"):
    return {"id": query, "query": "How long does a refund take?", "retrieved": retrieved}


def without(items, *fields):
    return [{name: value for name, value in item.items() if name not in fields} for item in items]


class Desk:
    """A pool and the labels that people give by place."""

    def __init__(self, *runs, **more):
        self.pool = pool([[sample(run)] for run in runs], **more)
        self.items = self.pool.queries[0].items
        self.labels = {}

    def give(self, place, grade, by="ada", quote=None, answer="grade", shift=0):
        item = self.items[place]
        start = item.text.index(quote) + shift if quote else 0
        marked = (Quote(start, start + len(quote), quote),) if quote else ()
        self.labels["q1", item.key, by] = Label("q1", item.key, answer, grade, marked, by=by)

    def write(self, path):
        self.size = write_gold(self.pool, self.labels, path)
        return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "gold.jsonl"


def test_every_judged_item_is_written_and_no_other(path):
    desk = Desk(cut(40))
    desk.give(0, 3)
    desk.give(1, 0)
    desk.give(2, None, answer="skip")
    desk.give(3, None, answer="cannot tell")
    (line,) = desk.write(path)
    assert (line["id"], line["query"]) == ("q1", "How long does a refund take?")
    first, second = cut(40)[:2]
    assert line["gold"] == [first | {"grade": 3}, second | {"grade": 0}]
    assert desk.size == (1, 1, 1, 2, 0)


QUOTES = ("five days", "open from nine")


@pytest.mark.parametrize("fields", [[], ["doc", "start", "end"]], ids=["ranges", "texts"])
@pytest.mark.parametrize("size", [30, 60, 90])
def test_quotes_survive_re_chunking(path, size, fields):
    """The chunks that have a quote are found, and only those, however the page is cut."""
    desk = Desk(without(cut(60), *fields))
    desk.give(0, 3, quote=QUOTES[0])
    desk.give(1, 2, quote=QUOTES[1])
    desk.give(2, 0)
    desk.write(path)
    chunks = without(cut(size), *fields)
    holders = {rank for rank, one in enumerate(chunks, 1) if any(quote in one["text"] for quote in QUOTES)}
    for judge in ("contains", "spans(coverage=1)"):
        run = karat.evaluate([sample(chunks)], "recall@20", gold=path, judge=judge)
        assert {hit.rank for hit in run.hits("q1") if hit.grade > 0} == holders
        assert run.mean["recall@20"] == 1
    by_id = karat.evaluate([sample(chunks)], "recall@20 judged@3", gold=path, judge="ids")
    assert by_id.mean == {"recall@20": size == 60, "judged@3": size == 60}


def test_karat_eval_reads_the_gold(path, tmp_path):
    desk = Desk(cut(60))
    desk.give(0, 3, quote=QUOTES[0])
    desk.give(1, 0)
    desk.write(path)
    (tmp_path / "new.jsonl").write_text(json.dumps(sample(cut(90))))
    for judge, wanted in (("ids", 0), ("contains", 1), ("spans", 1)):
        options = ("--gold", path, "--judge", judge, "--format", "json", "-o", tmp_path / f"{judge}.parquet")
        done = run_karat("eval", tmp_path / "new.jsonl", "recall@5", *options, text=True)
        assert done.returncode == 0, done.stderr
        assert karat.load(tmp_path / f"{judge}.parquet").mean["recall@5"] == wanted


def test_a_chunk_with_a_quote_and_an_irrelevant_text_is_relevant(path):
    """The text that was judged irrelevant is a part of the new chunk, next to the quote."""
    desk = Desk(cut(30))
    desk.give(0, 2, quote=QUOTES[0])
    desk.give(1, 0)
    desk.write(path)
    for judge in ("contains", "spans"):
        run = karat.evaluate([sample(cut(90))], "ndcg@5 rr", gold=path, judge=judge)
        assert run.mean == {"ndcg@5": 1, "rr": 1}


def test_quotes_of_several_people_are_joined(path):
    desk = Desk(cut(60))
    desk.give(0, 3, quote="take five")
    desk.give(0, 2, by="grace", quote="five days")
    desk.give(0, 0, by="mallory", quote="Cards")
    assert [one["text"] for one in desk.write(path)[0]["gold"]] == ["take five days"]
    assert desk.write(path)[0]["gold"][0]["grade"] == 2
    desk.give(0, 1, by=SETTLED, quote="Refunds")
    (gold,) = desk.write(path)[0]["gold"]
    assert (gold["text"], gold["start"], gold["end"], gold["grade"]) == ("Refunds", 0, 7, 1)


def test_a_range_is_written_only_if_it_is_certain(path):
    """A wrong offset is corrected by the text; a chunk whose text is not that of its range has no certain offsets."""
    desk = Desk(cut(60))
    desk.give(1, 3, quote="open", shift=2)
    (gold,) = desk.write(path)[0]["gold"]
    assert PAGE[gold["start"] : gold["end"]] == "open"
    spaced = [{**one, "text": one["text"].replace(" ", "  ")} for one in cut(60)]
    desk = Desk(spaced)
    desk.give(1, 3, quote="open")
    assert desk.write(path)[0]["gold"] == [{"id": "60-60", "text": "open", "doc": "p", "grade": 3}]


def test_copies_are_alternatives(path):
    """Two ids of one text are found once, by either id."""
    desk = Desk(cut(60), [{**one, "id": f"copy of {one['id']}"} for one in cut(60)])
    desk.give(0, 3)
    desk.give(1, 0)
    (line,) = desk.write(path)
    assert [(one["id"], one["grade"]) for one in line["gold"]] == [
        ("60-0", 3), ("copy of 60-0", 3), ("60-60", 0), ("copy of 60-60", 0)
    ]  # fmt: skip
    for name in ("60-0", "copy of 60-0"):
        run = karat.evaluate({"q1": [name, "copy of 60-60"]}, "recall@5 judged@2", gold=path, judge="ids")
        assert run.mean == {"recall@5": 1, "judged@2": 1}
    assert karat.evaluate([sample(cut(60))], "recall@5", gold=path, judge="spans").mean == {"recall@5": 1}


def test_a_long_text_is_found_by_its_beginning(path, tmp_path):
    """Run files store the first 4,000 characters of a text."""
    long = [{"id": "a", "text": "word " * 1500}, {"id": "b", "text": "short"}]
    karat.evaluate([sample(long)], "rr", judge="relevance(lexical)").save(tmp_path / "run.parquet")
    found = pool([tmp_path / "run.parquet"])
    labels = {("q1", item.key, "ada"): Label("q1", item.key, grade=1, by="ada") for item in found.queries[0].items}
    write_gold(found, labels, path)
    for judge in ("contains", "ids", "spans"):
        assert karat.evaluate([sample(long)], "precision@2", gold=path, judge=judge).mean == {"precision@2": 1}


def test_labels_are_not_taken_for_gold(path):
    with LabelFile(path) as file:
        file.append(Label("q1", "a", grade=1, by="ada"))
    with pytest.raises(InputError, match="has the labels of karat label"):
        karat.evaluate({"q1": ["a"]}, "rr", gold=path)


def test_known_gold_is_kept_unless_it_is_labelled_again(path):
    before = {"q1": {"60-0": 1, "60-60": 2, "elsewhere": 3}, "q2": {"x": 1}}
    desk = Desk(cut(60), gold=before)
    desk.give(1, 0)
    lines = desk.write(path)
    assert {one["id"]: one["grade"] for one in lines[0]["gold"]} == {"60-60": 0, "60-0": 1, "elsewhere": 3}
    assert next(one for one in lines[0]["gold"] if one["id"] == "60-0")["text"] == PAGE[:60]
    assert lines[1] == {"id": "q2", "gold": [{"id": "x", "grade": 1.0}]}
    assert desk.size.known == 3


def test_gold_is_known_to_the_next_pool(path):
    """What was labelled is not asked again, and writing it again changes nothing."""
    desk = Desk(cut(60))
    desk.give(0, 3, quote=QUOTES[0])
    desk.give(0, 3, by="grace", quote="Cards")
    desk.give(1, 0)
    before = desk.write(path)
    again = Desk(cut(60), gold=path)
    assert [item.judged for item in again.items] == [3, 0, None]
    assert again.write(path) == before
    again.give(2, 1)
    assert len(again.write(path)[0]["gold"]) == 4


def test_qrels_have_a_line_for_every_item(tmp_path):
    desk = Desk(without(cut(40), "text"), gold={"q1": {"elsewhere": 2, "40-120": 1}})
    desk.give(0, 3)
    desk.give(1, 0)
    desk.give(2, None, answer="cannot tell")
    qrels = tmp_path / "qrels.txt"
    write_qrels(desk.pool, desk.labels, qrels)
    lines = ["q1 0 40-0 3", "q1 0 40-40 0", "q1 0 40-80 -1", "q1 0 40-120 1", "q1 0 elsewhere 2"]
    assert qrels.read_text().splitlines() == lines
    run = karat.evaluate({"q1": ["40-0", "40-40", "40-80"]}, "judged@3 precision@3", gold=qrels)
    assert run.mean == {"judged@3": pytest.approx(2 / 3), "precision@3": pytest.approx(1 / 3)}


def test_ids_with_spaces_are_no_qrels(tmp_path):
    desk = Desk([{"id": "a b", "text": "x"}])
    with pytest.raises(InputError, match="spaces"):
        write_qrels(desk.pool, {}, tmp_path / "qrels.txt")
    assert not (tmp_path / "qrels.txt").exists()


def test_gold_is_replaced_as_a_whole(path, monkeypatch):
    """A reader finds the old gold until the new one is complete."""
    desk = Desk(cut(60))
    desk.give(0, 3)
    before = desk.write(path)
    desk.give(1, 2)
    monkeypatch.setattr("karat._internal.output.os.fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        desk.write(path)
    assert [json.loads(line) for line in path.read_text().splitlines()] == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def judged_samples():
    texts = ["refund days", "how long a refund takes", "opening hours", "a refund of a card"]
    return [
        {"id": f"q{n}", "query": "how long refund", "retrieved": [{"id": f"{n}.{i}", "text": text} for i, text in own]}
        for n in range(20)
        for own in [sorted(enumerate(texts), key=lambda one: (one[0] * (n + 1)) % 5)]
    ]


@pytest.fixture(scope="module")
def judged():
    """A run judged without gold, by the words of the query."""
    return karat.evaluate(judged_samples(), "precision@4 rr", judge="relevance(lexical)")


def test_karat_calibrate_reads_the_labels(judged, path, tmp_path):
    """The same result as with a table of ranks, for two people, undone and skipped labels, and opinions of a model."""
    labels, rows = path.with_name("gold.labels.jsonl"), []
    found = pool([judged], depth=10)
    with LabelFile(labels) as file:
        for query in found.queries[:12]:
            for item in query.items:
                grade = 2 if "refund" in item.text else 0
                file.append(Label(query.id, item.key, grade=grade, by="ada", model=item.model))
                file.append(Label(query.id, item.key, grade=3 if grade else 0, by="grace", probability=0.5))
                rows.append({"query_id": query.id, "rank": item.ranks[0], "label": int(grade > 0)})
        file.append(Label(found.queries[13].id, found.queries[13].items[0].key, "skip", by="ada"))
        file.append(Label(found.queries[14].id, found.queries[14].items[0].key, grade=1, by="ada"))
        file.undo("ada")
    for metric in ("precision@4", "rr"):
        got, wanted = karat.calibrate(judged, labels, metric=metric), karat.calibrate(judged, rows, metric=metric)
        assert got.agreement == wanted.agreement
        assert got.agreement.judgements == 48
        assert got.corrected == wanted.corrected
    assert "skip" not in str(got)
    judged.save(tmp_path / "run.parquet")
    done = run_karat("calibrate", tmp_path / "run.parquet", labels, "--metric", "precision@4", text=True)
    assert done.returncode == 0, done.stderr
    assert "48 of" in done.stdout or "of 48" in done.stdout


@pytest.mark.parametrize("judge", ["relevance(lexical)", "ids"])
def test_karat_calibrate_reads_the_labels_of_a_sample(path, judge):
    """Also if a ranking has copies: each rank has its own label where people gave it one."""
    labels, rng = path.with_name("gold.labels.jsonl"), np.random.default_rng(1)
    texts = ["a refund", "how long a refund takes", "opening hours", "a refund"]
    rows = [
        {"id": f"q{n}", "query": "how long refund", "gold": ["i0", "i2"], "retrieved": own[n % 3 :] + own[: n % 3]}
        for n in range(30)
        for own in [[{"id": f"i{i}", "text": text} for i, text in enumerate(texts)]]
    ]
    run = karat.evaluate(rows, "precision@4", judge=judge)
    sample = sample_of(run, 40, seed=3)
    grades = {(query.id, item.key): float(rng.integers(4)) for query in sample.queries for item in query.items}
    with LabelFile(labels) as file:
        for (query, key), grade in grades.items():
            file.append(Label(query, key, grade=grade, by="ada"))
    got, wanted = karat.calibrate(run, labels), karat.calibrate(run, calibration_rows(sample, grades))
    assert (got.agreement, got.corrected) == (wanted.agreement, wanted.corrected)
    assert got.corrected is not None


def test_a_metric_with_a_threshold_counts_the_grades_as_it_does(path):
    labels = path.with_name("gold.labels.jsonl")
    run = karat.evaluate(judged_samples(), "precision@4 precision(rel=2)@4", judge="relevance(lexical)")
    found = pool([run])
    with LabelFile(labels) as file:
        for query in found.queries:
            for item in query.items:
                file.append(Label(query.id, item.key, grade=1, by="ada"))
    with pytest.raises(BadArgument, match="different grades"):
        karat.calibrate(run, labels)
    names = list(run.scores)
    assert [karat.calibrate(run, labels, metric=name).corrected.human.value for name in names] == [1, 0]


def test_labels_that_cannot_calibrate(judged, path):
    labels = path.with_name("gold.labels.jsonl")
    with LabelFile(labels) as file:
        file.append(Label("q1", "k", "skip", by="ada"))
        with pytest.raises(InputError, match="no grades yet"):
            karat.calibrate(judged, labels)
        file.append(Label("q1", "k", grade=1, by="ada"))
    with pytest.raises(InputError, match="no label is of an item of the run"):
        karat.calibrate(judged, labels)


def test_agreement_of_people_and_with_the_model():
    rng = np.random.default_rng(21)
    latest = {}
    for _ in range(400):
        key = (f"q{rng.integers(5)}", f"k{rng.integers(6)}", str(rng.choice(["ada", "grace", "lin", SETTLED])))
        answer = str(rng.choice(["grade", "skip", "cannot tell"], p=[0.8, 0.1, 0.1]))
        grade = float(rng.integers(4)) if answer == "grade" else None
        latest[key] = Label(*key[:2], answer, grade, by=key[2], model=float(rng.integers(4)))
    found = agreement_of_labels(latest)
    items = {}
    for (query, item, by), label in latest.items():
        if by != SETTLED and label.grade is not None:
            items.setdefault((query, item), {})[by] = label.grade
    shared = {pair: own for pair, own in items.items() if len(own) > 1}
    differ = [pair for pair, own in shared.items() if len(set(own.values())) > 1]
    settled = [pair for pair in differ if latest.get((*pair, SETTLED), Label("", "", "skip")).answer != "skip"]
    assert found.alpha == pytest.approx(alpha([list(own.values()) for own in shared.values()], "interval"))
    assert (found.items, found.disagreements) == (len(shared), len(differ))
    assert 0 < found.unsettled == len(differ) - len(settled) < len(differ)
    assert [one[:2] for one in found.pairs] == [("ada", "grace"), ("ada", "lin"), ("grace", "lin")]
    for pair in found.pairs:
        both = [
            (own[pair.first], own[pair.second]) for own in items.values() if {pair.first, pair.second} <= own.keys()
        ]
        assert (pair.items, pair.same) == (len(both), sum(one == other for one, other in both))
        assert pair.kappa == cohen_kappa({cell: both.count(cell) for cell in set(both)})
    for pair in agreement_with_model(latest):
        own = [label for (*_, by), label in latest.items() if by == pair.first and label.grade is not None]
        assert (pair.items, pair.same) == (len(own), sum(label.grade == label.model for label in own))
    assert {one.first for one in agreement_with_model(latest)} == {"ada", "grace", "lin"}


def test_kappa_of_two_grades_is_that_of_calibrate():
    judge, human = np.array([1, 1, 0, 0, 1, 0, 1, 1], bool), np.array([1, 0, 0, 0, 1, 1, 1, 0], bool)
    pairs = list(zip(judge.tolist(), human.tolist(), strict=True))
    table = {cell: pairs.count(cell) for cell in set(pairs)}
    assert cohen_kappa(table) == pytest.approx(agree(np.arange(8), judge, human, 0.95).kappa.value)
    assert np.isnan(cohen_kappa({(1, 1): 5}))
    assert np.isnan(cohen_kappa({}))
    # by hand: agreement 0.89, by chance 0.8 · 0.8 + 0.1 · 0.05 + 0.1 · 0.15
    three = {(0, 0): 75, (0, 1): 1, (0, 2): 4, (1, 0): 5, (1, 1): 4, (1, 2): 1, (2, 0): 0, (2, 1): 0, (2, 2): 10}
    assert cohen_kappa(three) == pytest.approx((0.89 - 0.66) / 0.34)
