"""Computes nAUC with mteb, and AUROC with scikit-learn, by the Python that has them.

Standard input is a list of [rankings, metric values, positives, negatives]; standard output a list of
{"max", "std", "diff1", "auroc"}: null where undefined. mteb's file is loaded alone: importing mteb needs torch.
"""

import json
import math
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import numpy as np
from sklearn.metrics import roc_auc_score


def metrics_of_mteb():
    sys.modules["mteb.types"] = ModuleType("mteb.types")
    setattr(sys.modules["mteb.types"], "RetrievalEvaluationResult", object)  # noqa: B010
    path = Path(find_spec("mteb").origin).parent / "_evaluators" / "retrieval_metrics.py"
    loader = SourceFileLoader("retrieval_metrics", str(path))
    module = module_from_spec(spec_from_loader("retrieval_metrics", loader))
    loader.exec_module(module)
    return module


def main():
    mteb, answers = metrics_of_mteb(), []
    for rankings, values, positive, negative in json.load(sys.stdin):
        own = [mteb.confidence_scores(scores) for scores in rankings]
        found = {
            name: mteb.nauc(np.array([c[name] for c in own]), np.array(values)) for name in ("max", "std", "diff1")
        }
        labels = [1] * len(positive) + [0] * len(negative)
        found["auroc"] = roc_auc_score(labels, [*positive, *negative])
        answers.append({name: None if math.isnan(value) else float(value) for name, value in found.items()})
    json.dump(answers, sys.stdout)


main()
