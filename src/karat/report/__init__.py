"""Reports: a run as something to read."""
