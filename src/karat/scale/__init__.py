"""The same evaluation in batches: of files larger than memory, on several processes, on a cluster."""

from __future__ import annotations
