"""Stored runs: listed, shown, downloaded, deleted, compared, gated and diagnosed."""

from __future__ import annotations

import io

import polars as pl
import pytest

import karat

SAMPLES = [{"id": f"q{i}", "query": f"{i}?", "retrieved": ["x", "y", "z"], "gold": ["xyz"[i % 3]]} for i in range(18)]
BETTER = [sample | {"retrieved": sample["gold"]} for sample in SAMPLES]
METRICS = "recall@1,3 rr"


@pytest.fixture(scope="module")
def stored(server):
    """The id of a run named `base`, and the id of a better one named `better`."""
    bodies = {"base": SAMPLES, "better": BETTER}
    ids = {}
    for name, samples in bodies.items():
        ids[name] = server.ask("/v1/evaluate", {"samples": samples, "metrics": METRICS, "store": name}).json["id"]
    return ids


def test_a_run_by_its_id_and_by_its_name(server, stored):
    by_id, by_name = server.ask(f"/v1/runs/{stored['base']}").json, server.ask("/v1/runs/base").json
    assert by_id == by_name
    assert (by_id["id"], by_id["name"]) == (stored["base"], "base")
    assert by_id["mean"]["recall@1"] == pytest.approx(1 / 3)


def test_of_several_runs_with_one_name_the_newest(server):
    ids = [
        server.ask("/v1/evaluate", {"samples": SAMPLES, "metrics": METRICS, "store": "twice"}).json["id"]
        for _ in range(2)
    ]
    assert server.ask("/v1/runs/twice").json["id"] == ids[1]
    assert [run["id"] for run in server.ask("/v1/runs?name=twice").json["runs"]] == ids[::-1]


def test_pages(server, stored):
    whole = server.ask("/v1/runs?limit=1000").json
    found, after = [], ""
    while after is not None:
        page = server.ask(f"/v1/runs?limit=2{after and f'&after={after}'}").json
        found += page["runs"]
        after = page["next"]
    assert found == whole["runs"]
    assert len(found) == whole["total"] >= 2
    assert server.ask("/v1/runs?limit=x").status == server.ask("/v1/runs?after=nothing").status == 400


def test_files_of_others_appear_and_damaged_ones_have_an_error(server, store):
    karat.evaluate(SAMPLES, METRICS).save(store / "from-cli.parquet")
    (store / "broken.parquet").write_bytes((store / "from-cli.parquet").read_bytes()[:-50])
    (store / "table.parquet").write_bytes(_table())
    (store / ".half.parquet.tmp").write_bytes(b"PAR1")
    found = {run["name"]: run for run in server.ask("/v1/runs?limit=1000").json["runs"]}
    assert found["from-cli"]["mean"]["rr"] == pytest.approx(karat.evaluate(SAMPLES, METRICS).mean["rr"])
    assert "broken.parquet is a damaged run file" in found["broken"]["error"]
    assert "not a run file" in found["table"]["error"]
    assert not any("half" in name for name in found)
    answer = server.ask(f"/v1/runs/{found['broken']['id']}")
    assert answer.status == 422
    assert str(store) not in answer.body.decode() + str(found)


def _table():
    file = io.BytesIO()
    pl.DataFrame({"a": [1]}).write_parquet(file)
    return file.getvalue()


def test_a_file_that_was_replaced_is_read_again(server, store):
    path = store / "changing.parquet"
    karat.evaluate(SAMPLES, METRICS).save(path)
    first = server.ask("/v1/runs/changing").json
    karat.evaluate(BETTER, METRICS).save(path)
    assert server.ask("/v1/runs/changing").json["mean"] != first["mean"]


