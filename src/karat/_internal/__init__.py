"""Leaf tools without any word of retrieval: arrays, grammar, text, files, progress, threads."""
