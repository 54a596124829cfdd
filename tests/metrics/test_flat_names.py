"""Flat names: legal in every tool, and never the same for two metrics."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.metrics import MEASURES, METRICS

WANDB = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)
MLFLOW = re.compile(r"[/\w.\- :]*")
KS = ("1", "5", "10", "50", "500", "500t", "5t")
LEVELS = ("0", "0.05", "0.5", "1")
NUMBERS = ("1", "2", "0.5", "0.05", "5", "-1", "1e-07", "12.5")


@pytest.mark.parametrize(
    ("name", "flat"),
    [
        ("rr", "rr"),
        ("recall@5", "recall_at_5"),
        ("recall@500t", "recall_at_500t"),
        ("recall_all@5", "recall_all_at_5"),
        ("precision(rel=2)@5", "precision__rel_2_at_5"),
        ("f(beta=0.5,rel=2)@10", "f__beta_0_5__rel_2_at_10"),
        ("ndcg(gain=exp)@10", "ndcg__gain_exp_at_10"),
        ("err(max_grade=3)@10", "err__max_grade_3_at_10"),
        ("iprec@0.5", "iprec_at_0_5"),
        ("recall@5 p10", "recall_at_5__p10"),
        ("latency p95", "latency__p95"),
    ],
)
def test_readable_names(name, flat):
    assert karat.flat_name(name) == flat


def test_a_metric_and_its_name_have_the_same_flat_name():
    assert karat.flat_name(karat.parse("f(beta=2)@5")) == karat.flat_name("f(beta=2)@5")


def test_a_flat_name_without_settings_can_be_requested():
    assert str(karat.parse(karat.flat_name("recall@500t"))) == "recall@500t"


def columns(name, own):
    """Every column of a metric: without settings, with each setting, and with all of them, at several cutoffs."""
    choices = {setting: own.words.get(setting, NUMBERS) for setting in own.settings}
    bases = [name, *(f"{name}({setting}={value})" for setting, values in choices.items() for value in values)]
    if len(choices) > 1:
        for values in product(*choices.values()):
            inside = ",".join(f"{s}={v}" for s, v in zip(choices, values, strict=True))
            bases.append(f"{name}({inside})")
    cutoffs = ("", *(f"@{k}" for k in (LEVELS if own.at_recall else KS))) if own.cutoff else ("",)
    return [str(karat.parse(base + cutoff)) for base, cutoff in product(bases, cutoffs)]


def test_registered_metrics_have_different_legal_names():
    texts = {text for name, own in {**METRICS, **MEASURES}.items() for text in columns(name, own)}
    texts |= {f"{text} {summary}" for text in texts for summary in ("p5", "p10", "median")}
    flat = {text: karat.flat_name(text) for text in texts}
    assert len(texts) > 3000
    assert len({name.lower() for name in flat.values()}) == len(texts)
    for text, name in flat.items():
        assert WANDB.fullmatch(name), text
        assert MLFLOW.fullmatch(name), text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("precision(rel=2)@5", "precision__rel_2@5"),
        ("recall@5", "recall_at_5"),
        ("x(p=0.8)", "x(p_0=8)"),
        ("iprec@0.5", "iprec_at_0_5"),
        ("f(a_b=c)", "f(a=b_c)"),
        ("x p10", "x__p10"),
        ("recall@1,5", "recall@15"),
        ("false_alarm(threshold=-1)@5", "false_alarm(threshold=1)@5"),
    ],
)
def test_names_that_look_alike_stay_apart(one, other):
    assert karat.flat_name(one) != karat.flat_name(other)


alike = st.text("ap_5 @().,=-1", max_size=12)


@given(alike, alike)
def test_different_texts_have_different_legal_names(one, other):
    assert WANDB.fullmatch(karat.flat_name(one))
    assert (karat.flat_name(one) == karat.flat_name(other)) == (one == other)


@given(st.text())
def test_any_text_has_a_legal_name(text):
    assert WANDB.fullmatch(karat.flat_name(text))
