"""Collect: a retriever and a gold set → samples."""

from __future__ import annotations
