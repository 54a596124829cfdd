"""Files larger than memory: the run of the pieces is that of the whole, in every form, query by query."""

from __future__ import annotations

import gzip
import json
from random import Random

import polars as pl
import pyarrow as pa
import pytest

import karat
from karat.conventions import CONVENTIONS
from karat.scale import large_files as streaming

METRICS = "recall@1,3,10 precision@3 ndcg@5 rr ap bpref judged@5 hit@2"
DOCS = [f"d{number}" for number in range(40)]


def make(seed, queries=30, depth=25):
    """A run with ties, copies of items, queries without gold, and gold without a ranking."""
    random = Random(seed)
    rows, gold = [], []
    for number in range(queries):
        query = f"q{number}"
        rows += [
            {"query_id": query, "doc_id": random.choice(DOCS), "score": random.choice((0.0, 0.5, 1.5, 2.25))}
            for _ in range(random.randrange(1, depth))
        ]
        if number % 7:
            wanted = random.sample(DOCS, random.randrange(1, 6))
            gold += [{"query_id": query, "doc_id": doc, "grade": random.randrange(4)} for doc in wanted]
    gold += [{"query_id": "nowhere", "doc_id": "d1", "grade": 1}]
    random.shuffle(gold)
    return pl.DataFrame(rows), pl.DataFrame(gold)


RUN, GOLD = make(3)
SCATTERED = RUN.sample(fraction=1, shuffle=True, seed=5)


def same(streamed, whole):
    """Everything that a run says, but for the items, is the same."""
    assert streamed._items.func is streaming._items  # in batches
    assert streamed.table.equals(whole.table)
    assert streamed.to_dict() == whole.to_dict()
    assert streamed.ids == whole.ids
    assert streamed.gold_hash == whole.gold_hash
    assert streamed.undefined == whole.undefined
    assert [streamed.hits(query) for query in whole.ids] == [whole.hits(query) for query in whole.ids]
    assert [streamed.gold(query) for query in whole.ids] == [whole.gold(query) for query in whole.ids]
    assert (streamed.all_hits.depth == whole.all_hits.depth).all()
    assert streamed.meta == whole.meta
    assert streamed.query == whole.query


def items_of(run):
    """What is kept of each query, but for whether gold was seen elsewhere, which nobody looks at in large files."""
    kept = [run.items(query) for query in run.ids]
    return [(items.retrieved, [gold._replace(seen=None) for gold in items.gold]) for items in kept]


def both(run, tiny, gold=GOLD, metrics=METRICS, **options):
    """Evaluate in pieces and as a whole."""
    streamed = karat.evaluate(run, metrics, gold=gold, memory=tiny, **options)
    whole = karat.evaluate(run, metrics, gold=gold, **options)
    same(streamed, whole)
    return streamed, whole


def trec(frame, gap=" "):
    lines = [gap.join((q, "Q0", d, "1", repr(s), "tag")) for q, d, s in frame.iter_rows()]
    return "\n".join(lines) + "\n"


def write(folder, name, frame):
    path = folder / name
    text = None
    if ".parquet" in name:
        frame.write_parquet(path, row_group_size=13)
    elif name.endswith((".arrow", ".feather")):
        frame.write_ipc(path)
    elif ".csv" in name:
        text = frame.write_csv()
    elif ".jsonl" in name:
        text = "".join(json.dumps(row) + "\n" for row in frame.to_dicts())
    else:
        text = trec(frame, "  " if "wide" in name else "\t" if "tab" in name else " ")
    if text is not None and name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    elif text is not None and name.endswith(".zst"):
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(text.encode())
    elif text is not None:
        path.write_text(text)
    return path


FORMS = [
    "run.parquet", "run.arrow", "run.feather", "run.csv", "run.csv.gz", "run.csv.zst", "run.jsonl", "run.jsonl.gz",
    "run.jsonl.zst", "run.trec", "wide.trec", "tab.run", "run.trec.gz", "wide.trec.zst",
]  # fmt: skip


@pytest.mark.parametrize("frame", [RUN, SCATTERED], ids=["together", "scattered"])
@pytest.mark.parametrize("name", FORMS)
def test_every_form(tmp_path, tiny, name, frame):
    streamed, whole = both(write(tmp_path, name, frame), tiny)
    assert items_of(streamed) == items_of(whole)


