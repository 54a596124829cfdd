"""Other libraries' interfaces: their names and shapes over karat's judges, metrics and conventions; no formula."""

from __future__ import annotations
