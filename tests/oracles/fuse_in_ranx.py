"""Fuses legs with ranx, by the Python that has it.

Standard input is {"legs": [{query: {item: score}}], "ask": [[method, norm or null, params]]}; standard output is a list
of the fused scores, {query: {item: score}}, one per question.
"""

import json
import os
import sys

from ranx import Run, fuse


def main():
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    asked = json.load(sys.stdin)
    found = []
    for method, norm, params in asked["ask"]:
        runs = [Run(leg, name=str(number)) for number, leg in enumerate(asked["legs"])]
        fused = fuse(runs, norm=norm, method=method, params=params)
        found.append({query: dict(items) for query, items in fused.to_dict().items()})
    json.dump(found, answer)
    answer.close()


main()
