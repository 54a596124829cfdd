"""One program, run with ragas and with karat.compat.ragas in its import lines, on the same model server."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from oracles.test_ragas import PYTHON, QUIET, ROOT
from support.in_words import spoken
from support.ragas_imports import IMPORTS
from support.scripted import script
from support.server import Act, Server

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="ragas is not installed; `make oracle-ragas` does it")

PROGRAM = ROOT / "tests" / "oracles" / "ragas_program.py"
IMPORT_LINE = re.compile(r"^from ragas\b", re.MULTILINE)
BETTER: dict[str, tuple[object, object]] = {}
"""Differences that are meant: the outcome in ragas and in karat."""


def judged(call):
    """Answers the prompts of karat, in both forms, and those of ragas: what is said about rain is supported."""
    prompt = "\n\n".join(message["content"] for message in call.body["messages"])
    if "fail me" in prompt:
        return Act(status=400, content="too long")
    if "Which claims are there?" in prompt:
        return Act(content='{"claims": ["one", "two"]}')
    if "json_schema" in str(call.body.get("response_format")):
        return script(call)
    if "It must follow this JSON schema:\n" in prompt and "<<<" in prompt:
        return Act(content=spoken(prompt), usage=(100, 10))
    if "attributed" in prompt:
        verdicts = [("rain fell in Leeds", 1), ("It snowed", 0)]
        found = [{"statement": text, "reason": "", "attributed": verdict} for text, verdict in verdicts]
        return Act(content=json.dumps({"classifications": found}), usage=(100, 10))
    context = re.findall(r'"context": "([^"]*)"', prompt)[-1]
    return Act(content=json.dumps({"reason": "", "verdict": int("rain fell" in context)}), usage=(100, 10))


def start(text, folder, url):
    (folder / "program.py").write_text(text)
    environment = os.environ | QUIET | {"MODEL_URL": url, "PYTHONPATH": str(ROOT / "src"), "HOME": str(folder)}
    environment |= {"XDG_CACHE_HOME": str(folder), "OPENAI_API_KEY": "x", "no_proxy": "127.0.0.1"}
    return subprocess.Popen(
        [PYTHON, "-W", "ignore", folder / "program.py"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder,
    )  # fmt: skip


def outcomes_of(program):
    said, problem = program.communicate()
    assert program.returncode == 0, problem
    return json.loads(said[said.index("{") :])


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """By case, the outcome in ragas and in karat."""
    text = PROGRAM.read_text()
    replaced = IMPORT_LINE.sub("from karat.compat.ragas", text)
    assert replaced != text
    with Server(judged) as server:
        programs = [
            start(text, tmp_path_factory.mktemp("ragas"), server.url),
            start(replaced, tmp_path_factory.mktemp("karat"), server.url),
        ]
        theirs, ours = map(outcomes_of, programs)
    assert theirs.keys() == ours.keys()
    return {name: (theirs[name], ours[name]) for name in theirs}


def cases():
    return re.findall(r"^@case\ndef (\w+)", PROGRAM.read_text(), re.MULTILINE)


def test_the_import_lines_are_those_of_ragas():
    lines = [f"from {module} import {', '.join(names)}" for module, names in IMPORTS.items()]
    done = subprocess.run(
        [PYTHON, "-W", "ignore", "-c", "\n".join(lines)],
        capture_output=True, text=True, check=False, env=os.environ | QUIET,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", cases())
def test_the_outcome_is_the_same(outcomes, name):
    theirs, ours = outcomes[name]
    assert (theirs, ours) == BETTER.get(name, (theirs, theirs))
