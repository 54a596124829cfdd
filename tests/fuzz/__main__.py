"""`make fuzz`: every fuzzer for long; `python -m fuzz NAME --seed S --case N` repeats one case."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from fuzz.frame import Fuzzer, Outcomes, fuzzers, run, run_in_processes

RESULTS = Path(__file__).with_name("results.json")


def main() -> int:
    options = _options()
    named = {name: f for name, f in fuzzers().items() if name in options.names or not options.names}
    if unknown := set(options.names) - set(named):
        print(f"No fuzzer is called {', '.join(sorted(unknown))}. There are: {', '.join(fuzzers())}.", file=sys.stderr)
        return 2
    if options.write and (options.case, options.cases) != (None, None):
        print("--write is for whole runs, without --case or --cases.", file=sys.stderr)
        return 2
    seed = time.time_ns() % 1_000_000 if options.seed is None else options.seed
    faults = False
    for name, fuzzer in named.items():
        result = _fuzz(fuzzer, seed, options)
        faults |= bool(result["faults"])
        if options.write:
            _write(name, result)
    return int(faults)


def _write(name: str, result: dict[str, object]) -> None:
    """Replace the figures of one fuzzer, so that Ctrl-C loses only those of the one that runs."""
    known = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    results = {other: known[other] for other in fuzzers() if other in known} | {name: result}
    RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n", "utf-8")


def _options() -> Namespace:
    parser = ArgumentParser("python -m fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="fuzzers to run (default: all)")
    parser.add_argument("--seed", type=int, help="another seed gives other cases (default: from the clock)")
    parser.add_argument("--cases", type=int, help="cases of each fuzzer (default: its own number)")
    parser.add_argument("--case", type=int, help="run only the case with this number, in this process")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default: 2)")
    parser.add_argument("--write", action="store_true", help="write the figures of docs/reliability.md")
    return parser.parse_args()


def _fuzz(fuzzer: Fuzzer, seed: int, options: Namespace) -> dict[str, object]:
    start = time.perf_counter()
    if options.case is None:
        outcomes = run_in_processes(fuzzer, seed, options.cases or fuzzer.long, options.jobs, _progress(fuzzer.name))
    else:
        outcomes = run(fuzzer, seed, [options.case])
    counts = dict(outcomes.counts.most_common())
    seconds = time.perf_counter() - start
    shown = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
    print(f"\r{fuzzer.name}: {outcomes.cases:,} cases, {len(outcomes.faults)} faults, {seconds:.0f} s ({shown})")
    for number, text in outcomes.faults[:5]:
        print(f'\n  python -m fuzz "{fuzzer.name}" --seed {seed} --case {number}\n{text}')
    return {"seed": seed, "cases": outcomes.cases, "faults": len(outcomes.faults), "outcomes": counts}


def _progress(name: str):
    def show(outcomes: Outcomes) -> None:
        if sys.stderr.isatty() and outcomes.cases % 10 == 0:
            print(f"\r{name}: {outcomes.cases:,} cases, {len(outcomes.faults)} faults", end="", file=sys.stderr)

    return show


if __name__ == "__main__":
    sys.exit(main())
