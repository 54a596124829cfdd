"""The judge `claims` with a model: one call per query, scores at every rank, failures are missing."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import karat
from karat.errors import BadArgument, InputError, Unavailable, UnknownName
from karat.judges.attribution import calls_for, max_tokens
from karat.judges.support import NONE, Support, unite, vote
from support.scripted import Scripted, framed, script
from support.server import Act, Server
from support.terminal import Terminal

RAIN = "rain fell in Leeds all day"
MUSEUM = "the museum is closed on Mondays"
TRAM = "the tram goes to the airport"
SAMPLES = [
    {
        "id": "q1",
        "query": "What happened?",
        "retrieved": [TRAM, RAIN, MUSEUM],
        "answer": f"{RAIN}. {MUSEUM}. it snowed.",
    },
    {"id": "q2", "query": "Where does it go?", "retrieved": [TRAM], "answer": f"{TRAM}."},
]
METRICS = "recall@1,2,3 recall_all@3 precision@3 ndcg@3 context_recall context_precision"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def judged(samples=SAMPLES, metrics=METRICS, change=lambda kind, reported: reported, **settings):
    model = Scripted(change)
    judge = karat.Claims(model, **{"cache": False, **settings}).with_settings(backoff=0.0)
    return karat.evaluate(samples, metrics, judge=judge), model


# ---- what comes of one call -----------------------------------------------------------------------------------------


def test_one_call_scores_every_k():
    run, model = judged()
    first = {name: values[0] for name, values in run.scores.items()}
    assert first == pytest.approx({
        "recall@1": 0, "recall@2": 1 / 3, "recall@3": 2 / 3, "recall_all@3": 0, "precision@3": 2 / 3,
        "ndcg@3": (1 / np.log2(3) + 1 / 2) / (1 + 1 / np.log2(3) + 1 / 2),
        "context_recall": 2 / 3, "context_precision": (1 / 2 + 2 / 3) / 2,
    })  # fmt: skip
    assert model.kinds() == ["extract", "attribute", "extract", "attribute"]
    assert run.hits("q1") == [(2, RAIN, 1.0, "because [2]"), (3, MUSEUM, 1.0, "because [3]")]
    assert [item.rank for item in run.gold("q1")] == [2, 3, None]
    assert run.items("q1").gold[0].text == RAIN


def test_the_real_client_over_http():
    with Server(script) as server:
        judge = karat.Claims("m", base_url=server.url)
        assert judge.name == f"claims(m, base_url={server.url})"
        run = karat.evaluate(SAMPLES, METRICS, judge=judge)
        assert run.mean["recall@3"] == pytest.approx((2 / 3 + 1) / 2)
        assert server.count == 4
        assert judge.spent[:2] == (4, 0)
        again = karat.evaluate(SAMPLES, METRICS, judge=judge.name)
        assert server.count == 4, "a second run asks nothing"
        assert again.table.equals(run.table)
        assert again.provenance == run.provenance


def test_two_retrievers_are_judged_on_the_same_claims():
    with Server(script) as server:
        one, other = (
            karat.evaluate(
                [{**sample, "retrieved": sample["retrieved"][::step]} for sample in SAMPLES],
                "recall@3", judge=f"claims(m, base_url={server.url})",
            )
            for step in (1, -1)
        )  # fmt: skip
    kinds = ["answer" in framed(call.text) for call in server.calls]
    assert sum(kinds) == 2, "claims are extracted once for each answer"
    assert one.gold_hash == other.gold_hash
    assert karat.compare(one, other) is not None


def test_split_by_sentences_needs_one_call():
    run, model = judged(split="sentences")
    assert model.kinds() == ["attribute", "attribute"]
    assert [item.gold for item in run.gold("q2")] == [f"{TRAM}."]


def test_claims_may_be_supplied():
    gold = [{"text": RAIN, "grade": 2}, {"text": MUSEUM, "group": "m"}, {"text": "it snowed", "group": "m"}]
    sample = {"retrieved": [TRAM, MUSEUM, RAIN], "gold": gold}
    run, model = judged([sample], "recall@2,3 ndcg@3")
    assert model.kinds() == ["attribute"]
    assert run.mean["recall@2"] == 0.5
    assert run.mean["recall@3"] == 1
    assert run.gold(1)[1] == (f"{MUSEUM} | it snowed", 1.0, 2)
    both = [{**sample, "answer": f"{TRAM}."}]
    assert [item.gold for item in judged(both, "recall")[0].gold(1)] == [TRAM]
    assert len(judged(both, "recall", of="gold")[0].gold(1)) == 2
    assert "the gold items are not used (of=gold uses their texts as claims)" in str(judged(both, "recall")[0])


def test_a_copy_is_sent_once_and_scores_nothing():
    sample = {"retrieved": [RAIN, RAIN, MUSEUM], "answer": f"{RAIN}."}
    run, model = judged([sample], "precision@3 context_precision")
    assert [label for label in framed(model.sent[-1][0][-1]["content"]) if "passage" in label] == [
        "passage 1",
        "passage 2",
    ]
    assert run.mean["precision@3"] == pytest.approx(1 / 3)
    assert [hit.rank for hit in run.hits(1)] == [1, 2]


def test_joint_support_counts_at_the_last_rank():
    def joint(kind, reported):
        for claim in reported["claims"] if kind == "attribute" else ():
            claim |= {"verdict": 1, "passages": [1, 3], "together": 1}
        return reported

    run, _ = judged([SAMPLES[0]], "recall@1,2,3 precision@3", joint)
    assert [run.mean[f"recall@{k}"] for k in (1, 2, 3)] == [0, 0, 1]
    assert run.mean["precision@3"] == pytest.approx(2 / 3)


def test_a_query_without_an_answer_is_undefined_and_no_answers_are_an_error():
    rows = [
        *SAMPLES,
        {"id": "q3", "query": "?", "retrieved": [TRAM], "answer": None},
        {"id": "q4", "retrieved": [], "answer": "x."},
    ]
    run, model = judged(rows, "recall")
    assert run.undefined == {"recall": 1}
    assert np.isnan(run.scores["recall"][2])
    assert run.scores["recall"][3] == 0
    assert run.all_hits.failed == {}
    assert len(model.sent) == 5, "no call if nothing was retrieved, or if there are no claims"
    assert "1 query has none" in str(run)
    with pytest.raises(InputError, match=r'needs a field "answer", but no query has one, such as "q9"'):
        judged([{"id": "q9", "retrieved": [TRAM]}], "recall")
    with pytest.raises(InputError, match="needs the texts of retrieved items"):
        judged([{"retrieved": [{"id": "a"}], "answer": "x."}], "recall")
    with pytest.raises(InputError, match="they have no texts"):
        judged([{"retrieved": [TRAM], "gold": [{"id": "a"}]}], "recall", of="gold")


# ---- answers that break the rules -----------------------------------------------------------------------------------


def spoiled(**change):
    def spoil(kind, reported):
        if kind == "attribute":
            reported["claims"][0] |= change
        return reported

    return spoil


BROKEN = {
    "a passage that is not there": (spoiled(verdict=1, passages=[4]), "claim 1 names passage 4; there are 3"),
    "passage 0": (spoiled(verdict=1, passages=[0]), "claim 1 names passage 0"),
    "a verdict of 2": (spoiled(verdict=2, passages=[1]), "verdict"),
    "a verdict that is true": (spoiled(verdict=True, passages=[1]), "verdict"),
    "supported by nothing": (spoiled(verdict=1, passages=[]), "claim 1 has the verdict 1, but 0 passages"),
    "unsupported by something": (spoiled(verdict=0, passages=[1]), "claim 1 has the verdict 0, but 1 passages"),
    "a claim that is not there": (spoiled(claim=9), "there is no claim 9"),
    "a claim twice": (spoiled(claim=2), "claim 2 is judged twice"),
    "a claim too few": (lambda k, t: {"claims": t["claims"][:-1]} if k == "attribute" else t, "claim 3 is not judged"),
    "a field too many": (spoiled(score=1), "fields that the schema does not allow"),
    "a text in the place of a list": (spoiled(passages="1"), "passages"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_missing_and_never_0(name):
    change, cause = BROKEN[name]
    run, _ = judged([SAMPLES[0]], "recall@3", change, concurrency=1)
    assert cause in run.all_hits.failed[0]
    assert np.isnan(run.scores["recall@3"][0])


def test_a_failure_affects_no_other_sample_and_keeps_the_gold():
    def scripted(call):
        failing = "What happened?" in call.text and "passage 1" in framed(call.text)
        return Act(status=400, content="too long") if failing else script(call)

    with Server(scripted) as server:
        run = karat.evaluate(SAMPLES, "recall@3", judge=karat.Claims("m", base_url=server.url))
        good = karat.evaluate(SAMPLES, "recall@3", judge=karat.Claims("n", base_url=server.url))
    assert list(run.all_hits.failed) == [0]
    assert "400" in run.all_hits.failed[0]
    assert run.mean == {"recall@3": 1.0}
    assert run.gold_hash == good.gold_hash


def test_queries_fail_if_claims_cannot_be_extracted():
    with Server(
        lambda call: Act(status=400, content="no") if "answer" in framed(call.text) else script(call)
    ) as server:
        run = karat.evaluate(SAMPLES, "recall@3", judge=karat.Claims("m", base_url=server.url))
    assert run.all_hits.failed[1].startswith("its claims are not known: ")
    assert np.isnan(run.scores["recall@3"]).all()


def test_a_budget_leaves_the_rest_missing():
    run, model = judged(max_calls=3, concurrency=1)
    assert len(model.sent) == 2, "no call is wasted on a query that cannot be completed"
    assert run.failures == {"q1": "not called: the budget of 3 calls is used up (1 left, 2 needed)"}
    assert run.scores["recall@3"][1] == 1


# ---- long inputs ----------------------------------------------------------------------------------------------------


def test_long_inputs_are_split_and_nothing_is_left_out():
    needle = "the needle lies here"
    long = " ".join(f"Sentence {i} says nothing at all." for i in range(300))
    chunks = [TRAM, f"{long} {needle}. {long}", *(f"{long} {i}" for i in range(5)), MUSEUM]
    run, model = judged(
        [{"retrieved": chunks, "answer": f"{needle}. {MUSEUM}. {TRAM}."}], "recall@1,2,8", per_call=2000
    )
    assert len(model.sent) > 10
    assert [item.rank for item in run.gold(1)] == [2, 8, 1]
    shown = "".join(messages[-1]["content"] for messages, _ in model.sent[1:])
    assert all(shown.count(f"Sentence {i} says") == 7 for i in range(300))
    for messages, _ in model.sent[1:]:
        assert sum(map(max_tokens, framed(messages[-1]["content"]).values())) <= 2000


def test_every_claim_meets_every_passage():
    claims = [f"claim {i} " + "x" * 300 for i in range(20)]
    passages = ["p" * n for n in (10, 5000, 100, 900)]
    calls = calls_for(claims, passages, 1000)
    met = {(claim, piece.place) for call in calls for claim in call.claims for piece in call.pieces}
    assert met == {(c, p) for c in range(20) for p in range(4)}
    for claim in range(20):
        own = [call for call in calls if claim in call.claims]
        shown = ["".join(piece.text for call in own for piece in call.pieces if piece.place == p) for p in range(4)]
        assert [text.replace(" ", "") for text in shown] == passages
    assert all(
        sum(max_tokens(claims[c]) for c in call.claims) + sum(max_tokens(piece.text) for piece in call.pieces) <= 1000
        for call in calls
    )


# ---- repeats --------------------------------------------------------------------------------------------------------


def test_repeats_vote_and_report_their_agreement():
    count = iter(range(100))

    def fickle(kind, reported):
        if kind == "attribute" and next(count) == 1:
            for claim in reported["claims"]:
                claim |= {"verdict": 1, "passages": [1]}
        return reported

    run, model = judged([SAMPLES[0]], "recall@1,3", fickle, repeats=3, split="sentences", concurrency=1)
    assert len(model.sent) == 3
    assert run.mean == {"recall@1": 0, "recall@3": pytest.approx(2 / 3)}
    wanted = karat.stats.agreement.alpha([[1, 1, 1], [1, 1, 1], [0, 1, 0]])
    agreement = f"The agreement of the repeats (Krippendorff's alpha) is {wanted:.2f}."
    assert f"Judged 3 times, majority vote. {agreement}" in str(run)
    assert "repeats=3" in run.provenance.judge


def test_each_repeat_is_requested_and_the_first_is_shared():
    with Server(script) as server:
        karat.evaluate(SAMPLES, "recall", judge=karat.Claims("m", base_url=server.url))
        assert server.count == 4
        karat.evaluate(SAMPLES, "recall", judge=karat.Claims("m", base_url=server.url, repeats=3))
        assert server.count == 8


def test_votes():
    one, other, both = Support(frozenset({0})), Support(frozenset({1})), Support(frozenset({0, 1}))
    joint = Support(frozenset(), (frozenset({0, 1}),))
    assert vote([one, NONE, NONE]) == NONE
    assert vote([one, NONE]) == NONE
    assert vote([one, other, both]).alone == {0, 1}
    assert vote([one, one, other]).alone == {0}
    assert vote([one, other, Support(frozenset({2}))]).alone == {0, 1, 2}, "all agree that it is supported"
    assert vote([joint, joint, one]).together == (frozenset({0, 1}),)
    assert vote([joint, both, both]).alone == {0, 1}
    assert unite([NONE, one, joint]) == Support(frozenset({0}), (frozenset({0, 1}),))
    assert joint.moved([5, 5]).alone == {5}


# ---- names and settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "claims(lexical)", "claims(lexical, of=response)", "claims(lexical, threshold=0.5)", "claims(gpt-4o-mini)",
        "claims(gpt-4o-mini, of=response, split=sentences, base_url=http://127.0.0.1:8000/v1, repeats=3)",
        "claims('openai(gpt-4o-mini, temperature=1)')", "relevance(gpt-4o-mini, to=answer, repeats=3)",
    ],
)  # fmt: skip
def test_names_read_back(name):
    assert karat.judges.find_judge(name).name == name


def test_invalid_settings():
    with pytest.raises(UnknownName, match="Did you mean answer"):
        karat.Claims(of="anwer")
    for bad in ({"repeats": 0}, {"repeats": True}, {"per_call": 10}, {"threshold": 2}):
        with pytest.raises(BadArgument):
            karat.Claims("m", **bad)
    with pytest.raises(BadArgument, match="calls no model"):
        karat.Claims(repeats=3)
    with pytest.raises(BadArgument, match="Did you mean temperature"):
        karat.Claims("openai(m, temprature=0)")
    with pytest.raises(BadArgument, match="keys come from the environment") as reported:
        karat.Claims("openai(m, api_key=sk-0123456789)")
    assert "sk-0123456789" not in str(reported.value)
    with pytest.raises(BadArgument, match="must be only an address"):
        karat.Relevance("m", base_url="http://me:secret@127.0.0.1:1")
    with pytest.raises(BadArgument, match="given by its name"):
        judged(base_url="http://127.0.0.1:1")


def test_creating_a_judge_calls_no_model(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert karat.Claims("gpt-4o-mini").name == "claims(gpt-4o-mini)"


def test_inside_a_running_loop():
    async def notebook():
        return judged()[0]

    assert asyncio.run(notebook()).mean == judged()[0].mean


def test_the_estimate_covers_everything_and_is_confirmed_once(monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal("no\nyes\n"))
    monkeypatch.setattr("sys.stderr", shown := Terminal())
    judge = karat.Claims(model := Scripted(), cache=False, confirm=True)
    with pytest.raises(Unavailable, match="cancelled: no model was called"):
        karat.evaluate(SAMPLES, "recall", judge=judge)
    assert model.sent == []
    karat.evaluate(SAMPLES, "recall", judge=judge)
    reported = shown.getvalue()
    assert reported.count("Go on?") == 2, "once for each evaluation, not for each of its two requests"
    assert reported.count("4 calls needed") == 2


def test_after_an_interruption_nothing_more_is_requested():
    judge = karat.Claims(model := Scripted(), cache=False)
    judge.interrupted = True
    run = karat.evaluate(SAMPLES, "recall", judge=judge)
    assert model.sent == []
    assert set(run.all_hits.failed.values()) == {"interrupted"}
