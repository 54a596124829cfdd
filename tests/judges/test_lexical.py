"""`claims(lexical)`: support by words, and its agreement with hand-made labels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import karat
from karat.judges.lexical import Words, words
from karat.judges.tokens import sentences
from support.forked import run_karat
from support.hand_labelled import agreement, samples

HEURISTIC = "claims(lexical) is a heuristic"
KARAT = str(Path(sys.executable).with_name("karat"))


def supports(claim, *contexts):
    return sorted(Words(contexts).support(claim).places)


# ---- words and sentences --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Dr. A. Smith came. He left, e.g. at 5 p.m. again.", ["Dr. A. Smith came.", "He left, e.g. at 5 p.m. again."]),
        ('It is No. 5. Yes! "Really?" no. it is not.', ["It is No. 5.", "Yes!", '"Really?"', "no.", "it is not."]),
        ("- one\n- two\n\n3. three", ["one", "two", "three"]),
        ("日本です。東京です。", ["日本です。", "東京です。"]),
        ("pi is 3.14 today", ["pi is 3.14 today"]),
        (" … \n\n --- ", []),
        ("", []),
        ("The range is 5 - 10 metres. Paris - the capital.", ["The range is 5 - 10 metres.", "Paris - the capital."]),
        ("See 4) below. Rule 2) is * new", ["See 4) below.", "Rule 2) is * new"]),
        (" - The range is 5 - 10 metres.\n  12) Paris - 3 km", ["The range is 5 - 10 metres.", "Paris - 3 km"]),
    ],
)  # fmt: skip
def test_sentences(text, wanted):
    assert sentences(text) == wanted


def test_words_are_stemmed_and_case_folded():
    assert words("The Refunds were PAID") == words("the refund were paid")
    assert words("1,000 twelve") == ("1000", "12")
    assert words("ＦＵＬＬ") == words("full")


def test_supported_and_unsupported_claims():
    context = "Refunds are paid within ten days. The warehouse is in Leeds."
    assert supports("Refunds are paid within ten days.", "nothing", context) == [1]
    assert supports("The shop opens at nine.", context) == []
    assert supports("Refunds are paid within 5 days.", context) == []
    assert supports("The warehouse is in York.", context) == []
    assert supports("The warehouse is not in Leeds.", context) == []
    assert supports("Refunds are not never paid within 10 days.", context) == [0]
    assert supports("", context) == []
    assert supports("Refunds are paid within ten days.") == []


def test_rare_words_weigh_more_than_stop_words_and_common_words():
    common = Words([f"tram line {i}" for i in "abcd"])
    assert common._weight("tram") < common._weight("a" * 9)
    assert common._weight("the") < common._weight("tram")


def test_several_contexts_may_support_a_claim_together():
    first, second = "Elin Sund designed the Harrow Bridge.", "Elin Sund trained in Copenhagen before."
    claim = "Elin Sund designed the Harrow Bridge and trained in Copenhagen."
    found = Words([first, "nothing", second]).support(claim)
    assert found.alone == frozenset()
    assert found.together == (frozenset({0, 2}),)
    run = karat.evaluate(
        [{"retrieved": [first, "nothing", second], "answer": claim}],
        "recall@1,3 precision@3", judge="claims(lexical)",
    )  # fmt: skip
    assert run.mean == {"recall@1": 0, "recall@3": 1, "precision@3": pytest.approx(2 / 3)}


# ---- the judge ------------------------------------------------------------------------------------------------------

ROWS = [
    {
        "id": "q",
        "query": "?",
        "retrieved": ["The tower is in Paris.", "It rains."],
        "answer": "The tower is in Paris. It is tall.",
    }
]


def test_every_output_says_that_it_is_a_heuristic(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    run = karat.evaluate(path, "recall@1", judge="claims")
    assert run.provenance.judge == "claims(lexical)"
    run.save(tmp_path / "run.parquet")
    run.report(tmp_path / "run.html")

    def printed(form):
        options = ["--judge", "claims(lexical)", "--format", form]
        done = run_karat("eval", path, "recall@1 context_recall", *options, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    texts = [str(run), run._repr_html_(), (tmp_path / "run.html").read_text("utf-8"), printed("table")]
    texts += [str(karat.load(tmp_path / "run.parquet")), printed("markdown")]
    assert all(HEURISTIC in text for text in texts)
    for values in (run.to_dict(), json.loads(printed("json"))):
        assert {"kind": "lexical_judge"} in values["provenance"]["notes"]


def test_no_key_no_network_and_the_same_every_time(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    runs = [karat.evaluate(samples(), "recall@1,3 ndcg@3", judge="claims(lexical, of=gold)") for _ in range(2)]
    assert runs[0].table.equals(runs[1].table)
    assert runs[0].all_hits.why == runs[1].all_hits.why


def test_the_example_runs_without_a_key(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "claims.py"
    env = {name: value for name, value in os.environ.items() if "KEY" not in name} | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", example],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert "rank 2         Refunds are paid within ten working days." in done.stdout
    assert HEURISTIC in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_threshold_may_be_set():
    row = [{"retrieved": ["the tower is tall and red"], "answer": "the tower is tall, green and old"}]
    loose, strict = (
        karat.evaluate(row, "recall", judge=f"claims(lexical, threshold={t})").mean["recall"] for t in (0.3, 0.99)
    )
    assert (loose, strict) == (1, 0)


def test_the_example_of_ragas_is_not_supported():
    """Its page says 1.0; but that Paris is the capital of France does not say where the tower is."""
    row = {"query": "Where is the Eiffel Tower located?", "retrieved": ["Paris is the capital of France."]}
    run = karat.evaluate([row | {"answer": "The Eiffel Tower is located in Paris."}], "context_recall", judge="claims")
    assert run.mean["context_recall"] == 0


# ---- chunks and responses -------------------------------------------------------------------------------------------

CHUNKS = [
    "The tower is in Paris. It was built of iron by many hands.",
    "Bees make honey.",
    "The tower is in Paris. It was built of iron by many hands.",
]


def test_chunk_metrics():
    rows = [{"retrieved": CHUNKS, "response": "The tower is in Paris.", "answer": "Something else."}]
    run = karat.evaluate(
        rows, "chunk_attribution chunk_utilization chunk_utilization@1", judge="claims(lexical, of=response)"
    )
    assert run.mean["chunk_attribution"] == pytest.approx(1 / 3), "a copy is not used again"
    assert run.mean["chunk_utilization@1"] == pytest.approx(5 / 13)
    assert run.mean["chunk_utilization"] == pytest.approx(5 / 13 / 3)
    of_used = karat.evaluate(rows, "chunk_utilization(over=used)@1,3", judge="claims(lexical, of=response)")
    assert list(of_used.mean.values()) == pytest.approx([5 / 13, 5 / 13]), "unused chunks do not count"
    nothing = [rows[0] | {"response": "The sea is deep."}]
    none = karat.evaluate(nothing, "chunk_utilization(over=used)", judge="claims(lexical, of=response)")
    assert none.mean == {"chunk_utilization(over=used)": 0}


LEAD_INS = [
    "According to the provided information,", "Based on the context,", "Based on the retrieved documents above:",
    "As stated in the text,", "As per the documentation,", "The provided context states that", "In summary,",
    "From the search results,", "According to our knowledge base,",
]  # fmt: skip
NO_LEAD_INS = ["According to the mayor,", "Based on the novel,", "In the cold winter,", "The mayor states that"]


@pytest.mark.parametrize("lead_in", LEAD_INS + NO_LEAD_INS)
def test_words_that_only_name_the_source_are_left_out(lead_in):
    row = {"retrieved": CHUNKS[:1], "response": f"{lead_in} the tower is in Paris."}
    run = karat.evaluate([row], "chunk_attribution", judge="claims(lexical, of=response)")
    assert run.mean["chunk_attribution"] == (lead_in in LEAD_INS)


def test_a_lead_in_that_the_text_has_is_found_word_for_word():
    row = {"retrieved": ["According to the report, prices rose."], "response": "According to the report, prices rose."}
    run = karat.evaluate([row | {"id": "q"}], "chunk_attribution", judge="claims(lexical, of=response)")
    assert run.hits("q")[0].why == "word for word"
    alone = {"retrieved": ["Bees."], "response": "According to the report,"}
    assert (
        karat.evaluate([alone], "chunk_attribution", judge="claims(lexical, of=response)").mean["chunk_attribution"]
        == 0
    )


def test_chunk_metrics_need_a_judge_of_responses():
    with pytest.raises(karat.BadArgument, match="response"):
        karat.evaluate(ROWS, "chunk_utilization", judge="claims(lexical)")
    with pytest.raises(karat.BadArgument, match="response"):
        karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="chunk_attribution")
    with pytest.raises(karat.InputError, match='needs a field "response"'):
        karat.evaluate(ROWS, "chunk_utilization", judge="claims(lexical, of=response)")


# ---- agreement with people -------------------------------------------------------------------------------------------


def test_the_labelled_set_is_consistent():
    rows = samples()
    claims = [claim for row in rows for claim in row["claims"]]
    kinds = Counter(claim["kind"] for claim in claims)
    assert len(claims) >= 100
    assert {"verbatim", "paraphrase", "negation", "number", "partial", "entity", "unsupported", "joint"} == set(kinds)
    assert len({claim["claim"] for claim in claims}) == len(claims)
    for row in rows:
        for claim in row["claims"]:
            assert bool(claim["contexts"]) == (claim["kind"] in {"verbatim", "paraphrase", "joint"}), claim
            assert all(1 <= n <= len(row["retrieved"]) for n in claim["contexts"])


def test_agreement_with_a_person():
    """It finds what is said in the same words and rejects what is said nowhere; the rest it often gets wrong."""
    reported = agreement()
    assert reported.kinds["verbatim"][0] == reported.kinds["verbatim"][1]
    assert reported.kinds["unsupported"][0] >= reported.kinds["unsupported"][1] - 1
    assert reported.kinds["number"][0] >= reported.kinds["number"][1] - 1
    assert reported.accuracy > 0.6
    assert reported.kappa > 0.25
    page = (Path(__file__).parents[2] / "docs" / "judges.md").read_text("utf-8")
    assert f"{reported.accuracy:.0%}".replace("%", " %") in page
    assert f"{reported.kappa:.2f}" in page


def test_a_verbatim_passage_of_many_sentences_is_supported():
    passage = "Invoices are kept for years. Owners download them. Details take a VAT number. No fee applies."
    retrieved = ["Bananas are yellow.", f"Help. {passage}  More."]
    run = karat.evaluate([{"retrieved": retrieved, "gold": [{"text": passage}]}], "recall@1,2", judge="claims(lexical)")
    assert run.mean == {"recall@1": 0.0, "recall@2": 1.0}
    assert run.hits(1)[0].why == "word for word"


@pytest.mark.parametrize(("times", "supported"), [(1, True), (3, True), (20_000, False)])
def test_lead_ins_one_after_the_other(times, supported):
    """A few are left out; many take no longer than other texts of their length."""
    claim = "According to the context, " * times + "bees make honey."
    words = Words(["Bees make honey.", "The tower is in Paris."])
    assert words.support(claim).alone == ({0} if supported else set())
