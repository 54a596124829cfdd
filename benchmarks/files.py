"""Files: the same run and gold as Parquet and as TREC text, read and evaluated by karat and its peers.

W2 and W3 as Parquet files with one row per item, and W2 as TREC text; reading is included.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import catch_warnings, simplefilter

from benchmarks import workloads
from benchmarks.memory import resident
from benchmarks.outcome import Outcome, slowdown, speedup, write_outcomes
from benchmarks.peers import METRICS, PYTREC_EVAL, RANX, check_agreement, warm_up_ranx
from benchmarks.timing import Entry, best
from benchmarks.workloads import Data

if TYPE_CHECKING:
    import polars as pl

    from karat import Run

_TREC_EVAL = ("recall.1,5,10,20,100", "P.1,5,10,20,100", "ndcg_cut.10,100", "recip_rank", "map")
_PROGRAM = Path(__file__).parents[1] / ".oracles" / "trec_eval" / "trec_eval"
_NO_PROGRAM = (
    "skipped: put the source of github.com/usnistgov/trec_eval into .oracles/trec_eval, and run make trec_eval"
)
_GIB = 2**30
_LARGE = workloads.Size(100_000, 1_000)
_PIECE = 2_000
_GOLD, _FOUND = 10, 6


class Files(NamedTuple):
    """The files of a run and of its gold."""

    run: Path
    gold: Path


class Plan(NamedTuple):
    """Repetitions, and the target speedups."""

    repetitions: int
    others: int
    over_pytrec_eval: float
    over_ranx: float


PLANS = {"W2": Plan(15, 3, 10, 25), "W3": Plan(11, 1, 30, 50)}


def measure(workload: str) -> list[Outcome]:
    """Compare on Parquet files of one size, compare on TREC files, or measure 100 million rows."""
    with TemporaryDirectory() as folder:
        if workload == "trec":
            return _measure_trec(Path(folder))
        return _measure_large(Path(folder)) if workload == "100M" else _measure_parquet(workload, Path(folder))


def _measure_parquet(size: str, folder: Path) -> list[Outcome]:
    data, plan, case = workloads.dicts(workloads.SIZES[size]), PLANS[size], f"files-{size}"
    files = as_parquet(data, folder)
    check_agreement(by_karat(files), by_pytrec_eval(files), data.gold)
    warm_up_ranx()
    least = _least(
        {"karat": by_karat, "reading": by_reading}, {"pytrec_eval": by_pytrec_eval, "ranx": by_ranx}, files, plan
    )
    ours = least["karat"]
    return [
        speedup(case, "pytrec_eval", ours=ours, theirs=least["pytrec_eval"], target=plan.over_pytrec_eval),
        speedup(case, "ranx", ours=ours, theirs=least["ranx"], target=plan.over_ranx),
        *([slowdown(case, "reading", ours=ours, theirs=least["reading"], target=1.6)] if size == "W3" else []),
    ]


def _measure_trec(folder: Path) -> list[Outcome]:
    data, plan, case = workloads.dicts(workloads.SIZES["W2"]), PLANS["W2"], "files-trec"
    files = as_trec(data, folder)
    check_agreement(by_karat(files), trec_by_pytrec_eval(files), data.gold)
    others: dict[str, Callable[[Files], object]] = {"pytrec_eval": trec_by_pytrec_eval}
    if _PROGRAM.exists():
        others["trec_eval"] = by_trec_eval
    least = _least({"karat": by_karat}, others, files, plan)
    outcomes = [speedup(case, "pytrec_eval", ours=least["karat"], theirs=least["pytrec_eval"], target=6)]
    if not _PROGRAM.exists():
        return [*outcomes, Outcome(case=case, peer="trec_eval", target="≥ 6", note=_NO_PROGRAM)]
    version = subprocess.run([_PROGRAM, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    note = f"{version or 'trec_eval'} in C, -O3; its process included"
    return [*outcomes, speedup(case, "trec_eval", ours=least["karat"], theirs=least["trec_eval"], target=6, note=note)]


def _measure_large(folder: Path) -> list[Outcome]:
    """Compare 100 million rows with W3, each in a new process."""
    case = "files-100M"
    small = _alone(as_parquet(workloads.dicts(workloads.SIZES["W3"]), folder / "W3"), workloads.SIZES["W3"])
    large = _alone(make_large(_LARGE, folder / "large"), _LARGE)
    note = f"{large['seconds']:.1f} s, {large['peak'] / _GIB:.2f} GiB peak, files of {large['bytes'] / 1e9:.2f} GB"
    share = large["peak"] / _GIB
    return [
        slowdown(case, "a row of W3", ours=large["row"], theirs=small["row"], target=1.5, note=note),
        Outcome(case=case, peer="GiB", ratio=share, target="≤ 2", met=share <= 2),
    ]


def _least(
    often: dict[str, Callable[[Files], object]], seldom: dict[str, Callable[[Files], object]], files: Files, plan: Plan
) -> dict[str, float]:
    entries = {name: Entry(call, lambda: _as_new(files), plan.repetitions) for name, call in often.items()}
    entries |= {name: Entry(call, lambda: _as_new(files), plan.others) for name, call in seldom.items()}
    return best(entries)


def _as_new(files: Files) -> Files:
    """The same files, of which nothing that karat knows of their state is true: each call checks them again."""
    for file in files:
        file.touch()
    return files


def by_karat(files: Files) -> Run:
    """Evaluate with karat, from the files to the scores of every query."""
    import karat

    return karat.evaluate(files.run, METRICS, gold=files.gold)


def by_reading(files: Files) -> pl.DataFrame:
    """Only read the columns that are needed."""
    import polars as pl

    return pl.read_parquet(files.run, columns=["query_id", "doc_id", "score"])


def by_pytrec_eval(files: Files) -> dict[str, dict[str, float]]:
    """Read with Polars, convert to dicts, evaluate with pytrec_eval."""
    import pytrec_eval

    gold = _dicts(files.gold, "grade")
    scores: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(gold, PYTREC_EVAL).evaluate(
        _dicts(files.run, "score")
    )
    return scores


def _dicts(path: Path, value: str) -> dict[str, dict[str, Any]]:
    import polars as pl

    by_query: dict[str, dict[str, Any]] = {}
    for query, item, number in pl.read_parquet(path, columns=["query_id", "doc_id", value]).iter_rows():
        by_query.setdefault(query, {})[item] = number
    return by_query


def by_ranx(files: Files) -> Any:
    """Read and evaluate with ranx."""
    import pandas as pd
    import ranx

    with catch_warnings():
        simplefilter("ignore")
        pd.set_option("future.infer_string", False)  # ranx requires the strings of pandas 2
    columns = {"q_id_col": "query_id", "doc_id_col": "doc_id"}
    run = ranx.Run.from_parquet(str(files.run), score_col="score", **columns)
    return ranx.evaluate(ranx.Qrels.from_parquet(str(files.gold), score_col="grade", **columns), run, RANX)


def trec_by_pytrec_eval(files: Files) -> dict[str, dict[str, float]]:
    """Parse and evaluate with pytrec_eval."""
    import pytrec_eval

    with files.run.open() as run, files.gold.open() as gold:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(gold), PYTREC_EVAL)
        scores: dict[str, dict[str, float]] = evaluator.evaluate(pytrec_eval.parse_run(run))
    return scores


def by_trec_eval(files: Files) -> None:
    """Run the C program and discard its output."""
    measures = [word for measure in _TREC_EVAL for word in ("-m", measure)]
    command = [str(_PROGRAM), "-q", "-c", *measures, str(files.gold), str(files.run)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def as_parquet(data: Data, folder: Path) -> Files:
    """Write Parquet files with one row per item."""
    folder.mkdir(exist_ok=True)
    files = Files(folder / "run.parquet", folder / "gold.parquet")
    _long(data.run, "score").write_parquet(files.run)
    _long(data.gold, "grade").write_parquet(files.gold)
    return files


def _long(by_query: dict[str, dict[str, Any]], value: str) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(
        {
            "query_id": [query for query, items in by_query.items() for _ in items],
            "doc_id": [item for items in by_query.values() for item in items],
            value: [number for items in by_query.values() for number in items.values()],
        }
    )


def as_trec(data: Data, folder: Path) -> Files:
    """Write TREC files with one line per item."""
    files = Files(folder / "run.trec", folder / "gold.qrels")
    with files.run.open("w") as run, files.gold.open("w") as gold:
        for query, items in data.run.items():
            run.writelines(f"{query} Q0 {item} 0 {score!r} tag\n" for item, score in items.items())
        for query, grades in data.gold.items():
            gold.writelines(f"{query} 0 {item} {grade}\n" for item, grade in grades.items())
    return files


def make_large(size: workloads.Size, folder: Path) -> Files:
    """Write a large run in pieces, never all in memory, and gold of which a part is retrieved."""
    import numpy as np
    import polars as pl

    folder.mkdir()
    random = np.random.default_rng(20)
    golds = []
    for number in range(0, size.queries, _PIECE):
        query = np.arange(number, number + _PIECE)
        docs = random.integers(100_000, 1_000_000, (_PIECE, size.depth))
        run = pl.DataFrame({"q": query.repeat(size.depth), "d": docs.ravel(), "score": random.random(docs.size)})
        _named(run, "score").write_parquet(folder / f"part-{number:06}.parquet")
        relevant = np.concatenate([docs[:, :_FOUND], random.integers(100_000, 1_000_000, (_PIECE, _GOLD - _FOUND))], 1)
        gold = pl.DataFrame(
            {"q": query.repeat(_GOLD), "d": relevant.ravel(), "grade": random.integers(0, 4, relevant.size)}
        )
        golds.append(_named(gold, "grade"))
    gold_file = folder.parent / "gold.parquet"
    pl.concat(golds).unique(["query_id", "doc_id"], maintain_order=True).write_parquet(gold_file)
    return Files(folder, gold_file)


def _named(frame: pl.DataFrame, value: str) -> pl.DataFrame:
    import polars as pl

    return frame.select(query_id=pl.format("q{}", "q"), doc_id=pl.format("doc{}", "d"), value=value).rename(
        {"value": value}
    )


def _alone(files: Files, size: workloads.Size) -> dict[str, float]:
    """Time per evaluation and per row, and the peak memory of the process."""
    command = [sys.executable, "-m", "benchmarks.files", str(files.run), str(files.gold)]
    done = [subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout for _ in range(2)]
    seconds, peak = min(json.loads(printed) for printed in done)
    parts = files.run.iterdir() if files.run.is_dir() else [files.run]
    size_of_files = sum(part.stat().st_size for part in parts)
    return {"seconds": seconds, "row": seconds / (size.queries * size.depth), "peak": peak, "bytes": size_of_files}


def _evaluate(run: str, gold: str) -> tuple[float, int]:
    import polars  # noqa: F401, ICN001  # loaded before the clock starts

    start = perf_counter()
    by_karat(Files(Path(run), Path(gold)))
    return perf_counter() - start, resident("VmHWM")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [run, gold]:
            print(json.dumps(_evaluate(run, gold)))
        case [workload]:
            write_outcomes(measure(workload))
