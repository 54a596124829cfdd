"""Pools: which items are one, at which ranks, what is judged already, and what is said about the rest."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

import karat
from karat.gold.pool import holes_of
from karat.report.pool import POOL_SENTENCES
from support import example


def shown(pool, query=0):
    """The items of a query: id or text, ranks, grade."""
    return [(item.id or item.text, item.ranks, item.judged) for item in pool.queries[query].items]


def one(retrieved, **more):
    return [{"id": "q1", "query": "Closed when?", "retrieved": retrieved, **more}]


# ---- which items are one --------------------------------------------------------------------------------------------


def test_every_item_within_the_depth_is_in_the_pool_once():
    found = karat.pool([{"q1": ["a", "b", "c"]}, {"q1": ["b", "d", "a"]}], depth=2)
    assert shown(found) == [("a", (1, None), None), ("b", (2, 1), None), ("d", (None, 2), None)]
    assert (found.runs, found.depth, found.size, found.judged) == (["A", "B"], 2, 3, 0)


def test_equal_texts_under_other_ids_are_one_item():
    texts = [{"id": "a", "text": "Closed  on\nSunday."}, {"id": "b", "text": "Open."}]
    others = [
        {"id": "c", "text": "Open."},
        {"id": "d", "text": "Closed on Sunday. "},
        {"id": "e", "text": "closed on sunday."},
    ]
    (query,) = karat.pool([one(texts), one(others)]).queries
    assert [(i.id, i.ranks, i.copies) for i in query.items] == [
        ("a", (1, 2), ("d",)),
        ("b", (2, 1), ("c",)),
        ("e", (None, 3), ()),
    ]
    assert query.items[0].text == "Closed  on\nSunday."


def test_empty_texts_are_no_copies():
    assert len(karat.pool([one([{"id": "a", "text": ""}, {"id": "b", "text": " "}])]).queries[0].items) == 2


def test_items_without_ids_are_found_by_text_range_or_document():
    texts = ["Closed on Sunday, all day.", "Open on Monday, from nine."]
    found = karat.pool([one(texts), one([{"id": "m", "text": "Open on  Monday, from nine."}])])
    assert shown(found) == [(texts[0], (1, None), None), ("m", (2, 1), None)]
    places = [{"doc": "d1", "start": 0, "end": 5}, {"doc": "d1", "start": 5, "end": 9}]
    assert [i.ranks for i in karat.pool([one(places), one(places[::-1])]).queries[0].items] == [(1, 2), (2, 1)]
    docs = karat.pool([one([{"doc": "d1"}, {"doc": "d2"}]), one([{"doc": "d2"}])])
    assert [(i.doc, i.ranks) for i in docs.queries[0].items] == [("d1", (1, None)), ("d2", (2, 1))]


def test_keys_do_not_depend_on_the_other_runs_or_on_the_rank():
    a, b = one([{"id": "a", "text": "x"}, {"id": "b", "text": "y"}]), one([{"id": "b", "text": "y"}, "c"][:1])
    alone = {i.id: i.key for i in karat.pool([a]).queries[0].items}
    both = {i.id: i.key for i in karat.pool([b, a], depth=5, gold={"q1": ["a"]}).queries[0].items}
    assert alone == both
    assert len(set(alone.values())) == 2


def test_the_key_of_an_item_stays_if_a_run_with_a_copy_is_added():
    first, copy = (
        one([{"id": "b", "text": "Closed."}]),
        one([{"id": "a", "text": "Closed."}, {"id": "b", "text": "Closed."}]),
    )
    (alone,), (both,) = (karat.pool(runs).queries[0].items for runs in ([first], [first, copy]))
    assert (alone.key, alone.id) == (both.key, both.id)
    assert (both.copies, both.ranks) == (("a",), (1, 1))


def test_a_copy_within_a_ranking_has_its_best_rank():
    assert shown(karat.pool([{"q1": ["a", "b", "a"]}])) == [("a", (1,), None), ("b", (2,), None)]


def test_two_texts_for_one_id_are_noted_and_the_first_is_kept():
    found = karat.pool([one([{"id": "a", "text": "first"}]), one([{"id": "a", "text": "second"}])])
    assert [i.text for i in found.queries[0].items] == ["first"]
    assert (
        "1 item has the same id and another text in a run, such as a (q1); the first text is kept." in found.remarks()
    )


def test_the_fields_of_an_item_are_completed_from_other_runs():
    found = karat.pool([{"q1": ["a"]}, one([{"id": "a", "text": "Closed.", "doc": "d"}])])
    assert [(i.text, i.doc) for i in found.queries[0].items] == [("Closed.", "d")]
    assert found.queries[0].text == "Closed when?"
    assert not found.remarks()


def test_a_text_that_a_run_cut_is_completed_by_samples():
    rows = one([{"id": "a", "text": "word " * 2000}], gold=["a"])
    run = karat.evaluate(rows, "recall@1", judge="ids")
    cut = karat.pool([run])
    assert cut.queries[0].items[0].length == 10_000
    assert any("only the beginning of the text" in line for line in cut.remarks())
    whole = karat.pool([run, [{k: v for k, v in row.items() if k != "gold"} for row in rows]])
    assert (len(whole.queries[0].items), whole.queries[0].items[0].length) == (1, None)
    assert whole.queries[0].items[0].text == "word " * 2000
    assert not whole.remarks()


def slow_pool(runs, depth):
    """Ranks by query, and by id or text, with no regard to time: two items are one if their ids or texts are equal."""
    found = defaultdict(list)
    for run, rows in enumerate(runs):
        for row in rows:
            for rank, item in enumerate(row["retrieved"][:depth], 1):
                own = found[row["id"]]
                same = next((o for o in own if item["id"] in o["ids"] or item["text"] == o["text"]), None)
                if same is None:
                    same = {"ids": set(), "text": item["text"], "ranks": [None] * len(runs)}
                    own.append(same)
                same["ids"].add(item["id"])
                same["ranks"][run] = min(filter(None, (same["ranks"][run], rank)))
    return {query: [(frozenset(o["ids"]), tuple(o["ranks"])) for o in own] for query, own in found.items()}


@pytest.mark.parametrize("seed", range(5))
def test_a_pool_is_that_of_a_slow_twin(seed):
    random = Random(seed)
    texts = {f"c{n}": f"text {n % 17}" for n in range(25)}  # some are copies of others
    runs = [
        [
            {"id": f"q{q}", "retrieved": [{"id": c, "text": texts[c]} for c in random.sample(sorted(texts), 8)]}
            for q in random.sample(range(12), 9)
        ]
        for _ in range(3)
    ]
    found = karat.pool(runs, depth=5)
    own = {q.id: [(frozenset((i.id, *i.copies)), i.ranks) for i in q.items] for q in found.queries}
    assert own == slow_pool(runs, 5)


# ---- which queries are one ------------------------------------------------------------------------------------------


def test_the_queries_of_any_run_are_pooled():
    found = karat.pool([{"q1": ["a"], "q2": ["b"]}, {"q2": ["b"], "q3": []}], names=["x", "y"])
    assert [query.id for query in found.queries] == ["q1", "q2"]
    assert found.remarks()[:3] == [
        "x: 1 of 3 queries is not in it; the other runs alone are pooled.",
        "y: 1 of 3 queries is not in it; the other runs alone are pooled.",
        "1 of 3 queries has no item in any run, and is not in the pool.",
    ]


def test_queries_without_ids_are_found_by_text():
    known, other = one(["a"]), [{"query": " Closed  when?", "retrieved": ["b"]}]
    for runs in ([known, other], [other, known]):
        assert [query.id for query in karat.pool(runs).queries] == ["q1"]
    alone = karat.pool([other, [{"query": "Closed  when?", "retrieved": ["c"]}]])
    assert [(query.id, len(query.items)) for query in alone.queries] == [(" Closed  when?", 2)]


def test_other_ids_for_the_same_texts():
    found = karat.pool([one(["a"]), [{"id": "x7", "query": "Closed when?", "retrieved": ["b"]}]], names=["a", "b"])
    assert [(query.id, len(query.items)) for query in found.queries] == [("q1", 2)]
    assert found.remarks()[0].startswith("b has other query ids than the runs before it")


def test_runs_that_share_nothing_are_noted():
    assert (
        "No query is in two of the runs: do they have the same ids?"
        in karat.pool([{"q1": ["a"]}, {"q2": ["a"]}]).remarks()
    )
    assert any("of the same collection?" in line for line in karat.pool([{"q": ["a"]}, {"q": ["b"]}]).remarks())


def test_repeats_are_united_at_the_best_rank():
    rows = [
        {"id": "q1", "query": "?", "repeat": 1, "retrieved": ["a", "b"], "gold": ["a"]},
        {"id": "q1", "query": "?", "repeat": 2, "retrieved": ["b", "c"], "gold": ["a"]},
    ]
    expected = [("a", (1,), 1.0), ("b", (1,), None), ("c", (2,), None)]
    for given in (rows, karat.evaluate(rows, "recall@2")):
        found = karat.pool([given], names=["x"])
        assert [query.id for query in found.queries] == ["q1"]
        assert shown(found) == expected
        assert "x: 2 repeats of 1 query; the items of all repeats are pooled, each at its best rank." in found.remarks()


def test_failed_queries_are_counted():
    rows = [*one(["a"], gold=["a"]), {"id": "q2", "query": "Why?", "error": "timeout", "gold": ["b"]}]
    for given in (rows, karat.evaluate(rows, "recall@2")):
        found = karat.pool([given], names=["x"])
        assert [query.id for query in found.queries] == ["q1"]
        assert "x: the retrieval of 1 of 2 queries failed; nothing of it is in the pool." in found.remarks()
        assert [known.query_id for known in found.known] == ["q1", "q2"]


def test_steps_are_one_ranking():
    rows = [{"id": "q1", "query": "?", "gold": ["c"], "steps": [{"retrieved": ["a", "b"]}, {"retrieved": ["c", "a"]}]}]
    for given in (rows, karat.evaluate(rows, "recall@5")):
        assert shown(karat.pool([given])) == [("a", (1,), None), ("b", (2,), None), ("c", (3,), 1.0)]


# ---- what is judged -------------------------------------------------------------------------------------------------

ITEMS = [
    {"id": "a", "text": "The shop is closed on Sunday. Parking is free.", "doc": "d1", "start": 0, "end": 46},
    {"id": "b", "text": "Open on Monday.", "doc": "d1", "start": 46, "end": 61},
    {"id": "c", "text": "No dogs.", "doc": "d2", "start": 0, "end": 8},
]


@pytest.mark.parametrize(
    ("gold", "grades"),
    [
        (["b", "z"], [None, 1, None]),
        ({"a": 2, "b": 0, "c": -1}, [2, 0, None]),
        ([{"text": "closed on  Sunday."}], [1, None, None]),
        ([{"text": "closed on Sunday.", "grade": 0}], [None, None, None]),
        ([{"text": "No dogs.", "grade": 0}], [None, None, 0]),
        ([{"id": "page-7", "text": "Parking is free.", "grade": 3}], [3, None, None]),
        ([{"id": "b", "text": "No dogs."}], [None, 1, 1]),
        ([{"doc": "d1", "start": 12, "end": 29}], [1, None, None]),
        ([{"doc": "d1", "start": 40, "end": 50}], [None, None, None]),
        ([{"id": "p", "doc": "d1", "start": 46, "end": 61, "grade": 2}, {"id": "b"}], [None, 2, None]),
        ([{"doc": "d1"}], [1, 1, None]),
        (["Open on Monday.", "No dogs."], [None, 1, 1]),
    ],
    ids=str,
)
def test_gold_in_any_form_judges_the_items_that_are_or_contain_it(gold, grades):
    found = karat.pool([one(ITEMS)], gold={"q1": gold})
    assert [item.judged for item in found.queries[0].items] == grades


@pytest.mark.parametrize("name", ["gold.jsonl", "qrels.txt", "gold.csv"])
def test_gold_files(tmp_path, name):
    text = {
        "gold.jsonl": '{"query": "Closed when?", "gold": [{"id": "b", "grade": 2}]}\n',
        "qrels.txt": "q1 0 b 2\nq1 0 c -1\nq9 0 x 1\n",
        "gold.csv": "query_id,doc_id,relevance\nq1,b,2\n",
    }
    (tmp_path / name).write_text(text[name])
    found = karat.pool([one(ITEMS)], gold=tmp_path / name)
    assert [item.judged for item in found.queries[0].items] == [None, 2, None]
    both = karat.pool([one(ITEMS)], gold=[tmp_path / name, str(tmp_path / name)])
    assert both.known == found.known


def test_known_gold_is_kept_as_it_was_given():
    gold = [
        {
            "id": "q1",
            "query": "Closed when?",
            "gold": [{"id": "z", "grade": 2, "group": "g", "hop": 1, "aspects": ["x"]}],
        },
        {"id": "q8", "query": "Who?", "gold": [], "answerable": False},
        {"id": "q9", "query": "Why?", "gold": ["y"]},
    ]
    found = karat.pool([one(ITEMS)], gold=gold)
    assert [(k.query_id, k.gold, k.answerable) for k in found.known] == [
        ("q1", [{"id": "z", "group": "g", "hop": 1, "aspects": ["x"], "grade": 2.0}], None),
        ("q8", [], False),
        ("q9", [{"id": "y", "grade": 1.0}], None),
    ]
    assert [query.id for query in found.queries] == ["q1"]
    assert (
        "2 of 2 known gold items are in no item of the pool; they are kept for the gold that is written."
        in found.remarks()
    )


def test_the_text_of_a_query_is_that_of_the_gold_if_no_run_has_it():
    gold = [{"id": "q1", "query": "Closed when?", "gold": ["b"]}, {"id": "q2", "query": "Who?", "gold": ["c"]}]
    found = karat.pool([{"q1": ["a"], "q2": ["c"]}], gold=gold)
    assert [query.text for query in found.queries] == ["Closed when?", "Who?"]
    assert not any("which people need to label: give the field" in line for line in found.remarks())


def test_another_text_of_a_query_in_the_gold_is_noted():
    found = karat.pool([one(["a"])], gold=[{"id": "q1", "query": "Open when?", "gold": ["a"]}])
    assert "1 query has another text in the gold, such as q1: is it the gold of these queries?" in found.remarks()


def test_a_run_judges_as_its_own_judge_did():
    rows = one([{"id": "a", "text": "The shop is shut on Sunday"}, {"id": "b", "text": "No dogs"}],
               gold=[{"text": "The shop is shut on Sundays"}, {"text": "No cats"}])  # fmt: skip
    found = karat.pool([karat.evaluate(rows, "recall@2", judge="fuzzy(0.9)")])
    assert [item.judged for item in found.queries[0].items] == [1, None]
    assert [len(known.gold) for known in found.known] == [2]


def test_the_same_gold_in_several_runs_is_known_once():
    a, b = example.run("bm25"), example.run("first-words")
    found = karat.pool([a, b])
    assert found.known == karat.pool([a]).known
    assert sum(len(known.gold) for known in found.known) == sum(len(a.gold(query)) for query in a.ids)


def test_two_grades_are_noted_and_the_file_counts():
    found = karat.pool([karat.evaluate(one(["a"], gold={"a": 1}), "recall@1")], gold={"q1": {"a": 0}})
    assert shown(found) == [("a", (1,), 0.0)]
    assert [known.gold for known in found.known] == [[{"id": "a", "grade": 0.0}]]
    assert any(line.startswith("1 item has two grades, such as a (q1);") for line in found.remarks())


def test_the_grades_of_a_model_are_no_gold():
    rows = one([{"id": "a", "text": "It is closed when it rains."}, {"id": "b", "text": "No dogs."}])
    found = karat.pool([karat.evaluate(rows, "precision@2", judge="relevance(lexical)")])
    assert [(item.judged, item.model) for item in found.queries[0].items] == [(None, 3.0), (None, 0.0)]
    assert found.known == []


def test_holes_are_what_a_new_run_brings(tmp_path):
    gold = tmp_path / "gold.jsonl"
    gold.write_text(
        '{"id": "q1", "query": "Closed when?", "gold": ["b", {"id": "z", "grade": 0}]}\n{"id": "q2", "gold": ["a"]}'
    )
    new = [*one(ITEMS), {"id": "q2", "query": "?", "retrieved": [ITEMS[0]]}]
    found = holes_of(new, gold)
    assert [[(q.id, i.id) for i in q.items] for q in found.queries] == [[("q1", "a"), ("q1", "c")]]
    assert [len(known.gold) for known in found.known] == [2, 1]
    assert "There is no item to label." in str(holes_of({"q1": ["b"]}, gold))


# ---- refusals and forms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("runs", "settings", "problem"),
    [
        ([], {}, "expected a list of runs"),
        ("a.parquet", {}, "expected a list of runs"),
        ([3], {}, "expected a run, the path of a file, or results by query"),
        ([["a", "b"], ["c"]], {"depth": 0}, "depth must be a whole number"),
        ([[{"retrieved": ["a"]}]], {}, 'neither an "id" nor a "query"'),
        ([one(["a"]), [{"id": "q1", "query": "Open when?", "retrieved": ["a"]}]], {}, "has another text in B"),
        ([{"q1": ["a"]}], {"gold": [["a"]]}, 'gold of queries that have neither an "id" nor a "query"'),
        ([{"q1": ["a"]}], {"fields": {"gold": "nothing"}}, "nothing"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_refusals(runs, settings, problem):
    with pytest.raises(karat.KaratError, match=problem):
        karat.pool(runs, **settings)


def test_a_run_without_items_is_refused():
    run = karat.evaluate(one(["a"], gold=["a"]), "recall@1").replace(items=None)
    with pytest.raises(karat.BadArgument, match="x stores no items, so it cannot be pooled"):
        karat.pool([run], names=["x"])


def test_the_forms_of_a_pool():
    found = karat.pool([example.run("bm25"), example.run("first-words")], names=["bm25", "a|b"])
    text = str(found)
    assert "462 different items, 14.9 per query; 146 (32 %) were retrieved by both runs." in text
    assert "36 (8 %) are judged already, 426 are not." in text
    assert "| `a\\|b` |" in found.to_markdown()
    assert "<table" in found._repr_html_()
    values = json.loads(json.dumps(found.to_dict()))
    assert (values["items"], values["judged"], values["shared"], values["queries"]) == (462, 36, 146, 31)
    assert values["runs"][0] == {"name": "bm25", "queries": 31, "items": 310, "alone": 164, "unjudged": 274}
    assert [share.unjudged for share in found.shares] == [274, 273]


def test_every_kind_of_note_has_a_sentence():
    folder = Path(karat.__file__).parent / "gold"
    text = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    kinds = {*re.findall(r'"(pool_\w+)"', text)} - {"pool_file"}
    assert kinds == POOL_SENTENCES.keys()
