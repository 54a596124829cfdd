"""karat measures retrieval: how much gold is in what you retrieved.

run = karat.evaluate("samples.jsonl", "recall@1,5,10 ndcg@10 rr")
run.mean["recall@5"]
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from karat.analysis.calibrate import Calibration as Calibration
    from karat.analysis.calibrate import calibrate as calibrate
    from karat.analysis.checks import Check as Check
    from karat.analysis.compare import Comparison as Comparison
    from karat.analysis.compare import compare as compare
    from karat.analysis.diagnose import Diagnosis as Diagnosis
    from karat.analysis.diagnose import diagnose as diagnose
    from karat.analysis.fuse import Fusion as Fusion
    from karat.analysis.fuse import fuse as fuse
    from karat.analysis.gate import Gate as Gate
    from karat.analysis.gate import gate as gate
    from karat.analysis.lint import Lint as Lint
    from karat.analysis.lint import lint as lint
    from karat.analysis.overlap import Overlap as Overlap
    from karat.analysis.overlap import overlap as overlap
    from karat.analysis.rosetta import Rosetta as Rosetta
    from karat.analysis.rosetta import rosetta as rosetta
    from karat.analysis.stages import Stages as Stages
    from karat.analysis.stages import stages as stages
    from karat.analysis.sweep import Sweep as Sweep
    from karat.analysis.sweep import sweep as sweep
    from karat.bridges.push import push as push
    from karat.collection import collect as collect
    from karat.collection.collected import Collected as Collected
    from karat.conventions import STANDARD as STANDARD
    from karat.conventions import Convention as Convention
    from karat.errors import BadArgument as BadArgument
    from karat.errors import InputError as InputError
    from karat.errors import KaratError as KaratError
    from karat.errors import NotJudged as NotJudged
    from karat.errors import RunFileError as RunFileError
    from karat.errors import Unavailable as Unavailable
    from karat.errors import UnknownName as UnknownName
    from karat.gold.pool import Pool as Pool
    from karat.gold.pool import pool as pool
    from karat.hits import Gold as Gold
    from karat.hits import Hits as Hits
    from karat.judges import Claims as Claims
    from karat.judges import Contains as Contains
    from karat.judges import Exact as Exact
    from karat.judges import Fuzzy as Fuzzy
    from karat.judges import Ids as Ids
    from karat.judges import Judge as Judge
    from karat.judges import Relevance as Relevance
    from karat.judges import Spans as Spans
    from karat.judges import Text as Text
    from karat.judges import judge as judge
    from karat.metrics import Metric as Metric
    from karat.metrics import metric as metric
    from karat.metrics import parse as parse
    from karat.metrics.flat_names import flat_name as flat_name
    from karat.pipeline import evaluate as evaluate
    from karat.pipeline import score as score
    from karat.run import Run as Run
    from karat.run.file import load as load
    from karat.run.merge import merge as merge
    from karat.samples.notes import Note as Note
    from karat.samples.sample import Sample as Sample
    from karat.samples.traces import Traces as Traces
    from karat.samples.traces.traces import read_traces as read_traces

# Where each public name lives. Nothing is loaded before it is asked for.
_HOMES = {
    "Calibration": "analysis.calibrate",
    "calibrate": "analysis.calibrate",
    "Comparison": "analysis.compare",
    "compare": "analysis.compare",
    "Collected": "collection.collected",
    "collect": "collection",
    "STANDARD": "conventions",
    "Convention": "conventions",
    "Diagnosis": "analysis.diagnose",
    "diagnose": "analysis.diagnose",
    "BadArgument": "errors",
    "InputError": "errors",
    "KaratError": "errors",
    "RunFileError": "errors",
    "NotJudged": "errors",
    "Unavailable": "errors",
    "UnknownName": "errors",
    "evaluate": "pipeline",
    "score": "pipeline",
    "Check": "analysis.checks",
    "Fusion": "analysis.fuse",
    "fuse": "analysis.fuse",
    "Gate": "analysis.gate",
    "gate": "analysis.gate",
    "Gold": "hits",
    "Hits": "hits",
    "Claims": "judges",
    "Contains": "judges",
    "Exact": "judges",
    "Fuzzy": "judges",
    "Ids": "judges",
    "Judge": "judges",
    "judge": "judges",
    "Relevance": "judges",
    "Spans": "judges",
    "Text": "judges",
    "Lint": "analysis.lint",
    "lint": "analysis.lint",
    "merge": "run.merge",
    "Metric": "metrics",
    "Note": "samples.notes",
    "metric": "metrics",
    "parse": "metrics",
    "flat_name": "metrics.flat_names",
    "pool": "gold.pool",
    "Pool": "gold.pool",
    "push": "bridges.push",
    "overlap": "analysis.overlap",
    "Overlap": "analysis.overlap",
    "rosetta": "analysis.rosetta",
    "Rosetta": "analysis.rosetta",
    "Run": "run",
    "load": "run.file",
    "stages": "analysis.stages",
    "Stages": "analysis.stages",
    "Sample": "samples.sample",
    "sweep": "analysis.sweep",
    "Sweep": "analysis.sweep",
    "Traces": "samples.traces",
    "read_traces": "samples.traces.traces",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"karat.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
