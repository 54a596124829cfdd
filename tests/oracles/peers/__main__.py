"""Asks one library for its scores: `python tests/oracles/peers mlflow`, by the Python that has it.

Standard input is {"ks": [1], "queries": [{"id", "gold": {id: grade}, "retrieved": [id], "scores": numbers or null}]}
Standard output is {"version", "scores": {"recall@5": one entry for each query}}: null where the library has no number,
the error where it raises one. A peer is a file beside this one: `PACKAGE`, and either `columns(query, ks)`, which gives
for the name of each column a function without arguments, or `table(queries, ks)`, which gives all scores at once.
"""

import json
import math
import os
import runpy
import sys
import warnings
from importlib.metadata import version
from pathlib import Path


def main(name):
    # Libraries print: what goes to standard output from here on is theirs, and goes elsewhere.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    here = Path(__file__).parent
    sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != here.resolve()]  # mlflow.py is not mlflow
    peer = runpy.run_path(str(here / f"{name}.py"))
    asked = json.load(sys.stdin)
    if "table" in peer:
        table = peer["table"](asked["queries"], asked["ks"])
        scores = {column: [_number(value) for value in values] for column, values in table.items()}
    else:
        rows = [_row(peer["columns"](query, asked["ks"])) for query in asked["queries"]]
        scores = {column: [row[column] for row in rows] for column in rows[0]}
    json.dump({"version": version(peer["PACKAGE"]), "scores": scores}, answer)
    answer.close()


def _row(columns):
    return {column: _value(score) for column, score in columns.items()}


def _value(score):
    try:
        return _number(score())
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _number(value):
    return None if value is None or math.isnan(value) else float(value)


main(sys.argv[1])
