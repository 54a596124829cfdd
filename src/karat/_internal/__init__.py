"""Leaf tools that know nothing of retrieval: arrays, grammar, display, output, progress, threads, model settings."""
