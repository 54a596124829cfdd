"""Prices: a dated table, which a file, a dict or a pair overrides; a budget in dollars needs a price."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

import karat
from karat.errors import BadArgument
from karat.llm import Engine
from karat.llm.endpoint import Endpoint
from karat.llm.model import Price
from karat.llm.prices import TABLE, find_price
from support.forked import run_karat
from support.questions import questions
from support.scripted import script
from support.server import Act, Server

KARAT = str(Path(sys.executable).with_name("karat"))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "our-prices.json"
    path.write_text(json.dumps({"date": "2031-05-06", "prices": {"mine": [1, 2], "gpt-4o-mini": [3, 4]}}))
    return path


def price(model, prices=None):
    found = find_price(model, prices)
    return None if found is None else (*found.price, found.source)


def test_the_table_has_a_date():
    table = json.loads(TABLE.read_text())
    assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", table["date"])
    listed = f"list prices of {table['date']}"
    assert price(Endpoint("gpt-4o-mini-2024-07-18")) == (0.15, 0.6, listed)
    assert price(Endpoint("gpt-5")) == (*table["prices"]["gpt-5"], listed)
    assert price(Endpoint("mine")) is None


def test_prices_that_are_given_come_first(file):
    given = "given price"
    assert price(Endpoint("gpt-4o-mini"), {"gpt-4o-mini": (7, 8)}) == (7, 8, given)
    assert price(Endpoint("gpt-4o-mini", price=(5, 6))) == (5, 6, given)
    assert price(Endpoint("gpt-4o-mini", price=(5, 6)), (1, 2)) == (1, 2, given)
    assert price(Endpoint("gpt-4o-mini"), "0.5, 2") == (0.5, 2, given)
    assert price(Endpoint("gpt-4o-mini"), {"other": (7, 8)})[:2] == (0.15, 0.6)
    dated = "prices of 2031-05-06 in our-prices.json"
    for path in (file, str(file)):
        assert price(Endpoint("mine"), path) == (1, 2, dated)
        assert price(Endpoint("gpt-4o-mini-2024-07-18"), path) == (3, 4, dated)
        assert price(Endpoint("gpt-4.1"), path)[2].startswith("list prices of ")
    assert Price(2, 8).cost(1e6, 5e5) == 6


def test_a_file_needs_no_date(tmp_path):
    (tmp_path / "p.json").write_text('{"prices": {"mine": [1, 2]}}')
    assert price(Endpoint("mine"), tmp_path / "p.json") == (1, 2, "prices in p.json")


@pytest.mark.parametrize("wrong", [(1,), (1, -1), (1, float("nan")), ("1", "2"), 3, (True, False), "1,x", "1,2,3"])
def test_prices_are_pairs_of_numbers(wrong):
    with pytest.raises(BadArgument, match=r"two numbers|no file"):
        find_price(Endpoint("mine"), wrong)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"m": [1, 2]}', '{"prices": [1, 2]}', '{"prices": {}, "date": 3}'])
def test_a_file_that_is_no_table_of_prices(tmp_path, text):
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(BadArgument, match=r"p\.json") as error:
        find_price(Endpoint("mine"), tmp_path / "p.json")
    assert '{"date": "2026-01-31", "prices": {"gpt-4o-mini": [0.15, 0.6]}}' in str(error.value)


def test_a_file_that_is_missing_or_has_a_wrong_price(tmp_path):
    with pytest.raises(BadArgument, match=r"no file none\.json"):
        find_price(Endpoint("mine"), "none.json")
    (tmp_path / "p.json").write_text('{"prices": {"mine": [1]}}')
    with pytest.raises(BadArgument, match="two numbers"):
        find_price(Endpoint("mine"), tmp_path / "p.json")


def test_a_budget_in_dollars_needs_a_price(file):
    for make in (Engine, karat.Claims, karat.Relevance):
        with pytest.raises(BadArgument, match="the price of mine, which is unknown") as error:
            make("openai(mine, base_url=http://127.0.0.1:9)", cache=None, max_cost=1)
        assert "--price 0.15,0.6" in str(error.value)
        assert "prices=(0.15, 0.6)" in str(error.value)
    Engine("openai(mine, base_url=http://127.0.0.1:9, price=(1, 2))", cache=None, max_cost=1)
    Engine("openai(mine, base_url=http://127.0.0.1:9)", cache=None, max_cost=1, prices={"mine": (1, 2)})
    Engine("openai(mine, base_url=http://127.0.0.1:9)", cache=None, max_cost=1, prices=file)


def test_the_estimate_names_the_prices(file):
    with Server(lambda call: Act(content='{"said": "x"}')) as server:
        engine = Engine(f"openai(mine, base_url={server.url})", cache=None, prices=file)
        estimate = str(engine.estimate(questions(3)))
        assert re.search(r", about \$0\.\d+ \(prices of 2031-05-06 in our-prices.json\)$", estimate)
        unknown = Engine(server.model(), cache=None)
        assert "$" not in str(unknown.estimate(questions(3)))


@pytest.fixture
def run(tmp_path):
    """`karat eval` with a scripted endpoint; its name of the model is "m"."""
    row = {"query": "Why?", "retrieved": ["rain fell"], "answer": "rain fell."}
    (tmp_path / "samples.jsonl").write_text(json.dumps(row))
    start = ["eval", "samples.jsonl", "recall@1", "--cache", "none", "--yes"]
    env = {**os.environ, "OPENAI_API_KEY": "none"}

    def run(*options, judge="claims(m)", code=0):
        with Server(script) as server:
            model = ["--judge", judge, "--base-url", server.url]
            done = run_karat(*start, *model, *options, cwd=tmp_path, env=env, text=True)
        assert done.returncode == code, done.stderr
        assert server.count == (0 if code else 2)
        return done.stderr

    return run


def test_the_command_line_asks_for_a_price_before_any_call(run):
    said = run("--max-cost", "1", code=2)
    assert "a budget in dollars needs the price of m, which is unknown" in said
    assert "--price 0.15,0.6" in said
    assert "two numbers" in run("--max-cost", "1", "--price", "3", code=2)


def test_a_price_and_a_file_of_prices_exclude_each_other(run, file):
    both = [("--price", "10,50"), ("--prices", file)]
    for first, second in (both, both[::-1]):
        assert "--price and --prices exclude each other" in run(*first, *second, code=2)


def test_the_command_line_names_the_prices(run, file):
    assert "$" not in run()
    assert "200 + 20 tokens, $0.0030 (given price)\n" in run("--max-cost", "1", "--price", "10,50")
    assert "(prices of 2031-05-06 in our-prices.json)\n" in run("--prices", file, judge="claims(mine)")
    assert "less than $0.0001 (list prices of 20" in run("--max-cost", "1", judge="claims(gpt-4o-mini)")