FEW = pl.col("query_id").is_in([f"q{number}" for number in range(12)])


@pytest.mark.parametrize("frame", [RUN.filter(FEW), SCATTERED.filter(FEW)], ids=["together", "scattered"])
@pytest.mark.parametrize("convention", [*CONVENTIONS, "trec_eval(unjudged=removed)"])
def test_every_convention(tmp_path, tiny, convention, frame):
    metrics = "recall@3 precision@3 hit@3 ndcg@5 rr ap"
    if convention in ("sklearn", "torchmetrics"):
        frame = frame.unique(["query_id", "doc_id"], maintain_order=True)
    path, gold = write(tmp_path, "run.parquet", frame), GOLD.filter(FEW)
    streamed, whole = both(path, tiny, gold, metrics, convention=convention)
    assert items_of(streamed) == items_of(whole)


def test_ids_that_are_the_queries_own(tmp_path, tiny):
    own = pl.concat([RUN, pl.DataFrame({"query_id": ["q1"], "doc_id": ["q1"], "score": [9.0]})])
    both(write(tmp_path, "run.parquet", own), tiny, convention="beir")


@pytest.mark.parametrize("seed", range(5))
def test_ranks_in_place_of_scores(tmp_path, tiny, seed):
    run, gold = make(seed)
    ranked = run.with_columns(rank=pl.int_range(pl.len()).shuffle(seed=seed).over("query_id")).drop("score")
    both(write(tmp_path, "run.parquet", ranked), tiny, gold)
    both(write(tmp_path, "by_row.parquet", ranked.drop("rank")), tiny, gold)


def test_ids_that_are_numbers(tmp_path, tiny):
    numbers = RUN.with_columns(pl.col("query_id", "doc_id").str.slice(1).cast(pl.Int64))
    gold = GOLD.filter(pl.col("query_id") != "nowhere")
    gold = gold.with_columns(pl.col("query_id", "doc_id").str.slice(1).cast(pl.Float64))
    for order in (numbers, numbers.sample(fraction=1, shuffle=True, seed=1)):
        both(write(tmp_path, "run.parquet", order), tiny, gold)


@pytest.mark.parametrize("frame", [RUN, SCATTERED], ids=["together", "scattered"])
def test_rows_that_say_more_of_an_item(tmp_path, tiny, frame):
    frame = frame.with_columns(text=pl.format("The text of {}", "doc_id"))
    streamed, whole = both(write(tmp_path, "run.parquet", frame), tiny, metrics="recall@3 ndcg@5 recall@9t")
    assert items_of(streamed) == items_of(whole)


def test_a_query_longer_than_a_piece(tmp_path, tiny):
    long = pl.DataFrame({"query_id": ["q1"] * 500, "doc_id": [f"d{i}" for i in range(500)], "score": [1.0] * 500})
    both(write(tmp_path, "run.parquet", pl.concat([RUN[:9].filter(pl.col("query_id") != "q1"), long])), tiny)


@pytest.mark.parametrize("judge", ["auto", "ids", "exact", "text"])
def test_judges(tmp_path, tiny, judge):
    both(write(tmp_path, "run.parquet", RUN), tiny, judge=judge)


def nested_rows(*, ids=True):
    gold = dict(GOLD.group_by("query_id").agg(pl.struct("doc_id", "grade")).iter_rows())
    rows = []
    for (query,), own in RUN.group_by("query_id", maintain_order=True):
        row = {
            "query": f"What about {query}?",
            "retrieved": [{"id": d, "text": f"The text of {d}", "score": s} for _, d, s in own.iter_rows()],
            "gold": [{"id": item["doc_id"], "grade": item["grade"]} for item in gold.get(query, [])],
            "topic": "even" if int(query[1:]) % 2 == 0 else "odd",
        }
        rows.append({"id": query, **row} if ids else row)
    return rows


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("name", ["samples.jsonl", "samples.parquet", "samples.jsonl.gz"])
def test_samples_with_both_sides(tmp_path, tiny, name, ids):
    rows = nested_rows(ids=ids)
    path = tmp_path / name
    if name.endswith(".parquet"):
        pl.DataFrame(rows).write_parquet(path)
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    streamed, whole = both(path, tiny, gold=None, metrics=METRICS + " recall@12t")
    assert items_of(streamed) == items_of(whole)
    assert streamed.by("topic").table.equals(whole.by("topic").table)


