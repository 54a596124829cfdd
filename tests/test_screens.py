"""Names, examples, hints and intervals on the screens of the command line, as a user reads them."""

from __future__ import annotations

import json

import polars as pl
import pytest

import karat
from karat._internal.display import color, columns, cut_name, span
from karat.cli import all_commands, main
from karat.judges.protocol import all_judges
from support.compared import run
from support.pseudo_terminal import STYLE, show

LONG = "a_very_long_run_name_for_the_retriever_of_the_documents"
ITEM = "state_of_the_union_address_of_the_year-{}-12000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs with long names, a run of four queries, and samples with long ids."""
    folder = tmp_path_factory.mktemp("screens")
    for i, found in enumerate((0.3, 0.9)):
        run(found, seed=i).save(folder / f"{LONG}_{i}.parquet")
        run(found, seed=i, queries=4).save(folder / f"four_{i}.parquet")
    items = [ITEM.format(i) for i in range(9)]
    samples = [{"id": f"{LONG}-{i}", "query": "where?", "retrieved": items, "gold": [items[i]]} for i in (1, 8)]
    (folder / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)))
    karat.evaluate(samples, "recall@5 rr").save(folder / "ids.parquet")
    return folder


def told(capsys, *arguments, code=0):
    assert main([*map(str, arguments)]) == code
    out = capsys.readouterr()
    return " ".join((out.err if code else out.out).split())


@pytest.mark.parametrize(("name", "width"), [("x" * 50 + "_0", 20), ("文" * 30 + "_1", 21), ("ab", 2), ("abcdef", 3)])
def test_a_name_keeps_its_beginning_and_its_end(name, width):
    cut = cut_name(name, width)
    assert columns(cut) <= width
    assert cut == name or (cut[0], cut[-1], cut.count("…")) == (name[0], name[-1], 1)
    assert cut_name(name) == name


def test_long_names_and_ids_can_be_told_apart(folder):
    compared, ranking, overview = show(
        [
            ["compare", f"{LONG}_0.parquet", f"{LONG}_1.parquet"],
            ["diagnose", "ids.parquet", f"{LONG}-8"],
            ["diagnose", "ids.parquet"],
        ],
        folder,
        width=80,
    )
    header = STYLE.sub("", compared.text).split("\n\n")[1].split("\n")[0]
    assert "_0 " in header
    assert "_1" in header
    assert all(f"-{i}-12000" in ranking.text for i in range(9))
    assert f"…{LONG[-7:]}-8" in overview.text


def test_markdown_has_whole_names_and_query_ids(folder, capsys):
    names = [f"{LONG}_{i}" for i in range(2)]
    shown = told(capsys, "compare", *(folder / f"{name}.parquet" for name in names), "--format", "markdown")
    assert all(f"`{name}`" in shown for name in names)
    moved = [
        karat.evaluate([{"id": f"{LONG}-{i}", "retrieved": items, "gold": ["a"]} for i in range(20)], "rr")
        for items in (["a", "b"], ["b", "a"])
    ]
    assert f"`{LONG}-7`" in karat.compare(*moved).to_markdown()


@pytest.mark.parametrize("name", all_judges())
def test_the_example_of_a_judge_is_valid(name, capsys):
    out = told(capsys, "judges", name)
    example = out.partition("Example karat eval ")[2]
    assert "None" not in example
    from shlex import split

    options = all_commands()["eval"].parser().parse_intermixed_args(split(example))
    from karat.plan import Plan

    Plan.of(options.metrics, options.judge, "standard")  # refuses recall with an incomplete gold


def test_an_unknown_query_names_near_ids_and_the_number_of_queries(folder, capsys):
    out = told(capsys, "diagnose", folder / f"{LONG}_0.parquet", "q599", code=2)
    assert "60 queries" in out
    assert "Did you mean q59?" in out
    assert "run.table" not in out


def test_notes_name_the_option_of_the_command_line(tmp_path, capsys):
    rows = [{"retrieved": [{"id": "a", "score": 0.1}, {"id": "b", "score": 0.9}], "gold": ["b"]}]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert "--order score" in told(capsys, "eval", tmp_path / "s.jsonl", "rr")


@pytest.mark.parametrize("side", ["retrieved", "gold"])
def test_a_long_table_without_an_item_column_is_explained(side):
    tables = {
        "retrieved": pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [0.9, 0.1]}),
        "gold": pl.DataFrame({"query_id": ["q"], "doc_id": ["a"]}),
    }
    tables[side] = tables[side].rename({"doc_id": "id"})
    with pytest.raises(karat.InputError) as caught:
        karat.evaluate(**tables, metrics="rr")
    assert f"{side}: no column of item ids" in caught.value.problem
    assert "chunk_id" in caught.value.problem
    assert caught.value.hint == 'fields={"item": "id"}'
    karat.evaluate(**tables, metrics="rr", fields={"item": "id"})


def test_without_intervals_none_are_mentioned(folder, capsys):
    out = told(capsys, "compare", folder / "four_0.parquet", folder / "four_1.parquet")
    assert "p is corrected for 3 metrics (Holm)." in out
    assert "95 %" not in out
    assert "intervals are" not in out


def test_a_run_of_which_nothing_was_judged_is_named():
    whole = run(0.5)
    none = whole.replace(
        scores={name: values * float("nan") for name, values in whole.scores.items()},
        hits=whole.all_hits.replace(failed=dict.fromkeys(range(60), "refused")),
    )
    assert none.judged == 0
    out = str(karat.compare(none, whole, names=["zero", "part"]))
    assert "zero: 0 of 60 queries were judged." in out
    assert "part: " not in out


def test_metrics_are_an_option_too(folder, capsys):
    both = told(capsys, "eval", folder / "samples.jsonl", "recall@5", "--metrics", "rr")
    assert "recall@5" in both
    assert "rr" in both.split()
    some = told(capsys, "show", folder / "ids.parquet", "--metrics", "rr")
    assert "rr" in some.split()
    assert "recall@5" not in some
    assert "Did you mean recall@5?" in told(capsys, "show", folder / "ids.parquet", "--metrics", "recall@6", code=2)


def test_winners_of_slices_have_the_colour_of_the_verdict():
    made = [run(found, "rr", seed=1) for found in (0.1, 0.99)]
    made = [one.replace(meta={"topic": ["x"] * 60}) for one in made]
    with color(on=True):
        out = str(karat.compare(*made, names=["main", "branch"], by="topic"))
    assert out.count("\x1b[32mbranch\x1b[0m") == 2


def test_an_end_near_zero_does_not_read_as_zero():
    assert span(0.001, 0.16, sign="+") == "[+0.001, +0.160]"
    assert span(0.0, 0.16, sign="+") == "[0.00, +0.16]"
    assert span(0.02, 0.16, sign="+") == "[+0.02, +0.16]"


def test_a_hint_from_a_part_of_the_gold_says_so():
    rows = [{"retrieved": [f"some words, then {i} apples, and more"], "gold": [f"then {i} apples"]} for i in range(9)]
    found = karat.evaluate(rows, "rr", judge="exact")
    assert any("9 of 9 gold texts looked at are inside retrieved texts" in line for line in found.remarks())