@pytest.mark.parametrize(
    "name",
    ["..", "../outside", "%2e%2e%2foutside", "..%5Coutside", "/etc/passwd", "%2Fetc%2Fpasswd", "base.parquet", "%00"],
)
def test_a_path_is_not_an_id(server, store, stored, name):
    karat.evaluate(SAMPLES, METRICS).save(store.parent / "outside.parquet")
    for path in (f"/v1/runs/{name}", f"/v1/runs/{name}/table", f"/v1/runs/{name}/items?query=q1"):
        assert server.ask(path).status in (404, 405)
    assert server.ask("/v1/compare", {"runs": [name, name]}).status == 404
    assert server.ask(f"/v1/runs/{name}", method="DELETE").status in (404, 405)
    assert (store.parent / "outside.parquet").exists()


def test_tables_in_pages_and_whole(server, stored):
    at = f"/v1/runs/{stored['base']}/table"
    first, second = server.ask(f"{at}?limit=10").json, server.ask(f"{at}?limit=10&offset=10").json
    assert (len(first["rows"]), first["total"], first["next"], second["next"]) == (10, 18, 10, None)
    whole = pl.read_csv(server.ask(at, Accept="text/csv").body).to_dicts()
    assert first["rows"] + second["rows"] == whole
    assert server.ask(f"{at}?fields=true").json["rows"][1]["query"] == "1?"


def test_the_items_of_a_query(server, stored):
    found = server.ask("/v1/runs/base/items?query=q1").json
    assert [item["id"] for item in found["retrieved"]] == ["x", "y", "z"]
    assert found["gold"] == [{"gold": "y", "grade": 1.0, "rank": 2}]
    assert (found["scores"]["rr"], found["hits"][0]["why"], found["failure"]) == (0.5, "same id", None)
    assert server.ask("/v1/runs/base/items?query=q99").status == 404
    assert server.ask("/v1/runs/base/items").status == 400


def test_compare(server, stored):
    found = server.ask("/v1/compare", {"runs": ["base", "better"]}).json
    rows = {row["metric"]: row for row in found["rows"]}
    assert found["names"] == ["base", "better"]
    assert rows["recall@1"]["difference"] == pytest.approx(2 / 3)
    assert (rows["recall@1"]["verdict"], rows["recall@1"]["winner"]) == ("better", "better")
    assert rows["recall@3"]["verdict"] == "same"
    inline = {"samples": BETTER, "metrics": METRICS}
    again = server.ask("/v1/compare", {"runs": [stored["base"], inline], "names": ["base", "better"]}).json
    assert again == found


def test_runs_that_may_not_be_compared(server, stored):
    other = {"samples": SAMPLES[:5], "metrics": METRICS}
    refused = server.ask("/v1/compare", {"runs": ["base", other]})
    assert refused.status == 400
    assert server.ask("/v1/compare", {"runs": ["base", other], "allow_mismatch": True}).json["queries"] == 5
    assert server.ask("/v1/compare", {"runs": ["base"]}).status == 400
    assert server.ask("/v1/compare", {"runs": ["base", {"metrics": "rr"}]}).status == 400


def test_gate(server, stored):
    body = {"run": "base", "rules": ["recall@1 >= 0.5", "rr no-drop"], "baseline": "better"}
    found = server.ask("/v1/gate", body).json
    assert (found["passed"], [check["verdict"] for check in found["checks"]]) == (False, ["failed", "failed"])
    assert (found["run"], found["baseline"]) == ("base", "better")
    assert server.ask("/v1/gate", body | {"run": "better", "baseline": "base"}).json["passed"] is True
    assert "<testsuite" in server.ask("/v1/gate", body, Accept="application/xml").body.decode()
    assert "❌" in server.ask("/v1/gate", body, Accept="text/markdown").body.decode()


def test_must_pass_queries_are_ids_not_a_file(server, stored, tmp_path):
    body = {"run": "base", "rules": ["rr >= 0"], "baseline": "better", "must_pass": ["q1"]}
    assert server.ask("/v1/gate", body).json["checks"][-1]["query"] == "q1"
    (tmp_path / "ids.txt").write_text("q1\n")
    assert server.ask("/v1/gate", body | {"must_pass": str(tmp_path / "ids.txt")}).status == 400


