"""Bridges: karat inside other frameworks, in their interfaces; each loads its framework when it is imported."""

from __future__ import annotations
