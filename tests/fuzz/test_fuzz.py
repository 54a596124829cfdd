"""Every fuzzer holds for a few cases (`make fuzz` runs many), and the frame finds faults, crashes and hangs."""

import os
from random import Random

import pytest

from fuzz import frame
from fuzz.frame import command, fuzzers, run, run_in_processes
from support.broken import BROKEN, WAYS

SEED = int(os.environ.get("KARAT_FUZZ_SEED", "1"))


@pytest.mark.parametrize("name", fuzzers())
def test_a_few_cases(name):
    fuzzer = fuzzers()[name]
    outcomes = run(fuzzer, SEED, range(fuzzer.short))
    assert not outcomes.faults, f"case {outcomes.faults[0][0]} of seed {SEED}:\n{outcomes.faults[0][1]}"
    assert sum(outcomes.counts.values()) == fuzzer.short


def test_faults_crashes_and_hangs_are_found(monkeypatch):
    monkeypatch.setattr(frame, "SECONDS", 5)
    ways = [Random(f"broken/2/{number}").choice(WAYS) for number in range(6)]
    assert set(ways) == set(WAYS)
    outcomes = run_in_processes(BROKEN, 2, 6, jobs=2)
    assert outcomes.cases == 6
    assert outcomes.counts == {"holds": ways.count("holds")}
    found = {"fault": "broken on purpose", "crash": "ended with -9", "hang": "longer than 5 s"}
    assert {number for number, _ in outcomes.faults} == {n for n, way in enumerate(ways) if way != "holds"}
    assert all(found[ways[number]] in text for number, text in outcomes.faults)


def test_a_raw_exception_of_a_command_is_a_fault(monkeypatch):
    monkeypatch.setattr("karat.cli._parse", lambda given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        command("metrics")
