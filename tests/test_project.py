"""The project's own files: CI runs targets that exist, on the Python versions that are declared, with pinned tools."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
OPTIONAL = {
    f"{kind.lower()}-{name}"
    for kind in ("ORACLE", "FRAMEWORK")
    for name in re.search(rf"^{kind}S := (.*)$", MAKEFILE, re.MULTILINE)[1].split()
}
TARGETS = {*re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE), *OPTIONAL}


def make_targets(text):
    """The targets of every `make …` command in a text."""
    commands = re.findall(r"(?:^|`|run: )make ((?:PYTHON=\S+ )?[a-z][^\n`#]*)", text, re.MULTILINE)
    for command in commands:
        for word in re.sub(r"PYTHON=\S+ ", "", command).split():
            before, brace, names = word.partition("{")
            yield from (before + name for name in names.rstrip("}").split(",")) if brace else [word]


@pytest.mark.parametrize("file", [".github/workflows/ci.yml", ".ci/run", "CONTRIBUTING.md", "README.md"])
def test_every_make_target_exists(file):
    used = set(make_targets((ROOT / file).read_text("utf-8")))
    assert {"test"} <= used <= TARGETS


def test_ci_runs_what_the_local_gate_runs():
    steps = "\n".join(
        f"run: {step['run']}" for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step
    )
    assert {"check", "test", "client", "demo", "wheel", "oracles", "frameworks", "spark"} == set(make_targets(steps))
    assert WORKFLOW["jobs"]["oracles"]["if"].startswith("github.event_name == 'schedule'")


def test_ci_covers_the_declared_python_versions():
    classifier = "Programming Language :: Python :: "
    declared = [name.removeprefix(classifier) for name in PROJECT["project"]["classifiers"] if classifier in name]
    versions = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert versions == [version for version in declared if "." in version]
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_github_files_are_valid(path):
    content = yaml.safe_load(path.read_text("utf-8"))
    if path.parent.name == "ISSUE_TEMPLATE" and path.stem != "config":
        assert {"name", "description", "body"} <= content.keys()
        ids = [field["id"] for field in content["body"]]
        assert len(set(ids)) == len(ids)


def test_pre_commit_hooks_use_the_pinned_tools():
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert repo["repo"] == "local"
    assert all(hook["entry"].startswith(".venv/bin/") for hook in repo["hooks"])


def test_every_development_tool_is_pinned():
    lock = (ROOT / "requirements" / "dev.lock").read_text("utf-8")
    pinned = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    asked = {re.split(r"[>=<\[]", line)[0] for line in PROJECT["dependency-groups"]["dev"]}
    assert asked <= pinned


def test_the_environment_of_the_demo_has_the_extra_web_in_the_pinned_versions():
    runtime, web, dev = (
        set((ROOT / "requirements" / f"{name}.lock").read_text("utf-8").splitlines())
        for name in ("runtime", "web", "dev")
    )
    asked = {re.split(r"[>=<\[]", line)[0] for line in PROJECT["project"]["optional-dependencies"]["web"]}
    assert asked <= {line.partition("==")[0] for line in web}
    assert runtime <= web
    assert {line.partition(" ;")[0] for line in web} <= {line.partition(" ;")[0] for line in dev}


def test_the_coverage_floor_covers_the_core():
    core = [
        "samples",
        "collection",
        "hits",
        "judges",
        "metrics",
        "run",
        "plan",
        "pipeline",
        "stats",
        "conventions",
        "analysis",
    ]
    karat = ROOT / "src" / "karat"
    entries = {path.stem for path in karat.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    settings = PROJECT["tool"]["slipcover"]
    assert settings["source"] == ["src/karat"]
    assert {Path(omitted.removesuffix("/*")).stem for omitted in settings["omit"]} == entries - set(core)
    assert "--fail-under 98" in (ROOT / "Makefile").read_text()