def test_rankings_by_query_with_gold_beside_them(tmp_path, tiny):
    rows = [{k: v for k, v in row.items() if k != "gold"} for row in nested_rows()]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    both(path, tiny)
    gold = {row["query"]: {item["id"]: item["grade"] for item in row["gold"]} for row in nested_rows()}
    without_ids = [{"query": row["query"], "retrieved": row["retrieved"]} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in without_ids))
    both(path, tiny, gold=gold)


def test_rankings_and_gold_by_position(tmp_path, tiny):
    rows = nested_rows(ids=False)
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps({"retrieved": row["retrieved"]}) + "\n" for row in rows))
    both(path, tiny, gold=[row["gold"] for row in rows])
    with pytest.raises(karat.InputError, match="30 rankings, but gold for 29"):
        karat.evaluate(path, METRICS, gold=[row["gold"] for row in rows[1:]], memory=tiny)


@pytest.mark.parametrize("kind", ["folder", "pattern", "hive"])
@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv", "trec"])
def test_many_files(tmp_path, tiny, kind, ending):
    if kind == "hive" and ending != "parquet":
        pytest.skip("only tables have partitions")
    folder = tmp_path / "run"
    for number, rows in enumerate(SCATTERED.iter_slices(100)):
        part = folder / f"day={number}" if kind == "hive" else folder
        part.mkdir(parents=True, exist_ok=True)
        write(part, f"part-{number}.{ending}", rows)
    (folder / "_SUCCESS").touch()
    path = f"{folder}/*.{ending}" if kind == "pattern" else folder
    streamed, _ = both(path, tiny)
    assert streamed.table.equals(karat.evaluate(SCATTERED, METRICS, gold=GOLD).table)


def test_partitions_by_query_whose_id_is_in_the_path(tmp_path, tiny):
    for (query,), rows in RUN.group_by("query_id", maintain_order=True):
        part = tmp_path / f"query_id={query}"
        part.mkdir()
        rows.drop("query_id").write_parquet(part / "rows.parquet")
    streamed, _ = both(tmp_path, tiny)
    assert streamed.table.equals(karat.evaluate(RUN, METRICS, gold=GOLD).table)


@pytest.mark.parametrize("memory", ["256MiB", "1GiB", 10**9, "0.5 gb"])
def test_what_fits_is_read_whole(tmp_path, memory):
    assert (
        karat.evaluate(write(tmp_path, "run.parquet", RUN), METRICS, gold=GOLD, memory=memory)._items.func
        is not streaming._items
    )


@pytest.mark.parametrize("memory", ["much", "1XB", 5, 2.5, True, "100 MB"])
def test_memory_that_is_none(tmp_path, memory):
    with pytest.raises(karat.BadArgument, match="memory must be"):
        karat.evaluate(write(tmp_path, "run.parquet", RUN), METRICS, gold=GOLD, memory=memory)


def test_saved_and_compared(tmp_path, tiny):
    path = write(tmp_path, "run.parquet", SCATTERED)
    streamed, whole = both(path, tiny)
    streamed.save(tmp_path / "streamed.parquet")
    whole.save(tmp_path / "whole.parquet")
    same_again = karat.load(tmp_path / "streamed.parquet")
    assert same_again.table.equals(whole.table)
    assert items_of(same_again) == items_of(karat.load(tmp_path / "whole.parquet"))
    compared = [json.dumps(karat.compare(whole, other).to_dict()) for other in (streamed, whole)]
    assert compared[0] == compared[1]


def test_a_file_that_changed_before_its_items_are_kept(tmp_path, tiny):
    path = write(tmp_path, "run.parquet", RUN)
    run = karat.evaluate(path, METRICS, gold=GOLD, memory=tiny)
    RUN[:50].write_parquet(path)
    with pytest.raises(karat.InputError, match="changed since"):
        run.items("q1")
