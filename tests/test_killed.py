"""A run file is never half a file: killing karat at any moment leaves the old one, or the new one."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import karat

KILLS = 8


def test_killed_while_saving(tmp_path):
    samples, run = tmp_path / "samples.jsonl", tmp_path / "run.parquet"
    row = {"retrieved": [f"chunk {i}" for i in range(40)], "gold": ["chunk 7"]}
    samples.write_text("\n".join([json.dumps(row)] * 3000))
    command = [sys.executable, "-m", "karat", "eval", str(samples), "rr", "-o", str(run)]
    karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="rr").save(run)
    started = time.monotonic()
    subprocess.run([*command[:-1], str(tmp_path / "whole.parquet")], check=True, capture_output=True)
    whole = time.monotonic() - started
    for number in range(1, KILLS + 1):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:  # the later kills fall where the file is written
            process.wait(whole * (0.5 + 0.5 * number / KILLS))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert len(karat.load(run)) in {1, 3000}
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert len(karat.load(run)) == 3000
