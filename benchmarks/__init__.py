"""Benchmarks: karat and its peers on the same data, through the calls of a user."""
