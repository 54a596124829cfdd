"""Benchmarks: karat and its peers on the same data, through the calls of a user."""

import os

# pip compiles what it installs. Without a cache of bytecode, every process that is timed would compile karat again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