def test_diagnose(server, stored):
    found = server.ask("/v1/diagnose", {"run": "base", "k": 1}).json
    assert (found["missed"], found["causes"]) == (12, {"below k": 12})
    one = server.ask("/v1/diagnose", {"run": "base", "k": 1, "query": "q1"}).json
    assert (one["query_id"], len(one["misses"]), one["more"]["retrieved"][0]["id"]) == ("q1", 1, "x")


def test_advice_is_for_requests(server):
    missed = {"samples": [one | {"retrieved": ["xyz"[(i + 1) % 3]]} for i, one in enumerate(SAMPLES)], "metrics": "rr"}
    found = server.ask("/v1/diagnose", {"run": missed, "k": 1}).json
    sentences = found["advice"] + found["not_measured"]
    assert any('"other": "RUN"' in line for line in sentences)
    assert found["not_measured"]
    assert "not_measured" not in found["more"]
    undecided = server.ask("/v1/gate", {"run": missed, "rules": ["rr no-drop"]}).json
    assert any('then "baseline": "main"' in line for line in undecided["remarks"])
    assert not any(word in line for line in sentences + undecided["remarks"] for word in ("karat ", "--"))


@pytest.mark.parametrize(
    ("path", "body", "hint"),
    [
        ("evaluate", {"samples": SAMPLES, "metrics": "loudness"}, "GET /v1/metrics"),
        ("evaluate", {"samples": {"query": ["a"]}}, '"gold": […]'),
        ("compare", {"runs": ["base", {"samples": SAMPLES[:5], "metrics": METRICS}]}, '"allow_mismatch": true'),
        ("compare", {"runs": ["base", {"samples": SAMPLES, "metrics": "ap"}]}, "POST /v1/evaluate with the same"),
    ],
)  # fmt: skip
def test_hints_are_for_requests(server, stored, path, body, hint):
    assert server.ask(f"/v1/{path}", body).json["hint"].startswith(hint)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("gate", {"run": "base", "rules": ["rr >= 0"]}),
        ("compare", {"runs": ["base", "better"]}),
        ("diagnose", {"run": "base"}),
    ],
)
def test_settings_in_the_address_are_refused(server, stored, path, body):
    assert server.ask(f"/v1/{path}", body).status == 200
    refused = server.ask(f"/v1/{path}?fail_undecided=true", body)
    assert (refused.status, refused.json["got"]) == (400, "fail_undecided")


def test_delete(server, store):
    found = server.ask("/v1/evaluate", {"samples": SAMPLES, "metrics": METRICS, "store": "gone"}).json
    by_name = server.ask("/v1/runs/gone", method="DELETE")
    assert (by_name.status, by_name.json["hint"]) == (400, f"DELETE /v1/runs/{found['id']}")
    assert by_name.json["detail"] == "a run is deleted by its id"
    assert server.ask(f"/v1/runs/{found['id']}", method="DELETE").status == 204
    assert server.ask(f"/v1/runs/{found['id']}").status == 404
    assert not list(store.glob("gone*"))


def test_lists_of_names(server):
    names = {kind: [one["name"] for one in server.ask(f"/v1/{kind}").json["names"]] for kind in NAMES}
    assert all(name in names[kind] for kind, name in NAMES.items())


NAMES = {"metrics": "ndcg", "judges": "fuzzy", "conventions": "llamaindex"}


def test_without_a_store(locked):
    server, key = locked
    asked = {"Authorization": f"Bearer {key}"}
    assert server.ask("/v1/runs", **asked).status == 404
    answer = server.ask("/v1/evaluate", {"samples": SAMPLES, "store": True}, **asked)
    assert (answer.status, answer.json["hint"]) == (404, "karat serve --store FOLDER")
    assert server.ask("/v1/evaluate", {"samples": SAMPLES}).status == 401
