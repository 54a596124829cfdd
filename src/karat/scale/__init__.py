"""Scale: the same plan in worker processes, over files larger than memory, and on Spark."""
