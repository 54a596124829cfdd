"""Hits: judgements → which retrieved item satisfies which gold item, and the views that metrics read."""

from __future__ import annotations

from karat.hits.hits import Cutoffs as Cutoffs
from karat.hits.hits import Gold as Gold
from karat.hits.hits import Hits as Hits
